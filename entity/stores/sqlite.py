"""A store in an SQLite file, the default: embedded, one replicator, readers in any process.

A reader does not change the file. While no replicator has it open, there is no write-ahead log
(`-wal`), and a usual connection would create one; a reader then opens the file as immutable, and
opens it again when it has changed or a write-ahead log has appeared. Beside a write-ahead log,
SQLite creates the file of shared memory (`-shm`) if it is missing.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from aerotape.entity.stores.base import StoreOptions
from aerotape.entity.stores.sql import SqlStore
from aerotape.entity.stores.tables import NAMES
from aerotape.errors import EntityStoreError

_BUSY_TIMEOUT_S: Final = 30.0
_PRAGMAS: Final = (
    # Larger than the default, for payloads of some hundred bytes; only before the file exists.
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    # Retention relies on the pointer, so a commit must survive a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA cache_size = -131072",
    # Pages change in many batches before they are written into the file.
    "PRAGMA wal_autocheckpoint = 16384",
    "PRAGMA temp_store = MEMORY",
)
_ERRORS: Final = (sqlite3.Error, OSError)
_INDEXES: Final = ("metajournal_index", "journal_index", "tag_index")


class SqliteStore(SqlStore):
    """A store in an SQLite file; the namespace is a prefix of its tables.

    Attributes:
        path: of the file, without symbolic links.
    """

    def __init__(
        self, path: str | Path, options: StoreOptions | None = None, *, writable: bool = False
    ) -> None:
        """Open it.

        Args:
            path: of the file.
            options: of the store.
            writable: for a replicator: create the file and the tables if there are none.

        Raises:
            EntityStoreError: the file cannot be opened, has no tables to read, or its tables have
                another version.
        """
        options = options or StoreOptions()
        super().__init__(f"sqlite:{path}", options, writable)
        self.tables = {name: f'"{options.namespace}_{name}"' for name in (*NAMES, *_INDEXES)}
        self.path = Path(path).resolve()  # beside which the write-ahead log is
        self._log_path = f"{self.path}-wal"
        self._reading = threading.Lock()
        self._writing = threading.RLock()
        # For a reader of an immutable file: the file as it was when it was opened.
        self._seen: tuple[int, ...] | None = None
        self._connections: list[sqlite3.Connection] = []
        try:
            with self._errors():
                if writable:
                    self._writer, self._reader = self._connect(), self._connect()
                    with self._transaction():
                        self._create_tables()
                else:
                    self._reader = self._connect_reader()
                    self._check_tables()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = self._opened(self.path)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise self.missing()
        uri = f"file:{quote(os.fsencode(self.path))}?mode=ro"
        state = self._state()
        has_log = bool(state[0])
        self._seen = None if has_log else state
        return self._opened(uri if has_log else f"{uri}&immutable=1")

    def _opened(self, path: str | Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            uri=isinstance(path, str),
        )
        self._connections.append(connection)
        return connection

    def _state(self) -> tuple[int, ...]:
        """Return whether there is a write-ahead log, and what changes with the file."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return (0,)
        return os.access(self._log_path, os.F_OK), found.st_ino, found.st_size, found.st_mtime_ns

    def _exists(self, name: str, query: Callable[[str, Sequence[Any]], list[Any]]) -> bool:
        name = f"{self.options.namespace}_{name}"
        return bool(query("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)))

    def _dialect(self, sql: str) -> str:
        return sql.format(**self.tables, bytes="blob", clustered=" WITHOUT ROWID")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> EntityStoreError:
        return EntityStoreError(f"{self.url}: {error}", self.url)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.check_writable()
        with self._errors(), self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._writer.execute(sql, parameters).rowcount

    def _execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._writer.executemany(sql, rows)

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[Any], then: str) -> None:
        marks = ", ".join("?" * len(columns))
        names = ", ".join(f'"{name}"' for name in columns)
        self._writer.executemany(
            f"INSERT INTO {self.tables[table]} ({names}) VALUES ({marks}) {then}", rows
        )

    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:  # without `_errors`, which takes as long as a short query
            with self._reading:
                return self._rows(sql, parameters)
        except _ERRORS as error:
            raise self._failed(error) from error

    def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        while True:
            try:
                rows = self._reader.execute(sql, parameters).fetchall()
            except sqlite3.DatabaseError:
                if not self._has_changed():
                    raise
            else:
                if not self._has_changed():
                    return rows
            before, self._reader = self._reader, self._connect_reader()
            self._connections.remove(before)
            before.close()

    def _has_changed(self) -> bool:
        """Whether a file that was opened as immutable is another one now."""
        return self._seen is not None and self._seen != self._state()

    def _query_in(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._writer.execute(sql, parameters).fetchall()
