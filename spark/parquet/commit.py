"""Commits of a recording's new files to the table: readers see all of them or none.

Tasks write to ``_aerotape/<job>/``, which Spark and pyarrow ignore, with names that patterns such
as ``**/*.parquet`` do not match. There are two kinds of commits.

*By folder.* Where folders can be renamed, the recording's next folder (its new files, hard links to
those that remain, its manifest) is built in a staging folder and replaces the old one in one step:
a job that is killed has changed nothing, or everything. With ``**`` DuckDB and Polars read folders
with an underscore too, so the staging folder is next to the table, ``_aerotape-<name>``, if one can
be created there.

*By journal.* Object stores cannot rename folders, and for one new file a folder is too costly.
There a journal is written first, with the files to move and to delete, and the manifest. Then the
commit is carried out in order of positions, the manifest last, and the journal is deleted. Each
step may be repeated, so the next job completes a journal that it finds. For readers one new file
appears in one step; several, in an object store, appear one after the other.
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from aerotape.errors import StorageError
from aerotape.spark.parquet.lock import WORK_DIR
from aerotape.spark.parquet.manifest import MANIFEST_NAME, Manifest
from aerotape.spark.parquet.store import OutputStore

_JOURNALS_DIR: Final = f"{WORK_DIR}/commits"


def recording_folder(recording_id: int) -> str:
    """Name the folder of a recording, as readers of partitioned tables expect."""
    return f"recording_id={recording_id}"


class Committer:
    """Commits of one job, which holds the table's lock."""

    def __init__(self, store: OutputStore) -> None:
        """Choose a name for the job; nothing is created yet."""
        self._store = store
        self._job_dir = f"{WORK_DIR}/{uuid.uuid4().hex[:12]}"
        self._staging = f"{self._job_dir}/staged"
        self._can_exchange: bool | None = None

    def recover(self) -> list[str]:
        """Complete the commits of a job that was killed, then delete its temporary files.

        Returns:
            The folders of the recordings whose commits were finished.
        """
        finished = []
        for name in self._store.entries(_JOURNALS_DIR):
            if name.endswith(".json"):
                finished.append(self._carry_out(f"{_JOURNALS_DIR}/{name}"))
        for name in self._store.entries(WORK_DIR):
            if not name.startswith("lock"):
                self._store.delete_folder(f"{WORK_DIR}/{name}")
        if self._store.beside is not None:
            self._store.delete_folder(self._store.beside)
        return finished

    def attempts_folder(self, recording_id: int) -> str:
        """Create the folder to which tasks write files of a recording.

        Tasks do not create it, so that tasks of a killed job fail.
        """
        folder = f"{self._job_dir}/attempts/{recording_id}"
        self._store.make_folder(folder)
        return folder

    def commit(
        self,
        recording_id: int,
        new_files: Mapping[str, str],
        manifest: Manifest,
        *,
        replaced: Sequence[str] = (),
    ) -> None:
        """Make new files and their manifest appear in a recording's folder.

        Args:
            recording_id: the recording.
            new_files: where each new file is, by its path below the recording's folder, in the
                order in which they shall appear where they cannot appear at once.
            manifest: what the table has of the recording then.
            replaced: paths below the recording's folder of the files that go.

        Raises:
            StorageError: a file cannot be put in place. What has been done is undone or finished
                by `recover`.
        """
        folder = recording_folder(recording_id)
        exists = self._store.exists(folder)
        exchanges = self._exchanges()
        if (exists and exchanges and (len(new_files) > 1 or replaced)) or (
            not exists and self._store.renames_folders
        ):
            self._commit_folder(recording_id, new_files, manifest, replaced, exists)
        else:
            self._commit_by_journal(recording_id, new_files, manifest, replaced)

    def tidy(self) -> None:
        """Delete temporary files after all commits of a round."""
        for folder in (self._job_dir, self._store.beside):
            if folder is not None:
                with suppress(StorageError):  # a task may still write: close() tries again
                    self._store.delete_folder(folder)

    def close(self) -> None:
        """Complete a commit that has begun, and delete the job's temporary files."""
        with suppress(StorageError):
            self.recover()

    def abandon(self) -> None:
        """Delete the temporary files of this job only: another job has the table."""
        with suppress(StorageError):
            # A journal that is left may be of this job's files: the other one carries it out.
            if not self._store.entries(_JOURNALS_DIR):
                self._store.delete_folder(self._job_dir)

    # -- a folder at once --------------------------------------------------------------------

    def _exchanges(self) -> bool:
        """Return whether folders can be exchanged, and choose the staging folder."""
        if self._can_exchange is None:
            probe = f"{self._job_dir}/probe"
            for staging in (self._store.beside, self._staging):
                if staging and self._store.can_exchange(f"{staging}/probe", probe):
                    self._staging = staging
                    self._can_exchange = True
                    break
            else:
                self._can_exchange = False
        return self._can_exchange

    def _commit_folder(
        self,
        recording_id: int,
        new_files: Mapping[str, str],
        manifest: Manifest,
        replaced: Sequence[str],
        exists: bool,
    ) -> None:
        store, final = self._store, recording_folder(recording_id)
        staged = f"{self._staging}/{uuid.uuid4().hex[:12]}"
        kept = set()
        if exists:
            kept = set(store.files(final)) - {MANIFEST_NAME} - set(replaced)
        folders = {posixpath.dirname(name) for name in [*kept, *new_files, MANIFEST_NAME]}
        for folder in sorted(folders):
            store.make_folder(posixpath.join(staged, folder))
        for name in sorted(kept):
            store.link(f"{final}/{name}", f"{staged}/{name}")
        for name, source in new_files.items():
            store.move(source, f"{staged}/{name}")
        store.write(f"{staged}/{MANIFEST_NAME}", manifest.encode())
        for folder in sorted(folders):
            store.sync_folder(posixpath.join(staged, folder).rstrip("/"))
        if exists:
            store.exchange(staged, final)
        else:
            store.move(staged, final)
        store.sync_folder("")
        store.delete_folder(staged)  # what was replaced

    # -- by journal --------------------------------------------------------------------------

    def _commit_by_journal(
        self,
        recording_id: int,
        new_files: Mapping[str, str],
        manifest: Manifest,
        replaced: Sequence[str],
    ) -> None:
        folder = recording_folder(recording_id)
        journal = {
            "folder": folder,
            "delete": [f"{folder}/{name}" for name in replaced],
            "move": [[source, f"{folder}/{name}"] for name, source in new_files.items()],
            "manifest": manifest.encode().decode(),
        }
        self._store.make_folder(_JOURNALS_DIR)
        path = f"{_JOURNALS_DIR}/{recording_id}.json"
        self._store.write(path, json.dumps(journal).encode())
        self._store.sync_folder(_JOURNALS_DIR)
        self._carry_out(path)

    def _carry_out(self, path: str) -> str:
        """Carry out a journal, or the rest of it; return the recording's folder."""
        store = self._store
        data = store.read(path)
        if not data:
            return ""
        try:
            journal = json.loads(data)
            folder, replaced = str(journal["folder"]), list(journal["delete"])
            steps = [(str(source), str(target)) for source, target in journal["move"]]
            manifest = str(journal["manifest"]).encode()
        except (ValueError, TypeError, KeyError) as error:
            raise StorageError(
                f"the journal {path} in {store.name} is damaged ({error}): delete it and convert "
                f"recording {posixpath.basename(path).removesuffix('.json')} again, --overwrite",
                store.name,
            ) from error
        moves = []
        for source, target in steps:
            if store.exists(source):
                moves.append((source, target))
            elif not store.exists(target):
                raise StorageError(
                    f"the commit of {folder} in {store.name} cannot be completed: {source} is "
                    f"missing; delete {path} there and convert the recording again, --overwrite",
                    store.name,
                )
        store.make_folder(folder)
        # Missing rows for a moment are better than duplicate ones.
        for name in replaced:
            store.delete_file(name)
        for source, target in moves:
            store.make_folder(posixpath.dirname(target))
            store.move(source, target)
        for name in sorted({posixpath.dirname(target) for _, target in steps}):
            store.sync_folder(name)
        store.write(f"{folder}/{MANIFEST_NAME}", manifest)
        store.sync_folder(folder)
        store.delete_file(path)
        return folder
