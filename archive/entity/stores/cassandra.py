"""A store in Cassandra with kafka-journal's tables; needs the extra `aerotape[cassandra]`.

There are no transactions. A batch is stored in an order in which it can be repeated: deleted and
inserted events, heads, then the pointer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from aerotape.archive.entity.records import EventRecord, Head, Pointer, SnapshotRecord
from aerotape.archive.entity.stores.base import (
    MAX_SNAPSHOTS,
    OLD_SCHEMA_VERSION,
    REPLICATOR_LOCK,
    SCHEMA_VERSION,
    VERSION_SETTING,
    EntityStore,
    StoreOptions,
)
from aerotape.archive.entity.stores.cql import (
    KEYSPACE,
    LOCK_STATEMENTS,
    LOCKS,
    MIGRATION,
    READS,
    SETTING,
    TABLES,
    WRITES,
)
from aerotape.archive.entity.stores.cql_rows import (
    event_of_row,
    event_parameters,
    head_of_row,
    head_parameters,
    snapshot_of_row,
    snapshot_parameters,
)
from aerotape.archive.entity.stores.owner import is_dead
from aerotape.archive.entity.stores.rows import (
    EventRow,
    Rows,
    event_rows,
    expire_on,
    snapshot_rows,
)
from aerotape.archive.entity.transitions import Change
from aerotape.errors import ConfigurationError, EntityStoreError
from aerotape.formatting import not_installed

_SEGMENTS_SETTING: Final = "segments"
_SCHEMA_LOCK: Final = "schema"
_SCHEMA_WAIT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10
_REQUEST_TIMEOUT_S: Final = 20
_CONCURRENCY: Final = 64
_BATCH: Final = 32


class CassandraStore(EntityStore):
    """A store in a Cassandra cluster; the namespace is a keyspace.

    A writable store creates a keyspace that does not exist, with one replica: create it first for
    more.
    """

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
            writable: for a replicator: create the tables if there are none, and migrate tables of
                an earlier version.

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
        """Create or migrate the tables if the store is writable; prepare the statements."""
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
        """Create the tables if there are none or migrate them, under the lock `schema`."""
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
        version = self._setting(VERSION_SETTING)
        if is_new and version is None:
            self._set_version()
        elif version == OLD_SCHEMA_VERSION:
            with self.replicating():  # no replicator of that version is running
                table = self._cluster.metadata.keyspaces[self.options.namespace].tables
                has_column = "expires" in table["metajournal"].columns
                self._execute_all(MIGRATION[1:] if has_column else MIGRATION)
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
            self._run("put_setting", name, value, _now_ms())

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
            self._statements[name] = prepared

    def _run(self, name: str, *parameters: Any) -> Any:
        return self._session.execute(self._statements[name], parameters)

    def _run_all(self, statements: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Execute statements concurrently; return their results in order."""
        results = self._driver.concurrent.execute_concurrent(
            self._session, list(statements), concurrency=_CONCURRENCY
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

    # -- reading -------------------------------------------------------------------------------

    def heads(self, topic: str, ids: Sequence[str]) -> dict[str, Head]:
        statement = self._statements["head"]
        with self._errors():
            results = self._run_all((statement, (topic, self.segment_of(id), id)) for id in ids)
            rows = [result.one() for result in results]
            return {row.id: head_of_row(row) for row in rows if row is not None}

    def events(self, topic: str, id: str, from_seq_nr: int = 1) -> Iterator[EventRecord]:
        head = self.head(topic, id)
        if head is None:
            return
        after = max(from_seq_nr - 1, head.delete_to or 0)
        record_id = UUID(head.record_id)
        for segment in range(
            after // head.segment_size, (head.seq_nr - 1) // head.segment_size + 1
        ):
            with self._errors():
                rows = iter(self._run("events", id, topic, segment, after, head.seq_nr))
            while True:
                with self._errors():  # the next page may be fetched
                    row = next(rows, None)
                if row is None:
                    break
                if row.meta_record_id == record_id:
                    yield event_of_row(row)

    def pointer(self, topic: str, partition: int) -> Pointer | None:
        with self._errors():
            row = self._run("pointer", topic, partition).one()
        return None if row is None else Pointer(row.offset, row.next_position)

    def pointers(self, topic: str) -> dict[int, Pointer]:
        with self._errors():
            return {
                row.partition: Pointer(row.offset, row.next_position)
                for row in self._run("pointers")
                if row.topic == topic
            }

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        pointer = self.pointer(topic, partition)
        return pointer, self.head(topic, id)

    def topics(self) -> list[str]:
        with self._errors():
            return sorted({row.topic for row in self._run("pointers")})

    def ids(
        self, topic: str, after: str | None = None, limit: int = 1000
    ) -> list[tuple[str, Head]]:
        found: list[Any] = []
        segment = 0
        with self._errors():
            if after is not None:
                segment = self.segment_of(after)
                found += self._run("heads_after", topic, segment, after, limit)
                segment += 1
            while len(found) < limit and segment < self.options.segments:
                end = min(segment + _CONCURRENCY, self.options.segments)
                statement = self._statements["heads_of"]
                for rows in self._run_all(
                    (statement, (topic, each, limit)) for each in range(segment, end)
                ):
                    found += rows
                segment = end
        return [(row.id, head_of_row(row)) for row in found[:limit]]

    def expired(self, topic: str, now_ms: int) -> Iterator[tuple[str, Head]]:
        with self._errors():
            for row in self._run("expired", topic, expire_on(now_ms)):
                head = head_of_row(row)
                if head.expires_ms is not None and head.expires_ms <= now_ms:
                    yield row.id, head

    def snapshots(self, topic: str, id: str, limit: int = MAX_SNAPSHOTS) -> list[SnapshotRecord]:
        if (head := self.head(topic, id)) is None:
            return []
        record_id = UUID(head.record_id)
        with self._errors():
            rows = [row for row in self._run("snapshots", topic, id)
                    if row.meta_record_id == record_id]  # fmt: skip
        return [snapshot_of_row(row) for row in rows[:limit]]

    # -- writing -------------------------------------------------------------------------------

    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        self.check_writable()
        with self._errors():
            self._renew()
            changed = [(id, change) for id, change in changes.items() if not change.is_empty]
            self._run_all(
                each for id, change in changed for each in self._deletes(topic, id, change)
            )
            rows = Rows()
            for id, change in changed:
                if change.head is not None:
                    rows.events.extend(event_rows(topic, change))
                    rows.snapshots.extend(snapshot_rows(topic, change))
                    rows.heads.append((id, change.head))
            self._put(topic, rows)
            statement = self._statements["delete_head"]
            self._run_all(
                (statement, (topic, self.segment_of(id), id))
                for id, change in changed
                if change.head is None
            )
            self._put_pointer(topic, partition, pointer)

    def load(self, topic: str, batches: Iterable[Rows], pointers: Mapping[int, Pointer]) -> None:
        self.check_writable()
        with self._errors():
            self._run("put_setting", _loading(topic), self.owner, _now_ms())
            for rows in batches:
                self._renew()
                self._put(topic, rows)
            self._renew()
            # Either all pointers are stored and the load is over, or none.
            batch = self._batch(self._driver.query.BatchType.LOGGED)
            now_ms = _now_ms()
            for partition, pointer in pointers.items():
                values = (topic, partition, *pointer, now_ms, now_ms)
                batch.add(self._statements["new_pointer"], values)
            batch.add(self._statements["delete_setting"], (_loading(topic),))
            self._session.execute(batch)

    def discard_load(self, topic: str) -> None:
        self.check_writable()
        with self._errors():
            if self._setting(_loading(topic)) is None:
                return
            after = None
            while found := self.ids(topic, after):
                self._renew()
                changes = {id: Change(head, True, None, [], None) for id, head in found}
                for id, change in changes.items():
                    self._run_all(self._deletes(topic, id, change))
                statement = self._statements["delete_head"]
                self._run_all((statement, (topic, self.segment_of(id), id)) for id in changes)
                after = found[-1][0]

    def _put(self, topic: str, rows: Rows) -> None:
        """Store events and snapshots, then heads; keep the latest snapshots."""
        self._run_all(self._event_statements(rows.events))
        statement = self._statements["put_snapshot"]
        self._run_all((statement, snapshot_parameters(row)) for row in rows.snapshots)
        for id in {row[1] for row in rows.snapshots}:
            found = list(self._run("old_snapshot", topic, id, MAX_SNAPSHOTS + 1))
            if len(found) > MAX_SNAPSHOTS:
                self._run("delete_old_snapshots", topic, id, found[-1].seq_nr)
        statement = self._statements["put_head"]
        self._run_all(
            (statement, head_parameters(topic, id, self.segment_of(id), head, self._driver.util))
            for id, head in rows.heads
        )

    def _deletes(self, topic: str, id: str, change: Change) -> Iterator[tuple[Any, Any]]:
        before = change.before
        if before is None:
            return
        if change.is_purged:
            # One segment more on both sides, for events that a purge of before has left over.
            first = max(0, (before.delete_to or 0) // before.segment_size - 1)
            last = (max(before.seq_nr, before.delete_to or 0) - 1) // before.segment_size + 1
            for segment in range(first, last + 1):
                yield self._statements["delete_segment"], (id, topic, segment)
            yield self._statements["delete_snapshots"], (topic, id)
        elif change.delete is not None:
            begin, end = change.delete
            size = before.segment_size
            for segment in range((begin - 1) // size, (end - 1) // size + 1):
                yield self._statements["delete_events"], (id, topic, segment, begin, end)

    def _event_statements(self, inserted: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield batches of the events of one segment, which are stored all or none."""
        statement = self._statements["put_event"]
        for _, rows in groupby(map(EventRow._make, inserted), lambda row: (row.id, row.segment)):
            parameters = [event_parameters(row) for row in rows]
            if len(parameters) == 1:
                yield statement, parameters[0]
                continue
            for begin in range(0, len(parameters), _BATCH):
                batch = self._batch(self._driver.query.BatchType.UNLOGGED)
                for each in parameters[begin : begin + _BATCH]:
                    batch.add(statement, each)
                yield batch, ()

    def _batch(self, kind: Any) -> Any:
        return self._driver.query.BatchStatement(
            kind, consistency_level=self._driver.ConsistencyLevel.LOCAL_QUORUM
        )

    def _put_pointer(self, topic: str, partition: int, pointer: Pointer) -> None:
        now_ms = _now_ms()
        if self._run("pointer", topic, partition).one() is None:
            self._run("new_pointer", topic, partition, *pointer, now_ms, now_ms)
        else:
            self._run("put_pointer", *pointer, now_ms, topic, partition)

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


def _loading(topic: str) -> str:
    """Return the setting that exists while a topic is loaded."""
    return f"loading {topic}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
