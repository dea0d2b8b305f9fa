"""A store in an SQLite file, the default: embedded, one replicator, readers in any process."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from aerotape.archive.entity.stores.base import StoreOptions
from aerotape.archive.entity.stores.sql import JOURNAL, METAJOURNAL, OTHERS, SqlStore
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
_TABLES: Final = ("metajournal", "journal", "pointer2", "setting", "locks", "metajournal_index")


class SqliteStore(SqlStore):
    """A store in an SQLite file; the namespace is a prefix of its tables."""

    def __init__(self, path: str | Path, options: StoreOptions | None = None) -> None:
        """Open or create it.

        Raises:
            EntityStoreError: the file cannot be opened, or its tables have another version.
        """
        options = options or StoreOptions()
        super().__init__(f"sqlite:{path}", options)
        self.tables = {name: f'"{options.namespace}_{name}"' for name in _TABLES}
        self._reading = threading.Lock()
        self._writing = threading.RLock()
        with self._errors():
            self._writer = self._connect(path)
            try:
                self._reader = self._connect(path)
                self._prepare()
            except BaseException:
                self._writer.close()
                raise

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def _connect(self, path: str | Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection

    def _prepare(self) -> None:
        """Create the tables if there are none; check their version."""
        name = f"{self.options.namespace}_setting"
        # Rows in the order of the key: the events of a journal are adjacent.
        statements = (METAJOURNAL + " WITHOUT ROWID", JOURNAL + " WITHOUT ROWID", *OTHERS)
        with self._transaction():
            found = self._query_in("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
            self._create_tables(
                not found, (sql.format(**self.tables, bytes="blob") for sql in statements)
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise EntityStoreError(f"{self.url}: {error}", self.url) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
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
        with self._errors(), self._reading:
            return self._reader.execute(sql, parameters).fetchall()

    def _query_in(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._writer.execute(sql, parameters).fetchall()
