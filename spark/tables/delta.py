"""Delta tables: each commit adds files and notes what the table has of each recording.

Spark tasks write the files, and delta-rs commits them: no JVM takes part in that. The log has four
application transactions for each recording: ``aerotape:ID:from`` and ``aerotape:ID`` with the
positions from and up to which the table has it, ``aerotape:ID:last`` with the position of its last
row, and ``aerotape:ID:source`` with checksums (`Extent`).

A commit has two steps:

1. The log is read and compared with what was planned, and files that lose rows are copied. An error
   or interrupt here deletes the new files: no commit names them.
2. delta-rs is called once, with all added and removed files and an id of the commit. From here on
   no file is deleted: a signal, an error after the log file was written, or an S3 answer that was
   lost can leave a commit in the log that the caller sees as failed. After an error the log is read
   for the id: if it is there, the commit was successful; if not, the error is raised.

Files that are in no commit are left for `vacuum`.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aerotape import __version__
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.remote.object_store import translate_options
from aerotape.errors import AerotapeError, ConfigurationError, StorageError
from aerotape.formatting import not_installed
from aerotape.replay.offline.columns.times import RECORDED_TIME
from aerotape.spark.tables.extent import Extent, LastRow
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.table import TableChangedError
from aerotape.spark.tables.writer import (
    STATISTICS,
    Naming,
    NewFile,
    ParquetFile,
    unique_path,
)
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import os

    import pyarrow
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_CHECKSUM_BITS: Final = 31
_LOG_FILE: Final = re.compile(r"(\d{20})(\.json|\.checkpoint(?:\.[\w.-]+)?\.parquet)")
_ENCODED_IN_URLS: Final = re.compile(r"""[^!-~]|["#<>`{}]""")
_SCHEMES: Final = ("s3", "s3a")
_NO_ROW: Final = LastRow(-1, 0)
_LOST_NAMES: Final = 3
_COMMIT_ID: Final = "aerotape.commit"
_CONFLICTS: Final = ("oncurrent transaction", "since last commit")


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
        self._transactions: dict[str, int] = {}
        self._transactions_version = -1
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
        self._read_transactions()

    def _check_files(self) -> None:
        """Compare the files that the log names with those in the folder (StorageError)."""
        import pyarrow

        named = pyarrow.table(self._existing().get_add_actions()).column("path").to_pylist()
        present = self.store.files()
        # A clone of a table names files of other folders by URLs.
        lost = sorted(path for path in named if path not in present and "://" not in path)
        if not lost:
            return
        names = ", ".join(lost[:_LOST_NAMES]) + (", …" if lost[_LOST_NAMES:] else "")
        raise StorageError(
            f"{self.store.name} lacks files that its log names ({len(lost)}: {names}): restore "
            "them, or remove them from the log with `DeltaTable.repair` of deltalake and convert "
            "again with --overwrite",
            self.store.name,
        )

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
        ids = list(recording_ids)
        found = self._extents(ids)
        self._planned.update((id, found.get(id)) for id in ids)
        return found

    def _extents(self, recording_ids: Iterable[int]) -> dict[int, Extent]:
        found: dict[int, Extent] = {}
        for id in recording_ids:
            position = self._transactions.get(f"aerotape:{id}")
            if position is None:
                continue
            source = self._transactions.get(f"aerotape:{id}:source", 0)
            last = self._transactions.get(f"aerotape:{id}:last", -1)
            checksum = source & ((1 << _CHECKSUM_BITS) - 1)
            found[id] = Extent(
                ((self._transactions.get(f"aerotape:{id}:from", 0), position),),
                source >> _CHECKSUM_BITS,
                None if last < 0 else LastRow(last, checksum),
            )
        return found

    def _read_transactions(self) -> None:
        """Read the application transactions of commits that were not read yet.

        Delta-rs looks for one at a time in the whole log, which takes long for many recordings.
        """
        from pyarrow import parquet

        last_version = self._existing().version()
        log = {name: _LOG_FILE.fullmatch(name) for name in self.store.files("_delta_log")}
        files = sorted((match[1], match[2], name) for name, match in log.items() if match)
        checkpoints = [version for version, kind, _ in files if kind != ".json"]
        checkpoint = checkpoints[-1] if checkpoints else ""
        for version, kind, name in files:
            if int(version) <= self._transactions_version or version < checkpoint:
                continue
            if kind != ".json" and version == checkpoint:
                with self.store.open_file(f"_delta_log/{name}") as stream:
                    rows = parquet.read_table(stream, columns=["txn"]).column("txn").to_pylist()
                found = [row for row in rows if row is not None]
            elif int(version) <= last_version:
                with self.store.open_file(f"_delta_log/{name}") as stream:
                    lines = stream.read().splitlines()
                found = [json.loads(line)["txn"] for line in lines if line.startswith(b'{"txn"')]
            self._transactions |= {each["appId"]: each["version"] for each in found}
        self._transactions_version = last_version

    def commit(
        self,
        files: Sequence[NewFile],
        extents: Mapping[int, Extent],
        replaced: Mapping[int, int],
    ) -> None:
        """Add files, and remove those with replaced recordings, in one commit.

        delta-rs notices a commit of another job in between only after the version that the table is
        at, so the recordings are compared with what the job has planned by.
        """
        now_ms = time.time_ns() // 1_000_000
        new = list(files)
        removed: list[RemoveAction] = []
        try:
            self.refresh()
            present = self._extents(extents)
            if any(present.get(id) != self._planned.get(id) for id in extents):
                raise TableChangedError(f"another job has changed {self.store.name}")
            for action, copy in self._replaced(replaced, now_ms):
                removed.append(action)
                if copy is not None:
                    new.append(copy)
        except BaseException:
            with suppress(AerotapeError):
                self.discard(new)
            raise
        self._attempt([*(_added(file, now_ms) for file in new), *removed], extents, now_ms)

    def _attempt(
        self,
        actions: list[AddAction | RemoveAction],
        extents: Mapping[int, Extent],
        now_ms: int,
    ) -> None:
        """Commit, and after an error look in the log for whether the commit is there."""
        from deltalake.transaction import CommitProperties, Transaction

        commit_id = uuid.uuid4().hex
        properties = CommitProperties(
            custom_metadata={_COMMIT_ID: commit_id},
            app_transactions=[
                Transaction(app_id, version, now_ms)
                for id, extent in extents.items()
                for last in (extent.last or _NO_ROW,)
                for app_id, version in (
                    (f"aerotape:{id}:from", extent.ranges[0][0]),
                    (f"aerotape:{id}", extent.to_position),
                    (f"aerotape:{id}:last", last.position),
                    (f"aerotape:{id}:source", extent.identity << _CHECKSUM_BITS | last.checksum),
                )
            ],
        )
        table = self._existing()
        version = table.version()
        try:
            with self._errors("commit to"):
                table.create_write_transaction(
                    actions,
                    "append",
                    table.schema(),
                    partition_by=self._partitions,
                    commit_properties=properties,
                )
        except AerotapeError:
            if not self._has_commit(commit_id, version + 1):
                raise

    def _has_commit(self, commit_id: str, from_version: int) -> bool:
        """Return whether the log has a commit, at a version or later (StorageError)."""
        table = self._existing()
        with self._errors("read"):
            table.update_incremental()
        for version in range(from_version, table.version() + 1):
            # `DeltaTable.history` does not release the interpreter lock while it reads.
            with self.store.open_file(f"_delta_log/{version:020}.json") as stream:
                if commit_id.encode() in stream.read():
                    return True
        return False

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
            return self._existing().vacuum(
                retention_hours, dry_run=False, enforce_retention_duration=False, full=True
            )

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
            text = str(error).strip().partition("\n")[0]
            message = f"cannot {what} Delta table {self.store.name}: {text}"
            if any(words in text for words in _CONFLICTS):
                raise TableChangedError(message) from error
            raise StorageError(message, self.store.name) from error


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
