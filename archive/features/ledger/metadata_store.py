"""The metadata of all ledgers of an archive directory, in an SQLite database.

`ledgers.sqlite` lies beside the catalog. It is created with the first ledger, so a directory
without ledgers has none. A row's key is the 16 big-endian bytes of the ledger's id: rows sort as
ids do. Every change is on storage when its method returns. A database that is missing or damaged
is built again from the recordings (`metadata_rebuild`); a damaged one is renamed first. One that is
locked, or that the operating system cannot read, is not damaged.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aerotape.archive.features.ledger.boot import boot_id
from aerotape.archive.features.ledger.entry_lookup import EntryMark
from aerotape.archive.features.ledger.metadata import FILE_NAME as FILE_NAME
from aerotape.archive.features.ledger.metadata import (
    LedgerMetadata,
    exists_already,
    fenced,
    unknown_ledger,
)
from aerotape.archive.features.ledger.protocol.member_record import MemberRecord
from aerotape.catalog.durability import force_names
from aerotape.catalog.no_follow import check_file, open_no_follow
from aerotape.codecs.generated.ledger_control import DigestType, LedgerState, LedgerType
from aerotape.errors import CodecError, StorageError, reason_of
from aerotape.protocol import NULL_POSITION, NULL_VALUE
from aerotape.qualified_id import MAX_UNSIGNED, QualifiedId

if TYPE_CHECKING:
    from aerotape.archive.features.ledger.protocol.member_record import Epoch

JOURNAL_NAME: Final = FILE_NAME + "-journal"
_VERSION: Final = 2
# Clients wait longer, and receive that another process has locked the database.
_LOCK_TIMEOUT_S: Final = 2.0
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLE: Final = """
CREATE TABLE ledgers (
    key BLOB PRIMARY KEY CHECK (length(key) = 16),
    type TEXT NOT NULL,
    digest_type TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    password_hash BLOB NOT NULL,
    write_quorum INTEGER NOT NULL,
    ack_quorum INTEGER NOT NULL,
    member_record TEXT NOT NULL,
    state TEXT NOT NULL,
    recording_id INTEGER NOT NULL,
    last_entry_id INTEGER NOT NULL,
    length INTEGER NOT NULL,
    end_position INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER immutable BEFORE UPDATE OF key, type, digest_type ON ledgers
BEGIN SELECT RAISE(ABORT, 'key, type and digest type of a ledger never change'); END;
"""
# What is known to be on storage of the recordings of ledgers, and in which run of the machine that
# was noted. Another release may have used the database without it.
_FORCED: Final = """
CREATE TABLE IF NOT EXISTS forced (
    key BLOB PRIMARY KEY, position INTEGER NOT NULL, boot TEXT NOT NULL
) WITHOUT ROWID;
"""
# The last entry before such a position, where it is known: that part may be damaged later. It holds
# until the ledger ends before it.
_LAST_ENTRIES: Final = """
CREATE TABLE IF NOT EXISTS last_entries (
    key BLOB PRIMARY KEY, position INTEGER NOT NULL, entry_end INTEGER NOT NULL,
    entry_id INTEGER NOT NULL, length INTEGER NOT NULL, last_add_confirmed INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS shortened AFTER INSERT ON forced
BEGIN DELETE FROM last_entries WHERE key = NEW.key AND position > NEW.position; END;
"""
_HAS_NOTES: Final = (
    "SELECT count(*) = 3 FROM sqlite_master WHERE name IN ('forced', 'last_entries', 'shortened')"
)
_COLUMNS: Final = (
    "key", "type", "digest_type", "created_ms", "password_hash", "write_quorum", "ack_quorum",
    "member_record", "state", "recording_id", "last_entry_id", "length", "end_position",
)  # fmt: skip
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM ledgers"
_OPEN: Final = (LedgerState.OPEN.name, NULL_VALUE, 0, NULL_POSITION)
_INSERT: Final = f"INSERT INTO ledgers VALUES ({', '.join('?' * len(_COLUMNS))})"


class Forced(NamedTuple):
    """The part of a ledger's recording that is known to be on storage.

    Attributes:
        position: all up to here, bytes.
        boot: the run of the machine in which that was noted.
    """

    position: int
    boot: str


class NotedEntry(NamedTuple):
    """The last entry of a ledger up to a position.

    Attributes:
        position: all up to here was on storage, bytes.
        entry: the last one before it.
    """

    position: int
    entry: EntryMark


class DamagedMetadataError(StorageError):
    """The file is proven not to be a sound database."""


class MetadataStore:
    """The open database. For one thread."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Use `open` or `create`."""
        self._path = path
        self._connection = connection

    @classmethod
    def open(cls, archive_dir: Path) -> MetadataStore:
        """Open and check an existing database.

        Raises:
            DamagedMetadataError: it is damaged, or was never written completely.
            StorageError: it is of another version, is a symbolic link, or cannot be read now.
        """
        path = archive_dir / FILE_NAME
        with _storage_errors(path, "read"):
            connection = _connect(path)
            try:
                problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if problem == "ok" and version == 0:
                    problem = "it was never written completely"
                if problem != "ok":
                    raise DamagedMetadataError(f"cannot use {_what(path)}: {problem}", path)
                if version != _VERSION:
                    raise StorageError(
                        f"cannot use {_what(path)}: version {version}, expected {_VERSION}; use the"
                        " release that wrote it, or move it away to have it rebuilt",
                        path,
                    )
                connection.execute(f"{_SELECT} LIMIT 1")
                if not connection.execute(_HAS_NOTES).fetchone()[0]:
                    connection.executescript(_FORCED + _LAST_ENTRIES)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    @classmethod
    def create(cls, archive_dir: Path, ledgers: Iterable[LedgerMetadata] = ()) -> MetadataStore:
        """Create the database; it and its name are on storage on return (StorageError)."""
        path = archive_dir / FILE_NAME
        with _storage_errors(path, "create"):
            _create_file(path)
            connection = _connect(path)
            try:
                connection.executescript(
                    f"BEGIN;{_TABLE}{_FORCED}{_LAST_ENTRIES}PRAGMA user_version={_VERSION};"
                )
                connection.executemany(_INSERT, map(_row, ledgers))
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                path.unlink(missing_ok=True)
                raise
        force_names(archive_dir)
        return cls(path, connection)

    def add(self, metadata: LedgerMetadata) -> None:
        """Add a ledger.

        Raises:
            LedgerExistsError: there is one with this id.
            StorageError: it cannot be written.
        """
        try:
            self._execute(_INSERT, _row(metadata))
        except sqlite3.IntegrityError:
            raise exists_already(metadata.ledger) from None

    def get(self, ledger: QualifiedId) -> LedgerMetadata:
        """Return the metadata of a ledger.

        Raises:
            UnknownLedgerError: there is no such ledger.
            StorageError: it cannot be read.
        """
        found = self._select("WHERE key = ?", ledger.key)
        if not found:
            raise unknown_ledger(ledger)
        return found[0]

    def has(self, ledger: QualifiedId) -> bool:
        """Return whether there is a ledger with this id (StorageError)."""
        return bool(self._select("WHERE key = ?", ledger.key))

    def list_scope(self, scope_id: int, from_ledger_id: int, count: int) -> list[LedgerMetadata]:
        """Return up to `count` ledgers of a scope in the order of their ids (StorageError)."""
        bounds = [
            scope_id.to_bytes(8, "big") + each.to_bytes(8, "big")
            for each in (from_ledger_id, MAX_UNSIGNED)
        ]
        return self._select("WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?", *bounds, count)

    def first_after_scope(self, scope_id: int) -> list[QualifiedId]:
        """Return the first ledger of a later scope; [] if there is none (StorageError)."""
        last = scope_id.to_bytes(8, "big") + MAX_UNSIGNED.to_bytes(8, "big")
        return [each.ledger for each in self._select("WHERE key > ? ORDER BY key LIMIT 1", last)]

    def recordings(self) -> dict[int, QualifiedId]:
        """Return the ledgers by their recordings, those that have one (StorageError)."""
        query = "SELECT recording_id, key FROM ledgers WHERE recording_id >= 0"
        with _storage_errors(self._path, "read"):
            rows = self._connection.execute(query).fetchall()
        return {recording_id: QualifiedId.from_key(key) for recording_id, key in rows}

    def open_recordings(self) -> dict[int, LedgerMetadata]:
        """Return the ledgers that are open by their recordings, if they have one (StorageError)."""
        found = self._select("WHERE state = ? AND recording_id >= 0", LedgerState.OPEN.name)
        return {each.recording_id: each for each in found}

    def forced_of_recordings(self) -> dict[int, tuple[Forced | None, DigestType]]:
        """Return `forced` and the digest type of each ledger, by its recording (StorageError)."""
        query = (
            "SELECT recording_id, digest_type, position, boot FROM ledgers LEFT JOIN forced"
            " USING (key) WHERE recording_id >= 0"
        )
        with _storage_errors(self._path, "read"):
            rows = self._connection.execute(query).fetchall()
        return {
            recording_id: (
                None if position is None else Forced(position, boot),
                DigestType[digest_type],
            )
            for recording_id, digest_type, position, boot in rows
        }

    def forced(self, ledger: QualifiedId) -> Forced | None:
        """Return the part of a ledger that is on storage; None: not known (StorageError)."""
        query = "SELECT position, boot FROM forced WHERE key = ?"
        with _storage_errors(self._path, "read"):
            row = self._connection.execute(query, (ledger.key,)).fetchone()
        return None if row is None else Forced(row["position"], row["boot"])

    def set_forced(
        self, ledger: QualifiedId, position: int, last: EntryMark | None = None
    ) -> None:
        """Note that a ledger is on storage up to a position, bytes, if not further.

        Args:
            last: the last entry before it; None: not known.

        Raises:
            StorageError: it cannot be written.
        """
        self.set_all_forced({ledger: (position, last)})

    def set_all_forced(self, ledgers: Mapping[QualifiedId, tuple[int, EntryMark | None]]) -> None:
        """As `set_forced`, of several ledgers; all or none is stored."""
        with self._transaction():
            for ledger, (position, last) in ledgers.items():
                self._set_forced(ledger, position)
                if last is not None:
                    self._execute(
                        "INSERT INTO last_entries SELECT key, ?, ?, ?, ?, ? FROM ledgers"
                        " WHERE key = ? ON CONFLICT (key) DO UPDATE SET position ="
                        " excluded.position, entry_end = excluded.entry_end, entry_id ="
                        " excluded.entry_id, length = excluded.length, last_add_confirmed ="
                        " excluded.last_add_confirmed WHERE excluded.position > position",
                        (position, *astuple(last), ledger.key),
                    )

    def _set_forced(self, ledger: QualifiedId, position: int) -> None:
        # What is noted by another thread's call may be older.
        self._execute(
            "INSERT OR REPLACE INTO forced SELECT key,"
            " max(?, ifnull((SELECT position FROM forced WHERE key = ledgers.key), 0)), ?"
            " FROM ledgers WHERE key = ?",
            (position, boot_id(), ledger.key),
        )

    def cut(self, ledger: QualifiedId, position: int) -> None:
        """Note that a ledger ends at a position, bytes, or before (StorageError)."""
        with self._transaction():
            self._cut(ledger, position)

    def _cut(self, ledger: QualifiedId, position: int) -> None:
        self._execute("DELETE FROM forced WHERE key = ?", (ledger.key,))
        self._set_forced(ledger, position)

    def last_entry(self, ledger: QualifiedId, limit: int) -> NotedEntry | None:
        """Return the last entry that was noted, not after a position in bytes.

        None: not known (StorageError).
        """
        query = (
            "SELECT position, entry_end, entry_id, length, last_add_confirmed FROM last_entries"
            " WHERE key = ? AND position <= ?"
        )
        with _storage_errors(self._path, "read"):
            row = self._connection.execute(query, (ledger.key, limit)).fetchone()
        return None if row is None else NotedEntry(row[0], EntryMark(*row[1:]))

    def set_recording(self, ledger: QualifiedId, recording_id: int) -> None:
        """Set the recording of a ledger (StorageError)."""
        self._execute(
            "UPDATE ledgers SET recording_id = ? WHERE key = ?", (recording_id, ledger.key)
        )

    def set_member_record(
        self,
        ledger: QualifiedId,
        member_record: MemberRecord,
        end: EntryMark | None = None,
        forced: int | None = None,
    ) -> None:
        """Set how far the archive is in the protocol, and whether the ledger is closed.

        Args:
            end: of a ledger that is closed; None: it is open.
            forced: up to where it is on storage, bytes; None: not known.

        Raises:
            LedgerClosedError: a higher epoch has been promised.
            StorageError: it cannot be written.
        """
        promised = self.get(ledger).member_record.promised
        if promised > member_record.promised:
            raise fenced(ledger, promised)
        closed = _OPEN if end is None else _closed_at(end)
        with self._transaction():
            self._execute(
                "UPDATE ledgers SET member_record = ?, state = ?, last_entry_id = ?, length = ?,"
                " end_position = ? WHERE key = ?",
                (member_record.encode(), *closed, ledger.key),
            )
            if forced is not None:
                self._set_forced(ledger, forced)

    def promise(self, ledger: QualifiedId, epoch: Epoch, own: str) -> MemberRecord:
        """Promise an epoch, unless a higher one is promised; return what is stored then.

        Args:
            own: the name of this member, stored unless it has one.

        Raises:
            UnknownLedgerError: there is no such ledger.
            StorageError: it cannot be written.
        """
        metadata = self.get(ledger)
        member_record = metadata.member_record
        if member_record.promised < epoch:
            member_record = replace(
                member_record.named(own), promised=epoch, forgets=metadata.may_have_forgotten
            )
            self._set(ledger, member_record)
        return member_record

    def forget(self) -> None:
        """Note that this archive may lack entries of ledgers that others store, too (StorageError).

        They count again once their logs have been copied from their leaders.
        """
        for metadata in self._select("WHERE member_record != '{}'"):
            self._set(metadata.ledger, replace(metadata.member_record, forgets=True))

    def lose(self, ledger: QualifiedId, end: int) -> None:
        """Note that a log ends at a position now, before what this archive had (StorageError).

        Of a ledger that others store, too, this archive may have acknowledged what it has lost.
        """
        member_record = self.get(ledger).member_record
        with self._transaction():
            if member_record.groups:
                self._set(ledger, replace(member_record, forgets=True))
            self._cut(ledger, end)

    def set_quorums(self, ledger: QualifiedId, write_quorum: int, ack_quorum: int) -> None:
        """Set the quorums of a ledger that another archive leads (StorageError)."""
        self._execute(
            "UPDATE ledgers SET write_quorum = ?, ack_quorum = ? WHERE key = ?",
            (write_quorum, ack_quorum, ledger.key),
        )

    def set_closed(self, ledger: QualifiedId, end: EntryMark) -> None:
        """Close a ledger at its last entry (StorageError)."""
        self._execute(
            "UPDATE ledgers SET state = ?, last_entry_id = ?, length = ?, end_position = ?"
            " WHERE key = ?",
            (*_closed_at(end), ledger.key),
        )

    def remove(self, ledger: QualifiedId) -> None:
        """Remove a ledger (StorageError)."""
        with self._transaction():
            self._execute("DELETE FROM ledgers WHERE key = ?", (ledger.key,))
            for table in ("forced", "last_entries"):
                self._execute(f"DELETE FROM {table} WHERE key = ?", (ledger.key,))

    def remove_purged(self, purged: Collection[int]) -> None:
        """Complete deletions: remove the ledgers whose recordings are purged (StorageError)."""
        for recording_id, ledger in self.recordings().items():
            if recording_id in purged:
                self.remove(ledger)

    def close(self) -> None:
        """Close the database. Idempotent."""
        self._connection.close()

    def _set(self, ledger: QualifiedId, member_record: MemberRecord) -> None:
        self._execute(
            "UPDATE ledgers SET member_record = ? WHERE key = ?",
            (member_record.encode(), ledger.key),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make several changes at once (StorageError)."""
        self._execute("BEGIN IMMEDIATE", ())
        try:
            yield
            self._execute("COMMIT", ())
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def _execute(self, statement: str, values: tuple[Any, ...]) -> None:
        with _storage_errors(self._path, "write"):
            self._connection.execute(statement, values)

    def _select(self, condition: str, *values: Any) -> list[LedgerMetadata]:
        with (
            _storage_errors(self._path, "read"),
            closing(self._connection.execute(f"{_SELECT} {condition}", values)) as cursor,
        ):
            return [_metadata(row, self._path) for row in cursor]


@contextmanager
def ledgers_of(archive_dir: Path) -> Iterator[Callable[[QualifiedId], bool]]:
    """Open the metadata of a directory's ledgers, if it has any; yield whether one has an id."""
    if not (archive_dir / FILE_NAME).exists():
        yield lambda ledger: False
        return
    with closing(MetadataStore.open(archive_dir)) as store:
        yield store.has


def _what(path: Path) -> str:
    return f"the ledgers' metadata {path}"


def _create_file(path: Path) -> None:
    # Empty, which is a new database: SQLite itself would let all users read it.
    os.close(open_no_follow(path, os.O_WRONLY | os.O_CREAT))


def _connect(path: Path) -> sqlite3.Connection:
    for name in (FILE_NAME, JOURNAL_NAME):
        check_file(path.with_name(name))
    # Each statement is a transaction of its own. EXTRA: the directory is forced, too, once the
    # rollback journal is deleted, without which a power cut could undo the transaction.
    connection = sqlite3.connect(
        path, _LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA synchronous=EXTRA")
    return connection


def _why(error: sqlite3.Error, path: Path) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"{error}: free space in {path.parent}"
    if code == sqlite3.SQLITE_CANTOPEN:
        # SQLite does not say why. Not the file, whose locks are released with any descriptor of it;
        # as many as SQLite opens in addition: the journal and the directory.
        descriptors = []
        try:
            for _ in range(2):
                descriptors.append(os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as refused:
            return reason_of(refused)
        finally:
            for each in descriptors:
                os.close(each)
    return str(error)


@contextmanager
def _storage_errors(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except OSError as error:
        raise StorageError(f"cannot {what} {_what(path)}: {reason_of(error)}", path) from error
    except sqlite3.Error as error:
        why = _why(error, path) if path.exists() else "the file was removed: restart the archive"
        # The low byte of an extended code is the primary one.
        is_damage = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE
        kind = DamagedMetadataError if is_damage else StorageError
        raise kind(f"cannot {what} {_what(path)}: {why}", path) from error


def _closed_at(end: EntryMark) -> tuple[str, int, int, int]:
    return LedgerState.CLOSED.name, end.entry_id, end.length, end.position


def _row(metadata: LedgerMetadata) -> tuple[Any, ...]:
    return (
        metadata.ledger.key,
        metadata.type.name,
        metadata.digest_type.name,
        metadata.created_ms,
        metadata.password_hash,
        metadata.write_quorum,
        metadata.ack_quorum,
        metadata.member_record.encode(),
        metadata.state.name,
        metadata.recording_id,
        metadata.last_entry_id,
        metadata.length,
        metadata.end_position,
    )


def _metadata(row: sqlite3.Row, path: Path) -> LedgerMetadata:
    try:
        return LedgerMetadata(
            ledger=QualifiedId.from_key(row["key"]),
            type=LedgerType[row["type"]],
            digest_type=DigestType[row["digest_type"]],
            created_ms=row["created_ms"],
            password_hash=row["password_hash"],
            write_quorum=row["write_quorum"],
            ack_quorum=row["ack_quorum"],
            member_record=MemberRecord.decode(row["member_record"]),
            state=LedgerState[row["state"]],
            recording_id=row["recording_id"],
            last_entry_id=row["last_entry_id"],
            length=row["length"],
            end_position=row["end_position"],
        )
    except (CodecError, KeyError, ValueError, TypeError) as error:
        raise StorageError(
            f"cannot use the row {bytes(row['key']).hex()} of the ledgers' metadata {path}:"
            f" {error}",
            path,
        ) from error
