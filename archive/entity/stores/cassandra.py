"""A store in Cassandra with kafka-journal's tables; needs the extra `aerotape[cassandra]`.

There are no transactions. A batch is stored in an order in which it can be repeated: deleted and
inserted events, heads, then the pointer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from aerotape.archive.entity.records import EventRecord, Head, Pointer
from aerotape.archive.entity.stores.base import (
    REPLICATOR_LOCK,
    SCHEMA_VERSION,
    VERSION_SETTING,
    EntityStore,
    StoreOptions,
    is_dead,
)
from aerotape.archive.entity.stores.cql import (
    KEYSPACE,
    LOCK_STATEMENTS,
    LOCKS,
    STATEMENTS,
    TABLES,
)
from aerotape.archive.entity.stores.rows import EventRow, event_of, event_rows, head_row
from aerotape.archive.entity.transitions import Change
from aerotape.errors import ConfigurationError, EntityStoreError
from aerotape.formatting import not_installed

_DAY_NS: Final = 86_400_000_000_000
_SCHEMA_LOCK: Final = "schema"
_SCHEMA_WAIT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10
_REQUEST_TIMEOUT_S: Final = 20
_CONCURRENCY: Final = 64
_BATCH: Final = 32


class CassandraStore(EntityStore):
    """A store in a Cassandra cluster; the namespace is a keyspace.

    A keyspace that does not exist is created with one replica: create it first for more.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        options: StoreOptions | None = None,
        user: str | None = None,
        password: str | None = None,
    ) -> None:
        """Connect, and create the tables if there are none.

        Args:
            hosts: contact points, HOST or HOST:PORT; all have the port of the first.
            options: of the store.
            user: for a cluster that requires it, with the password.
            password: of the user.

        Raises:
            ConfigurationError: cassandra-driver is not installed.
            EntityStoreError: no connection, or the tables have another version.
        """
        options = options or StoreOptions()
        super().__init__(f"cassandra://{','.join(hosts)}/{options.namespace}", options)
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
        """Create the tables if there are none, check their version, prepare the statements."""
        keyspace = self.options.namespace
        if keyspace not in self._cluster.metadata.keyspaces:
            self._session.execute(KEYSPACE.format(keyspace=keyspace))
        self._session.execute(LOCKS.format(keyspace=keyspace))
        self._statements: dict[str, Any] = {}
        self._add_statements(LOCK_STATEMENTS)
        deadline = time.monotonic() + _SCHEMA_WAIT_S
        while (owner := self.try_lock(_SCHEMA_LOCK)) != self.owner:
            if time.monotonic() >= deadline:
                raise EntityStoreError(
                    f"{self.url}: {owner} is creating its tables for {_SCHEMA_WAIT_S:g} s", self.url
                )
            time.sleep(0.05)
        try:
            self._create_tables(keyspace)
        finally:
            self.unlock(_SCHEMA_LOCK)

    def _create_tables(self, keyspace: str) -> None:
        self._cluster.refresh_keyspace_metadata(keyspace)
        is_new = "setting" not in self._cluster.metadata.keyspaces[keyspace].tables
        if is_new:
            for statement in TABLES:
                self._session.execute(statement.format(keyspace=keyspace))
        self._add_statements(STATEMENTS)
        row = self._run("setting", VERSION_SETTING).one()
        if is_new and row is None:
            self._run("put_setting", VERSION_SETTING, SCHEMA_VERSION, _now_ms())
        else:
            self.check_version(None if row is None else row.value)

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
            return {row.id: _head_of(row) for row in rows if row is not None}

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
                    yield _event_of(row)

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

    def expired(self, topic: str, day: date) -> Iterator[tuple[str, Head]]:
        with self._errors():
            yield from ((row.id, _head_of(row)) for row in self._run("expired", topic, day))

    # -- writing -------------------------------------------------------------------------------

    def apply(
        self, topic: str, partition: int, changes: Mapping[str, Change], pointer: Pointer
    ) -> None:
        with self._errors():
            self._renew()
            changed = [(id, change) for id, change in changes.items() if not change.is_empty]
            for step in (self._deletes, self._inserts, self._put_head):
                self._run_all(each for id, change in changed for each in step(topic, id, change))
            self._put_pointer(topic, partition, pointer)

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
        elif change.delete is not None:
            begin, end = change.delete
            size = before.segment_size
            for segment in range((begin - 1) // size, (end - 1) // size + 1):
                yield self._statements["delete_events"], (id, topic, segment, begin, end)

    def _inserts(self, topic: str, id: str, change: Change) -> Iterator[tuple[Any, Any]]:
        """Yield batches of the events of one segment, which are stored all or none."""
        if change.head is None:
            return
        statement = self._statements["put_event"]
        inserted = map(EventRow._make, event_rows(topic, change))
        for _, rows in groupby(inserted, lambda row: row.segment):
            parameters = [_event_parameters(row) for row in rows]
            if len(parameters) == 1:
                yield statement, parameters[0]
                continue
            for begin in range(0, len(parameters), _BATCH):
                batch = self._driver.query.BatchStatement(
                    self._driver.query.BatchType.UNLOGGED,
                    consistency_level=self._driver.ConsistencyLevel.LOCAL_QUORUM,
                )
                for each in parameters[begin : begin + _BATCH]:
                    batch.add(statement, each)
                yield batch, ()

    def _put_head(self, topic: str, id: str, change: Change) -> Iterator[tuple[Any, Any]]:
        segment, head = self.segment_of(id), change.head
        if head is None:
            yield self._statements["delete_head"], (topic, segment, id)
            return
        after = head.expire_after_ns
        duration = None
        if after is not None:
            duration = self._driver.util.Duration(0, after // _DAY_NS, after % _DAY_NS)
        row = head_row(topic, id, segment, head)
        created = datetime.fromtimestamp(head.created_ms / 1000, UTC).date()
        record_id = UUID(head.record_id)
        yield (
            self._statements["put_head"],
            (*row[:10], duration, head.expire_on, record_id, head.origin or None, created),
        )

    def _put_pointer(self, topic: str, partition: int, pointer: Pointer) -> None:
        now_ms = _now_ms()
        if self._run("pointer", topic, partition).one() is None:
            self._run("new_pointer", topic, partition, *pointer, now_ms, now_ms)
        else:
            self._run("put_pointer", *pointer, now_ms, topic, partition)

    # -- locks ---------------------------------------------------------------------------------

    def try_lock(self, name: str) -> str:
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
        with self._errors():
            self._run("unlock", name, self.owner)

    def _renew(self) -> None:
        ttl_s = -(-self.options.lease_ms // 1000)
        row = self._run("relock", ttl_s, self.owner, REPLICATOR_LOCK, self.owner).one()
        if not row.applied:
            raise self.locked(getattr(row, "owner", None) or "released by another process")


def _head_of(row: Any) -> Head:
    """Return the head of a row with READ_HEAD_COLUMNS."""
    after = row.expire_after
    return Head._make(row[1:])._replace(
        expire_after_ns=None if after is None else after.days * _DAY_NS + after.nanoseconds,
        expire_on=None if row.expire_on is None else row.expire_on.date(),
        record_id=str(row.record_id),
        created_ms=_milliseconds(row.created),
        updated_ms=_milliseconds(row.updated),
        origin=row.origin or "",
    )


def _event_parameters(row: EventRow) -> tuple[Any, ...]:
    """Return the parameters of `put_event`."""
    tags = set(json.loads(row.tags)) if row.tags else None
    return (*row[:9], UUID(row.meta_record_id), tags, *row[11:])


def _event_of(row: Any) -> EventRecord:
    """Return the event of a row with EVENT_COLUMNS."""
    tags = json.dumps(sorted(row.tags)) if row.tags else None
    time_ms, record_id = _milliseconds(row.timestamp), str(row.meta_record_id)
    fields = (*row[:6], time_ms, *row[7:9], record_id, tags, *row[11:])
    return event_of(EventRow._make(fields))


def _milliseconds(when: datetime) -> int:
    """Return milliseconds since the epoch of a time in UTC as the driver returns it."""
    return round(when.replace(tzinfo=UTC).timestamp() * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
