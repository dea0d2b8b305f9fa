"""Folders of Parquet files: the simple table, for one writer.

    OUT/part-0000000003-0000000000000000000-7f80.parquet

What the table has is read from the files themselves: the metadata of each lists its recordings and
positions. In local folders and HDFS the files of a job are moved into place when their recordings
are complete; in an object store each appears whole under its name. A job that is killed leaves a
table in which each message is at most once; the next job adds what is missing.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.errors import AerotapeError, ConfigurationError, StorageError, TableInUseError
from aerotape.replay.offline.read_progress import LastRead, ReadProgress, union
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.writer import RECORDINGS_KEY, STAGED_FOLDER, Naming, NewFile
from aerotape.url_path import map_at_once

if TYPE_CHECKING:
    import pyarrow

_LOCK_NAME: Final = "_aerotape.lock"


@dataclass(frozen=True, slots=True)
class _FileContent:
    """The converted parts of recordings in a file, by id; and its columns."""

    converted: dict[int, ReadProgress]
    columns: dict[str, str]


class ParquetFolder:
    """A folder of Parquet files with recordings, which may not exist yet.

    Attributes:
        store: the folder.
    """

    has_gaps = True
    job_id = ""

    def __init__(
        self,
        location: str | os.PathLike[str],
        options: StorageOptions = NO_OPTIONS,
        *,
        by_date: bool = False,
    ) -> None:
        """Name the folder; it is created by `begin`.

        Args:
            location: its path or URL.
            options: how the storage of a URL is reached.
            by_date: the folder is partitioned by date.

        Raises:
            ConfigurationError: it is not a folder, or in no known file system.
            StorageError: the storage cannot be reached.
        """
        self.store = OutputStore.open(location, options)
        self._by_date = by_date
        self._lock: int | None = None
        self._files: dict[str, _FileContent] = {}

    @property
    def naming(self) -> Naming:
        return Naming.BY_CONTENT if self.store.is_object_store else Naming.STAGED

    def begin(self, schema: pyarrow.Schema) -> None:
        """Create the folder, lock it if it is local, and delete what a killed job has staged."""
        self.store.make_folder()
        if self.store.is_local:
            self._lock_folder()
        self.store.delete_folder(STAGED_FOLDER)

    def _lock_folder(self) -> None:
        path = self.store.local_path(_LOCK_NAME)
        try:
            while True:
                self._lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(self._lock), path.stat()):
                        return
                # A job that failed has deleted the file meanwhile.
                self._unlock()
                self.store.make_folder()
        except BlockingIOError:
            self._unlock()
            raise TableInUseError(
                f"another job is writing to {self.store.name}", self.store.name
            ) from None
        except OSError as error:
            self._unlock()
            raise StorageError(f"cannot lock {path}: {error.strerror}", path) from error

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def close(self, *, failed: bool = False) -> None:
        """Unlock the folder; after a failure delete it if it has nothing. Idempotent."""
        if failed and self._lock is not None:
            with suppress(AerotapeError, OSError):
                self.store.delete_folder(STAGED_FOLDER)
                folder = self.store.local_path()
                if [path.name for path in folder.iterdir()] == [_LOCK_NAME]:
                    (folder / _LOCK_NAME).unlink()
                    folder.rmdir()
        self._unlock()

    def check_options(self, *, replaces: bool) -> None:
        """Refuse to replace rows (ConfigurationError)."""
        if replaces:
            raise ConfigurationError(
                "a folder of Parquet files cannot replace rows: use a Delta table (`aerotape "
                "table`), or convert into another folder",
                "--overwrite",
            )

    def refresh(self) -> None:
        """Read the metadata of the files that are not known yet."""
        paths = [
            path
            for path in self.store.files()
            if path.endswith(".parquet") and not path.startswith("_")
        ]
        if any(path.startswith("date=") is not self._by_date for path in paths):
            raise ConfigurationError(
                f"{self.store.name} is {'not ' if self._by_date else ''}partitioned by date: "
                f"{'omit' if self._by_date else 'add'} --by-date, or name another folder",
                "--by-date",
            )
        new = [path for path in paths if path not in self._files]
        contents = dict(zip(new, map_at_once(self._read, new), strict=True))
        self._files = {path: self._files.get(path) or contents[path] for path in paths}

    def _read(self, path: str) -> _FileContent:
        from pyarrow import parquet

        try:
            with self.store.open_file(path) as stream:
                footer = parquet.read_metadata(stream)
            recordings = json.loads((footer.metadata or {})[RECORDINGS_KEY.encode()])
            return _FileContent(
                {
                    each["recording_id"]: ReadProgress(
                        begin=each["range"][0],
                        position=each["range"][1],
                        identity=each["identity"],
                        last=each["last_message"] and LastRead(*each["last_message"]),
                    )
                    for each in recordings
                },
                {field.name: str(field.type) for field in footer.schema.to_arrow_schema()},
            )
        except (ValueError, KeyError, TypeError) as error:
            place = f"{self.store.name}/{path}"
            raise StorageError(
                f"{place} is not a file of this table ({error}): move it away, or name another "
                "folder",
                place,
            ) from error

    def columns(self) -> dict[str, str] | None:
        """Return the columns of the files; None if there are none."""
        return next((content.columns for content in self._files.values()), None)

    def converted(self, recording_ids: Iterable[int]) -> dict[int, ReadProgress]:
        """The converted ranges of recordings in the files."""
        parts: dict[int, list[ReadProgress]] = {id: [] for id in recording_ids}
        for content in self._files.values():
            for id in content.converted.keys() & parts:
                parts[id].append(content.converted[id])
        found = {id: union(pieces, pieces[0].identity) for id, pieces in parts.items() if pieces}
        return {id: progress for id, progress in found.items() if progress.ranges}

    def commit(
        self,
        files: Sequence[NewFile],
        converted: Mapping[int, ReadProgress],
        replaced: Mapping[int, int],
    ) -> None:
        """Move files into place. A folder cannot replace rows: `check_options` refuses that."""
        if self.naming is Naming.STAGED:
            folders = {""}
            for file in files:
                path = file.path.split("/", 2)[2]
                folder = path.rpartition("/")[0]
                if folder not in folders:
                    self.store.make_folder(folder)
                    folders.add(folder)
                self.store.move(file.path, path)
            for folder in sorted(folders):
                self.store.sync_folder(folder)
            self.store.delete_folder(STAGED_FOLDER)

    def discard(self, files: Iterable[NewFile]) -> None:
        """Delete files for which `commit` is not called."""
        for file in files:
            self.store.delete_file(file.path)
