"""Delta tables: each commit adds files and replaces the list of what the table has.

Spark tasks write the files, and delta-rs commits them: no JVM takes part in that. The list is a
file that the commit names (`converted_files`); which list is that of a snapshot, follows from the
log (`delta_progress`). The first commit creates the table.

A commit has two steps:

1. The log is read and compared with what was planned, files that lose rows are copied, and the list
   is written. An error or interrupt here deletes the new files: no commit names them.
2. delta-rs is called once, with all added and removed files. From here on no file is deleted: a
   signal, an error after the log file was written, or an S3 answer that was lost can leave a commit
   in the log that the caller sees as failed. After an error the log is read for which list it
   names: if it is that of this commit, the commit was successful.

If another job committed in between, both steps are repeated. Files that are in no commit are left
for `vacuum`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.remote.store_options import delta_options
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.replay.offline.read_progress import ReadProgress
from aerotape.spark.tables.converted_files import (
    APPLICATION,
    CONVERTED_FOLDER,
    delete_old_files,
    read_converted,
    vacuum_files,
    write_converted,
)
from aerotape.spark.tables.delta_features import check_features
from aerotape.spark.tables.delta_files import added, without_rows
from aerotape.spark.tables.delta_progress import (
    ReadCommit,
    commit_reader,
    converted_without_list,
    find_list,
    names_list,
)
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.table import TableChangedError
from aerotape.spark.tables.writer import (
    STATISTICS,
    Naming,
    NewFile,
    is_unique_path,
    unique_path,
)
from aerotape.url_path import UrlPath, is_url, map_at_once

if TYPE_CHECKING:
    import os

    import pyarrow
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_ENCODED_IN_URLS: Final = re.compile(r"""[^!-~]|["#<>`{}]""")
_LOG_FOLDER: Final = "_delta_log"
_OF_A_LOG: Final = re.compile(r"[0-9]{20}\.(json|checkpoint\..*)")
_SCHEMES: Final = ("s3", "s3a")
_LOST_NAMES: Final = 3
_ATTEMPTS: Final = 20


class DeltaRecordingTable:
    """A Delta table of recordings, which may not exist yet.

    Attributes:
        store: its folder.
        storage_options: delta-rs's options for it.
    """

    naming = Naming.UNIQUE
    has_gaps = False

    def __init__(
        self,
        location: str | os.PathLike[str],
        options: StorageOptions = NO_OPTIONS,
        *,
        by_date: bool = False,
    ) -> None:
        """Name the table; nothing is created before the first commit.

        Args:
            location: path or URL of its folder.
            options: how the storage of a URL is reached.
            by_date: a new table is partitioned by date.

        Raises:
            ConfigurationError: delta-rs is not installed, or the location is not a folder.
            StorageError: the storage cannot be reached.
        """
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(not_installed("deltalake", "delta")) from error
        self._options = options
        bucket = _bucket_of(location)
        self.storage_options = {} if bucket is None else delta_options(bucket, options)
        self.store = OutputStore.open(location, options)
        self.job_id = secrets.token_hex(8)
        self._by_date = by_date
        self._replaces = False
        self._schema: pyarrow.Schema | None = None
        self._table: DeltaTable | None = None
        self._converted: dict[int, ReadProgress] = {}
        self._converted_version: int | None = None
        self._list_ids: dict[int, int] = {}
        self._planned: dict[int, ReadProgress | None] = {}
        self._is_attempted = False

    def begin(self, schema: pyarrow.Schema) -> None:
        """Take the columns of a new table. Any number of jobs may write to it."""
        import pyarrow

        self.refresh()
        self._schema = schema
        if self._by_date:
            self._schema = schema.append(pyarrow.field("date", pyarrow.date32()))

    def check_options(self, *, replaces: bool) -> None:
        """Note whether rows may be replaced, which an append-only table refuses."""
        self._replaces = replaces

    def close(self, *, failed: bool = False) -> None:
        """After a failure before the first commit of a new table, delete the files of the job."""
        if not failed or self._table is not None or self._is_attempted:
            return
        with suppress(AerotapeError):
            paths = [path for path in self.store.files() if self.job_id in path]
            for path in paths:
                self.store.delete_file(path)
            if self.store.is_local:
                for folder in sorted({"", *(path.rpartition("/")[0] for path in paths)})[::-1]:
                    with suppress(OSError):
                        self.store.local_path(folder).rmdir()

    def refresh(self) -> None:
        """Read the table's log; the first time, check that the files that it names exist."""
        from deltalake import DeltaTable

        is_first = self._table is None
        exists = not is_first or any(map(_is_of_a_log, self.store.files(_LOG_FOLDER)))
        with self._errors("read"):
            if self._table is not None:
                self._table.update_incremental()
            elif exists:
                self._table = DeltaTable(self.store.name, storage_options=self.storage_options)
        if self._table is None and not all(map(_is_of_a_job, self.store.files())):
            raise ConfigurationError(
                f"{self.store.name} has files and is not a Delta table: name another folder",
                "TABLE",
            )
        if self._table is None:
            return
        check_features(self._table, self.store.name, replaces=self._replaces)
        partitions = self._table.metadata().partition_columns
        if partitions != self._partitions:
            raise ConfigurationError(
                f"{self.store.name} is partitioned by {', '.join(partitions) or 'nothing'}: "
                f"{'omit' if self._by_date else 'add'} --by-date, or name another table",
                "--by-date",
            )
        if is_first:
            self._check_files()
        self._read_converted()

    def _check_files(self) -> None:
        """Compare the files that the log names with those in the folder (StorageError)."""
        present = self.store.files()
        # A clone of a table names files of other folders by URLs.
        lost = sorted(path for path in self._paths() if path not in present and not is_url(path))
        if not lost:
            return
        raise StorageError(
            f"{self.store.name} lacks files that its log names ({_some(lost)}): restore them, or "
            "remove them from the log with `DeltaTable.repair` of deltalake and convert again with "
            "--overwrite",
            self.store.name,
        )

    def _paths(self) -> list[str]:
        """Return the files that the log names."""
        import pyarrow

        paths: list[str] = pyarrow.table(self._existing().get_add_actions())["path"].to_pylist()
        return paths

    @property
    def _partitions(self) -> list[str]:
        return ["date"] if self._by_date else []

    def columns(self) -> dict[str, str] | None:
        """Return the table's columns and their Arrow types, without the date."""
        if self._table is None:
            return None
        return {field.name: str(field.type) for field in self._schema_of_files()}

    def _schema_of_files(self) -> pyarrow.Schema:
        import pyarrow

        schema = pyarrow.schema(self._existing().schema().to_arrow())
        return pyarrow.schema([field for field in schema if field.name not in self._partitions])

    def converted(self, recording_ids: Iterable[int]) -> dict[int, ReadProgress]:
        """The converted ranges of recordings; `commit` checks that they are unchanged."""
        ids, present = list(recording_ids), self._converted
        self._planned.update((id, present.get(id)) for id in ids)
        return {id: present[id] for id in ids if id in present}

    def _read_converted(self) -> None:
        table = self._existing()
        version = table.version()
        if version == self._converted_version:
            return
        with self._errors("read"):
            id = find_list(self._read_commit, version, self._list_ids)
            converted = None if id is None else read_converted(self.store, id)
            if converted is None:
                converted = converted_without_list(table, self.store)
        self._converted, self._converted_version = converted, version
        self._list_ids = {} if id is None else {version: id}

    @property
    def _read_commit(self) -> ReadCommit:
        return commit_reader(self.store)

    def commit(
        self,
        files: Sequence[NewFile],
        converted: Mapping[int, ReadProgress],
        replaced: Mapping[int, int],
    ) -> None:
        """Add files, and remove those with replaced recordings, in one commit.

        delta-rs refuses it if another job has committed since the log was read; if that was about
        other recordings, the commit is repeated.
        """
        now_ms = time.time_ns() // 1_000_000
        deletable = list(files)
        for _ in range(_ATTEMPTS):
            try:
                self.refresh()
                present = self._converted
                if any(present.get(id) != self._planned.get(id) for id in converted):
                    raise TableChangedError(f"another job has changed {self.store.name}")
                actions: list[AddAction | RemoveAction] = [added(file, now_ms) for file in files]
                for action, copy in self._replaced(replaced, now_ms):
                    actions.append(action)
                    if copy is not None:
                        deletable.append(copy)
                        actions.append(added(copy, now_ms))
                self._check_new(deletable)
                list_id = write_converted(self.store, {**present, **converted})
            except BaseException:
                with suppress(AerotapeError):
                    self.discard(deletable)
                raise
            deletable = []
            if self._attempt(actions, list_id, now_ms):
                return
        raise TableChangedError(
            f"{self.store.name}: {_ATTEMPTS} commits failed, because other jobs committed meanwhile"
        )

    def _check_new(self, files: Sequence[NewFile]) -> None:
        """Check that files to commit exist: a vacuum may have deleted them (StorageError)."""
        paths = [file.path for file in files]
        there = map_at_once(self.store.exists, paths)
        lost = [path for path, exists in zip(paths, there, strict=True) if not exists]
        if lost:
            raise StorageError(
                f"{self.store.name}: files of this job were deleted before their commit "
                f"({_some(lost)}): run it again, and do not vacuum the table with so few hours "
                "while a job runs",
                self.store.name,
            )

    def _attempt(
        self, actions: Sequence[AddAction | RemoveAction], list_id: int, now_ms: int
    ) -> bool:
        """Commit, and after an error look in the log for whether the commit is there.

        Returns:
            False if another job has committed since the log was read.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError

        version = -1 if self._table is None else self._table.version()
        self._is_attempted = True
        try:
            self._write(actions, list_id, now_ms)
        except (DeltaError, OSError) as error:
            self.refresh()
            later = range(version + 1, 0 if self._table is None else self._table.version() + 1)
            if not names_list(self._read_commit, list_id, later):
                if isinstance(error, CommitFailedError) or (version < 0 and later):
                    return False
                raise self._error("commit to", error) from error
        with suppress(StorageError):
            delete_old_files(self.store)
        return True

    def _write(
        self, actions: Sequence[AddAction | RemoveAction], list_id: int, now_ms: int
    ) -> None:
        """Write a commit, which is refused if another one was written since the log was read."""
        from deltalake import Schema
        from deltalake.transaction import (
            AddAction,
            CommitProperties,
            Transaction,
            create_table_with_add_actions,
        )

        properties = CommitProperties(
            app_transactions=[Transaction(APPLICATION, list_id, now_ms)], max_commit_retries=0
        )
        if self._table is not None:
            self._table.create_write_transaction(
                list(actions),
                "append",
                self._table.schema(),
                partition_by=self._partitions,
                commit_properties=properties,
            )
            return
        assert self._schema is not None
        create_table_with_add_actions(
            self.store.name,
            Schema.from_arrow(self._schema),
            [action for action in actions if isinstance(action, AddAction)],
            mode="error",
            partition_by=self._partitions,
            configuration={
                "delta.dataSkippingStatsColumns": ",".join(
                    name for name in STATISTICS if name in self._schema.names
                )
            },
            storage_options=self.storage_options,
            commit_properties=properties,
        )

    def _replaced(
        self, replaced: Mapping[int, int], now_ms: int
    ) -> Iterator[tuple[RemoveAction, NewFile | None]]:
        """Remove each file with rows of some recordings, with a copy that has its other rows."""
        import pyarrow
        from deltalake.transaction import RemoveAction

        if not replaced:
            return
        table = self._existing()
        schema = self._schema_of_files()
        for action in pyarrow.table(table.get_add_actions(flatten=True)).to_pylist():
            low, high = action.get("min.recording_id"), action.get("max.recording_id")
            if None not in (low, high) and not any(low <= id <= high for id in replaced):
                continue
            date = str(action["partition.date"]) if self._by_date else None
            new_path = unique_path(date, self.job_id)
            copy = without_rows(self.store, action["path"], replaced, new_path, date, schema)
            if copy is not None and copy.rows == action["num_records"]:
                self.discard([copy])
                continue
            removed = RemoveAction(
                action["path"],
                True,
                now_ms,
                action["size_bytes"],
                {} if date is None else {"date": date},
            )
            yield removed, copy

    def discard(self, files: Iterable[NewFile]) -> None:
        """Delete files for which no commit was attempted."""
        for file in files:
            self.store.delete_file(file.path)

    def compact(self) -> dict[str, Any]:
        """Merge small files into larger ones; return delta-rs's figures (StorageError)."""
        from deltalake import WriterProperties

        self.refresh()
        with self._errors("compact"):
            return self._existing().optimize.compact(
                writer_properties=WriterProperties(compression="ZSTD")
            )

    def vacuum(self, retention_hours: int) -> list[str]:
        """Delete files that no commit has, or had in the last hours; return their paths.

        With 0 hours, files of a job that is running are deleted too (StorageError).
        """
        self.refresh()
        with self._errors("vacuum"):
            deleted = self._existing().vacuum(
                retention_hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        vacuum_files(self.store, set(self._list_ids.values()), retention_hours)
        return deleted

    def _existing(self) -> DeltaTable:
        if self._table is None:
            raise StorageError(f"{self.store.name} is not a Delta table", self.store.name)
        return self._table

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise self._error(what, error) from error

    def _error(self, what: str, error: Exception) -> StorageError:
        text = self._options.redacted(str(error).strip().partition("\n")[0])
        return StorageError(f"cannot {what} Delta table {self.store.name}: {text}", self.store.name)


def _some(paths: Sequence[str]) -> str:
    """Return the number of paths, and the first of them."""
    more = ", …" if paths[_LOST_NAMES:] else ""
    return f"{len(paths)}: {', '.join(paths[:_LOST_NAMES])}{more}"


def _is_of_a_job(path: str) -> bool:
    """Return whether a file can be that of a job which was killed before the first commit."""
    return is_unique_path(path) or path.partition("/")[0] in (CONVERTED_FOLDER, _LOG_FOLDER)


def _is_of_a_log(name: str) -> bool:
    """Return whether a file is a commit or a checkpoint.

    Not one that delta-rs was writing when it was killed, such as `00000000000000000000.json#1`.
    """
    return _OF_A_LOG.fullmatch(name) is not None


def _bucket_of(location: str | os.PathLike[str]) -> str | None:
    """Return the bucket of a table, None for a local one.

    Storage for which delta-rs is not set up is refused, and so are names that it changes.
    """
    place = parse_location(location, "TABLE")
    if isinstance(place, UrlPath) and str(place).partition("://")[0] not in _SCHEMES:
        raise ConfigurationError(
            f"{place}: Delta tables are written to local folders and s3:// URLs only; write "
            "Parquet files there with `aerotape parquet`",
            "TABLE",
        )
    if "%" in str(place):
        raise ConfigurationError(
            f"{place}: delta-rs would decode the per cent sign; name a table without it", "TABLE"
        )
    if isinstance(place, UrlPath) and (refused := _ENCODED_IN_URLS.search(str(place))):
        raise ConfigurationError(
            f"{place}: readers of Delta tables do not find files below a name with "
            f"{refused[0]!r}, which URLs encode; use ASCII letters, digits and .-_~/",
            "TABLE",
        )
    return str(place).split("/")[2] if isinstance(place, UrlPath) else None
