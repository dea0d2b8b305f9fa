"""Delta tables: each commit adds files and replaces the list of what the table has.

Spark tasks write the files, and delta-rs commits them: no JVM takes part in that. The list is a
file that the commit names (`extent_files`).

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

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.remote.object_store import translate_options
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.replay.offline.columns.names import RECORDED_TIME
from aerotape.spark.tables.extent import Extent
from aerotape.spark.tables.extent_files import (
    APPLICATION,
    delete_extents,
    extents_in_log,
    read_extents,
    vacuum_extents,
    write_extents,
)
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.table import TableChangedError
from aerotape.spark.tables.writer import (
    STATISTICS,
    Naming,
    NewFile,
    ParquetFile,
    unique_path,
)
from aerotape.url_path import UrlPath, is_url

if TYPE_CHECKING:
    import os

    import pyarrow
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_ENCODED_IN_URLS: Final = re.compile(r"""[^!-~]|["#<>`{}]""")
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
        self.storage_options = translate_options(options)
        _check_scheme(location)
        self.store = OutputStore.open(location, options)
        self._by_date = by_date
        self._table: DeltaTable | None = None
        self._extents: dict[int, Extent] | None = None
        self._extents_id: int | None = None
        self._planned: dict[int, Extent | None] = {}

    def begin(self, schema: pyarrow.Schema) -> None:
        """Create the table if it does not exist. Any number of jobs may write to it."""
        import pyarrow
        from deltalake import DeltaTable, Schema

        self.refresh()
        if self._table is not None:
            return
        if self._by_date:
            schema = schema.append(pyarrow.field("date", pyarrow.date32()))
        with self._errors("create"):
            self._table = DeltaTable.create(
                self.store.name,
                Schema.from_arrow(schema),
                mode="ignore",
                partition_by=self._partitions,
                configuration={
                    "delta.dataSkippingStatsColumns": ",".join(
                        name for name in STATISTICS if name in schema.names
                    )
                },
                storage_options=self.storage_options,
            )

    def check_options(self, *, replaces: bool) -> None:
        """Accept all options."""

    def close(self) -> None:
        """Do nothing."""

    def refresh(self) -> None:
        """Read the table's log; the first time, check that the files that it names exist."""
        from deltalake import DeltaTable

        is_first = self._table is None
        exists = not is_first or bool(self.store.files("_delta_log"))
        with self._errors("read"):
            if self._table is not None:
                self._table.update_incremental()
            elif exists:
                self._table = DeltaTable(self.store.name, storage_options=self.storage_options)
        if self._table is None and self.store.files():
            raise ConfigurationError(
                f"{self.store.name} has files and is not a Delta table: name another folder",
                "TABLE",
            )
        if self._table is None:
            return
        partitions = self._table.metadata().partition_columns
        if partitions != self._partitions:
            raise ConfigurationError(
                f"{self.store.name} is partitioned by {', '.join(partitions) or 'nothing'}: "
                f"{'omit' if self._by_date else 'add'} --by-date, or name another table",
                "--by-date",
            )
        if is_first:
            self._check_files()
        self._read_extents()

    def _check_files(self) -> None:
        """Compare the files that the log names with those in the folder (StorageError)."""
        present = self.store.files()
        # A clone of a table names files of other folders by URLs.
        lost = sorted(path for path in self._paths() if path not in present and not is_url(path))
        if not lost:
            return
        names = ", ".join(lost[:_LOST_NAMES]) + (", …" if lost[_LOST_NAMES:] else "")
        raise StorageError(
            f"{self.store.name} lacks files that its log names ({len(lost)}: {names}): restore "
            "them, or remove them from the log with `DeltaTable.repair` of deltalake and convert "
            "again with --overwrite",
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
        import pyarrow

        schema = pyarrow.schema(self._table.schema().to_arrow())
        fields = [field for field in schema if field.name not in self._partitions]
        return {field.name: str(field.type) for field in fields}

    def extents(self, recording_ids: Iterable[int]) -> dict[int, Extent]:
        """Return what the table has of recordings; `commit` checks that it still has that."""
        ids, present = list(recording_ids), self._extents or {}
        self._planned.update((id, present.get(id)) for id in ids)
        return {id: present[id] for id in ids if id in present}

    def _read_extents(self) -> None:
        table = self._existing()
        while True:
            with self._errors("read"):
                id = table.transaction_version(APPLICATION)
                if id is None and self._extents is None:
                    self._extents = extents_in_log(table)
            if id is None or id == self._extents_id:
                return
            try:
                self._extents = read_extents(self.store, id)
                self._extents_id = id
                return
            except StorageError:
                with self._errors("read"):
                    table.update_incremental()
                    is_replaced = table.transaction_version(APPLICATION) != id
                # A commit deletes the list that it replaces.
                if not is_replaced:
                    raise

    def commit(
        self,
        files: Sequence[NewFile],
        extents: Mapping[int, Extent],
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
                present = self._extents or {}
                if any(present.get(id) != self._planned.get(id) for id in extents):
                    raise TableChangedError(f"another job has changed {self.store.name}")
                actions: list[AddAction | RemoveAction] = [_added(file, now_ms) for file in files]
                for action, copy in self._replaced(replaced, now_ms):
                    actions.append(action)
                    if copy is not None:
                        deletable.append(copy)
                        actions.append(_added(copy, now_ms))
                list_id = write_extents(self.store, {**present, **extents})
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

    def _attempt(
        self, actions: Sequence[AddAction | RemoveAction], list_id: int, now_ms: int
    ) -> bool:
        """Commit, and after an error look in the log for whether the commit is there.

        Returns:
            False if another job has committed since the log was read.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import CommitProperties, Transaction

        table, replaced_id = self._existing(), self._extents_id
        try:
            table.create_write_transaction(
                list(actions),
                "append",
                table.schema(),
                partition_by=self._partitions,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(APPLICATION, list_id, now_ms)]
                ),
            )
        except (DeltaError, OSError) as error:
            self.refresh()
            if not self._has_commit(actions, list_id):
                if isinstance(error, CommitFailedError):
                    return False
                raise self._error("commit to", error) from error
        if replaced_id is not None:
            with suppress(StorageError):
                delete_extents(self.store, replaced_id)
        return True

    def _has_commit(self, actions: Sequence[AddAction | RemoveAction], list_id: int) -> bool:
        """Return whether the log has a commit, also below one of another job."""
        from deltalake.transaction import AddAction

        added = {action.path for action in actions if isinstance(action, AddAction)}
        return self._extents_id == list_id or not added.isdisjoint(self._paths())

    def _replaced(
        self, replaced: Mapping[int, int], now_ms: int
    ) -> Iterator[tuple[RemoveAction, NewFile | None]]:
        """Remove each file with rows of some recordings, with a copy that has its other rows."""
        import pyarrow
        from deltalake.transaction import RemoveAction

        if not replaced:
            return
        for action in pyarrow.table(self._existing().get_add_actions(flatten=True)).to_pylist():
            low, high = action.get("min.recording_id"), action.get("max.recording_id")
            if None not in (low, high) and not any(low <= id <= high for id in replaced):
                continue
            date = str(action["partition.date"]) if self._by_date else None
            copy = _without_rows(self.store, action["path"], replaced, unique_path(date), date)
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
        vacuum_extents(self.store, self._extents_id, retention_hours)
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
        text = str(error).strip().partition("\n")[0]
        return StorageError(f"cannot {what} Delta table {self.store.name}: {text}", self.store.name)


def _without_rows(
    store: OutputStore, path: str, replaced: Mapping[int, int], new_path: str, date: str | None
) -> NewFile | None:
    """Copy a file without the rows of `replaced` from a position on; None if none are left."""
    from pyarrow import compute, parquet

    copy = ParquetFile(store, new_path)
    with store.open_file(path) as stream:
        source = parquet.ParquetFile(stream)
        try:
            for batch in source.iter_batches():
                for id, position in replaced.items():
                    others = compute.not_equal(batch.column("recording_id"), id)
                    before = compute.less(batch.column("position"), position)
                    batch = batch.filter(compute.or_(others, before))
                copy.add(batch)
            return copy.finish(date, {"aerotape.version": __version__})
        finally:
            copy.abandon()


def _added(file: NewFile, now_ms: int) -> AddAction:
    from deltalake.transaction import AddAction

    bounds = file.statistics.items()
    statistics = {
        "numRecords": file.rows,
        "minValues": {name: _bound(name, low) for name, (low, _) in bounds},
        "maxValues": {name: _bound(name, high, up=True) for name, (_, high) in bounds},
        "nullCount": file.nulls,
    }
    return AddAction(
        file.path,
        file.size,
        {} if file.date is None else {"date": file.date},
        now_ms,
        True,
        json.dumps(statistics),
    )


def _bound(name: str, value: int, *, up: bool = False) -> int | str:
    """Return a minimum or maximum as a Delta log has it: a time in milliseconds, rounded."""
    if name != RECORDED_TIME:
        return value
    milliseconds = -(-value // 1000) if up else value // 1000
    time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def _check_scheme(location: str | os.PathLike[str]) -> None:
    """Refuse storage for which delta-rs is not set up, and names that it changes."""
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
