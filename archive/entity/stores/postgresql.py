"""A store in PostgreSQL; needs psycopg 3 (the extra `aerotape[postgresql]`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString

from aerotape.archive.entity.stores.base import StoreOptions
from aerotape.archive.entity.stores.sql import JOURNAL, METAJOURNAL, OTHERS, SqlStore
from aerotape.archive.entity.stores.url import without_password
from aerotape.errors import ConfigurationError, EntityStoreError
from aerotape.formatting import not_installed

if TYPE_CHECKING:
    import psycopg

_CONNECT_TIMEOUT_S: Final = 10
_TABLES: Final = ("metajournal", "journal", "pointer2", "setting", "locks")
# One at a time creates tables: a lock of the transaction, any constant.
_DDL_LOCK: Final = 0x6165726F


class PostgresqlStore(SqlStore):
    """A store in a PostgreSQL database; the namespace is a schema of it."""

    def __init__(self, conninfo: str, options: StoreOptions | None = None) -> None:
        """Connect, and create the tables if there are none.

        Args:
            conninfo: a URL or a connection string of libpq.
            options: of the store.

        Raises:
            ConfigurationError: psycopg is not installed.
            EntityStoreError: no connection, or the tables have another version.
        """
        options = options or StoreOptions()
        super().__init__(without_password(conninfo), options)
        try:
            import psycopg
        except ImportError as error:
            missing = not_installed("psycopg", "postgresql")
            raise ConfigurationError(f"{missing} ({error})", "store") from None
        self._psycopg = psycopg
        self.tables = {name: f'"{options.namespace}"."{name}"' for name in _TABLES}
        self._reading = threading.Lock()
        self._writing = threading.RLock()
        with self._errors():
            self._writer = self._connect(conninfo)
            try:
                self._reader = self._connect(conninfo)
                self._prepare()
            except BaseException:
                self._writer.close()
                raise

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def _connect(self, conninfo: str) -> psycopg.Connection[Any]:
        return self._psycopg.connect(
            conninfo, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S, client_encoding="utf8"
        )

    def _prepare(self) -> None:
        """Create the tables if there are none; check their version."""
        names = {**self.tables, "metajournal_index": "metajournal_expire_on"}
        statements = [f'CREATE SCHEMA IF NOT EXISTS "{self.options.namespace}"']
        # Ids are ordered as their bytes, as in the other stores.
        statements += (
            sql.format(**names, bytes="bytea").replace(" id text", ' id text COLLATE "C"')
            for sql in (METAJOURNAL, JOURNAL, *OTHERS)
        )
        with self._transaction():
            self._execute("SELECT pg_advisory_xact_lock(?)", (_DDL_LOCK,))
            found = self._query_in("SELECT to_regclass(?)", (self.tables["setting"],))
            self._create_tables(found == [(None,)], statements)
        for table in ("journal", "metajournal"):
            self._execute(f"CREATE TEMP TABLE staged_{table} (LIKE {self.tables[table]})")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            text = " ".join(str(error).split())
            raise EntityStoreError(f"{self.url}: {text}", self.url) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
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
