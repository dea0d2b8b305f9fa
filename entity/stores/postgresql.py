"""A store in PostgreSQL; needs psycopg 3 (the extra `aerotape[postgresql]`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString

from aerotape.entity.stores.base import StoreOptions
from aerotape.entity.stores.sql import SqlStore
from aerotape.entity.stores.tables import NAMES
from aerotape.entity.stores.url import without_password
from aerotape.errors import ConfigurationError, EntityStoreError
from aerotape.formatting import not_installed

if TYPE_CHECKING:
    import psycopg

_CONNECT_TIMEOUT_S: Final = 10
_STAGED: Final = ("metajournal", "journal", "tag", "snapshot")
_INDEXES: Final = {
    "metajournal_index": "metajournal_expire_on",
    "journal_index": "journal_offset",
    "tag_index": "tag_id",
}
# One at a time creates tables: a lock of the transaction, any constant.
_DDL_LOCK: Final = 0x6165726F


class PostgresqlStore(SqlStore):
    """A store in a PostgreSQL database; the namespace is a schema of it."""

    def __init__(
        self, conninfo: str, options: StoreOptions | None = None, *, writable: bool = False
    ) -> None:
        """Connect.

        Args:
            conninfo: a URL of libpq.
            options: of the store.
            writable: for a replicator: create the tables if there are none. Else the user needs
                USAGE of the schema and SELECT, and the server may be a standby.

        Raises:
            ConfigurationError: psycopg is not installed, or the URL is invalid.
            EntityStoreError: no connection, no tables to read, or they have another version.
        """
        options = options or StoreOptions()
        super().__init__(without_password(conninfo), options, writable)
        try:
            import psycopg
            import psycopg.conninfo
        except ImportError as error:
            missing = not_installed("psycopg", "postgresql")
            raise ConfigurationError(f"{missing} ({error})", "store") from None
        self._psycopg = psycopg
        try:
            psycopg.conninfo.conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:  # libpq's text has the password
            raise ConfigurationError(
                f"store {self.url!r} is not a URL of PostgreSQL: expected "
                "postgresql://USER:PASSWORD@HOST/DATABASE, special characters as %XX",
                "store",
            ) from None
        self.tables = {name: f'"{options.namespace}"."{name}"' for name in NAMES}
        self._reading = threading.Lock()
        self._writing = threading.RLock()
        self._connections: list[psycopg.Connection[Any]] = []
        try:
            with self._errors():
                if writable:
                    self._writer = self._connect(conninfo)
                    self._reader = self._connect(conninfo)
                    self._prepare()
                else:
                    self._reader = self._connect(conninfo)
                    self._check_tables()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connect(self, conninfo: str) -> psycopg.Connection[Any]:
        connection = self._psycopg.connect(
            conninfo, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S, client_encoding="utf8"
        )
        self._connections.append(connection)
        return connection

    def _prepare(self) -> None:
        """Create the tables, and those through which rows are copied."""
        with self._transaction():
            self._execute("SELECT pg_advisory_xact_lock(?)", (_DDL_LOCK,))
            if not self._exists("setting", self._query_in):
                self._execute(f'CREATE SCHEMA IF NOT EXISTS "{self.options.namespace}"')
            self._create_tables()
        for table in _STAGED:
            self._execute(f"CREATE TEMP TABLE staged_{table} (LIKE {self.tables[table]})")

    def _exists(self, name: str, query: Callable[[str, Sequence[Any]], list[Any]]) -> bool:
        name = f'"{self.options.namespace}"."{_INDEXES.get(name, name)}"'
        return query("SELECT to_regclass(?)", (name,)) != [(None,)]

    def _dialect(self, sql: str) -> str:
        sql = sql.format(**self.tables, **_INDEXES, bytes="bytea", clustered="")
        # Ids are ordered as their bytes, as in the other stores.
        return sql.replace(" id text", ' id text COLLATE "C"')

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            text = " ".join(str(error).split())
            raise EntityStoreError(f"{self.url}: {text}", self.url) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.check_writable()
        with self._errors(), self._writing, self._writer.transaction():
            yield

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._writer.execute(_formatted(sql), parameters).rowcount

    def _execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        rows = list(rows)
        if rows:
            with self._writer.cursor() as cursor:
                cursor.executemany(_formatted(sql), rows)

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[Any], then: str) -> None:
        """Copy the rows into a temporary table, the fastest way in, and insert from there."""
        names = ", ".join(f'"{name}"' for name in columns)
        with self._writer.cursor() as cursor:
            cursor.execute(_formatted(f"TRUNCATE staged_{table}"))
            with cursor.copy(_formatted(f"COPY staged_{table} ({names}) FROM STDIN")) as copy:
                for row in rows:
                    copy.write_row(row)
            cursor.execute(
                _formatted(
                    f"INSERT INTO {self.tables[table]} ({names})"
                    f" SELECT {names} FROM staged_{table} {then}"
                )
            )

    def _among(self, ids: Sequence[str]) -> tuple[str, Sequence[Any]]:
        return "= ANY(?)", (list(ids),)  # a statement of one length, planned once

    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._errors(), self._reading:
            return self._reader.execute(_formatted(sql), parameters).fetchall()

    def _query_in(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._writer.execute(_formatted(sql), parameters).fetchall()


def _formatted(sql: str) -> LiteralString:
    """Return a statement with psycopg's parameter markers. Names in it were checked."""
    return sql.replace("?", "%s")
