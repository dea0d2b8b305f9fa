"""Connection, tables, settings and locks of a store in Cassandra."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from aerotape.entity.stores.base import (
    PAGE,
    REPLICATOR_LOCK,
    SCHEMA_VERSION,
    VERSION_SETTING,
    EntityStore,
    StoreOptions,
)
from aerotape.entity.stores.cql import (
    KEYSPACE,
    LOCK_STATEMENTS,
    LOCKS,
    READS,
    SETTING,
    TABLES,
    WRITES,
)
from aerotape.entity.stores.owner import is_dead
from aerotape.errors import ConfigurationError, EntityStoreError
from aerotape.formatting import not_installed

CONCURRENCY: Final = 64
"""Statements that are executed at a time."""
_SEGMENTS_SETTING: Final = "segments"
_SCHEMA_LOCK: Final = "schema"
_SCHEMA_WAIT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10
_REQUEST_TIMEOUT_S: Final = 10  # less than the lease of a replicator


class CassandraTables(EntityStore):
    """The connection to a cluster, with the tables of a namespace, its settings and locks."""

    def __init__(
        self,
        hosts: Sequence[str],
        options: StoreOptions | None = None,
        user: str | None = None,
        password: str | None = None,
        *,
        writable: bool = False,
    ) -> None:
        """Connect.

        Args:
            hosts: contact points, HOST or HOST:PORT; all have the port of the first.
            options: of the store.
            user: for a cluster that requires it, with the password.
            password: of the user.
            writable: for a replicator: create the tables if there are none.

        Raises:
            ConfigurationError: cassandra-driver is not installed.
            EntityStoreError: no connection, no tables to read, or they have another version or
                number of segments.
        """
        options = options or StoreOptions()
        super().__init__(f"cassandra://{','.join(hosts)}/{options.namespace}", options, writable)
        try:
            import cassandra
            import cassandra.auth
            import cassandra.cluster
            import cassandra.concurrent
            import cassandra.query
            import cassandra.util
        except ImportError as error:
            missing = not_installed("cassandra-driver", "cassandra")
            raise ConfigurationError(f"{missing} ({error})", "store") from None
        self._driver = cassandra
        names = [host.partition(":")[0] for host in hosts]
        profile = cassandra.cluster.ExecutionProfile(
            load_balancing_policy=cassandra.cluster.default_lbp_factory(),
            consistency_level=cassandra.ConsistencyLevel.LOCAL_QUORUM,
            request_timeout=_REQUEST_TIMEOUT_S,
        )
        self._cluster = cassandra.cluster.Cluster(
            names,
            port=int(hosts[0].partition(":")[2] or 9042),
            execution_profiles={cassandra.cluster.EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=_CONNECT_TIMEOUT_S,
            control_connection_timeout=_CONNECT_TIMEOUT_S,
            auth_provider=cassandra.auth.PlainTextAuthProvider(user, password) if user else None,
        )
        with self._errors():
            try:
                self._session = self._cluster.connect()
                self._prepare()
            except BaseException:
                self._cluster.shutdown()
                raise

    def close(self) -> None:
        self._cluster.shutdown()

    def _prepare(self) -> None:
        """Create the tables if the store is writable; prepare the statements."""
        self._statements: dict[str, Any] = {}
        if self.is_writable:
            self._create()
            self._add_statements(WRITES)
        else:
            if not self._has_tables():
                raise self.missing()
            self._add_statements(SETTING)
            self._check_settings()
        self._add_statements(READS)

    def _create(self) -> None:
        """Create the tables if there are none, under the lock `schema`."""
        keyspace = self.options.namespace
        if keyspace not in self._cluster.metadata.keyspaces:
            self._session.execute(KEYSPACE.format(keyspace=keyspace))
        self._session.execute(LOCKS.format(keyspace=keyspace))
        self._add_statements(LOCK_STATEMENTS)
        deadline = time.monotonic() + _SCHEMA_WAIT_S
        while (owner := self.try_lock(_SCHEMA_LOCK)) != self.owner:
            if time.monotonic() >= deadline:
                raise EntityStoreError(
                    f"{self.url}: {owner} is creating its tables for {_SCHEMA_WAIT_S:g} s", self.url
                )
            time.sleep(0.05)
        try:
            self._create_tables()
        finally:
            self.unlock(_SCHEMA_LOCK)

    def _create_tables(self) -> None:
        is_new = not self._has_tables()
        if is_new:
            self._execute_all(TABLES)
        self._add_statements(SETTING)
        if is_new and self._setting(VERSION_SETTING) is None:
            self._set_version()
        self._check_settings()

    def _has_tables(self) -> bool:
        keyspace = self.options.namespace
        if keyspace not in self._cluster.metadata.keyspaces:
            return False
        self._cluster.refresh_keyspace_metadata(keyspace)
        return "setting" in self._cluster.metadata.keyspaces[keyspace].tables

    def _execute_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._session.execute(statement.format(keyspace=self.options.namespace))

    def _set_version(self) -> None:
        self._add_statements(WRITES)
        for name, value in (
            (_SEGMENTS_SETTING, str(self.options.segments)),
            (VERSION_SETTING, SCHEMA_VERSION),
        ):
            self._run("put_setting", name, value, now_ms())

    def _check_segments(self) -> None:
        """Check that heads are in the segments of the options; version 1 has no such setting."""
        space = self.options.namespace
        for row in self._session.execute(f"SELECT id, segment FROM {space}.metajournal LIMIT 20"):
            if row.segment != self.segment_of(row.id):
                raise EntityStoreError(
                    f"namespace {space} of {self.url} was created with another number of segments "
                    f"than {self.options.segments}: open it with segments=N",
                    self.url,
                )

    def _setting(self, name: str) -> str | None:
        row = self._run("setting", name).one()
        return None if row is None else row.value

    def _check_settings(self) -> None:
        """Check the version, and the number of segments: it is a part of the keys of heads."""
        self.check_version(self._setting(VERSION_SETTING))
        if (segments := self._setting(_SEGMENTS_SETTING)) != str(self.options.segments):
            raise EntityStoreError(
                f"namespace {self.options.namespace} of {self.url} has {segments} segments, not "
                f"{self.options.segments}: open it with segments={segments}",
                self.url,
            )

    def _add_statements(self, statements: Mapping[str, str]) -> None:
        for name, text in statements.items():
            prepared = self._session.prepare(text.format(keyspace=self.options.namespace))
            if name == "events":
                prepared.fetch_size = PAGE
            self._statements[name] = prepared

    def _run(self, name: str, *parameters: Any) -> Any:
        return self._session.execute(self._statements[name], parameters)

    def _run_all(self, statements: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Execute statements concurrently; return their results in order."""
        results = self._driver.concurrent.execute_concurrent(
            self._session, list(statements), concurrency=CONCURRENCY
        )
        return [result.result_or_exc for result in results]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (
            self._driver.DriverException,
            self._driver.RequestExecutionException,
            self._driver.cluster.NoHostAvailable,
        ) as error:
            text = " ".join(str(error).split())
            raise EntityStoreError(
                f"{self.url}: {type(error).__name__}: {text}", self.url
            ) from error

    # -- locks ---------------------------------------------------------------------------------

    def try_lock(self, name: str) -> str:
        self.check_writable()
        ttl_s = -(-self.options.lease_ms // 1000)
        with self._errors():
            if (taken := self._run("lock", name, self.owner, ttl_s).one()).applied:
                return self.owner
            owner: str = taken.owner
            if owner == self.owner or is_dead(owner):
                renewed = self._run("relock", ttl_s, self.owner, name, owner).one()
                return self.owner if renewed.applied else owner
            return owner

    def unlock(self, name: str) -> None:
        self.check_writable()
        with self._errors():
            self._run("unlock", name, self.owner)

    def renew_lock(self) -> None:
        self.check_writable()
        with self._errors():
            self._renew()

    def _renew(self) -> None:
        ttl_s = -(-self.options.lease_ms // 1000)
        row = self._run("relock", ttl_s, self.owner, REPLICATOR_LOCK, self.owner).one()
        if not row.applied:
            raise self.locked(getattr(row, "owner", None) or "released by another process")


def now_ms() -> int:
    """Return the time, milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
