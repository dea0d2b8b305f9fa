"""A store in Cassandra with kafka-journal's tables; needs the extra `aerotape[cassandra]`.

There are no transactions. A batch is stored in an order in which it can be repeated: snapshots,
deleted and inserted events, heads, then the pointer. Snapshots precede deleted events, so that a
reader that misses some of these finds the state in which they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from aerotape.entity.records import (
    EventRecord,
    Head,
    Pointer,
    Replicated,
    SnapshotRecord,
)
from aerotape.entity.stores.base import MAX_SNAPSHOTS, PAGE
from aerotape.entity.stores.cassandra_tables import (
    CONCURRENCY,
    CassandraTables,
    now_ms,
)
from aerotape.entity.stores.cql_rows import (
    event_of_row,
    event_parameters,
    head_of_row,
    head_parameters,
    milliseconds,
    snapshot_of_row,
    snapshot_parameters,
)
from aerotape.entity.stores.rows import (
    EventRow,
    Rows,
    event_rows,
    expire_on,
    snapshot_rows,
)
from aerotape.entity.transitions import Change

_BATCH: Final = 32


class CassandraStore(CassandraTables):
    """A store in a Cassandra cluster; the namespace is a keyspace.

    A writable store creates a keyspace that does not exist, with one replica: create it first for
    more.
    """

    # -- reading -------------------------------------------------------------------------------

    def heads(self, topic: str, ids: Sequence[str]) -> dict[str, Head]:
        statement = self._statements["head"]
        with self._errors():
            results = self._run_all((statement, (topic, self.segment_of(id), id)) for id in ids)
            rows = [result.one() for result in results]
            return {row.id: head_of_row(row) for row in rows if row is not None}

    def page(self, topic: str, id: str, head: Head, after: int) -> list[EventRecord]:
        record_id, size = UUID(head.record_id), head.segment_size
        found: list[EventRecord] = []
        with self._errors():
            for segment in range(after // size, (head.seq_nr - 1) // size + 1):
                for row in self._run("events", id, topic, segment, after, head.seq_nr):
                    if row.meta_record_id == record_id:
                        found.append(event_of_row(row))
                        if len(found) == PAGE:
                            return found
        return found

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

    def replicated(self, topic: str) -> dict[int, Replicated]:
        with self._errors():
            return {
                row.partition: Replicated(row.next_position, milliseconds(row.updated))
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
                end = min(segment + CONCURRENCY, self.options.segments)
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
            rows = Rows()
            snapshots: list[tuple[Any, ...]] = []
            for id, change in changed:
                if change.head is not None:
                    rows.events.extend(event_rows(topic, change))
                    # A purge deletes those that are there.
                    added = rows.snapshots if change.is_purged else snapshots
                    added.extend(snapshot_rows(topic, change))
                    rows.heads.append((id, change.head))
            self._put_snapshots(topic, snapshots)
            self._run_all(
                each for id, change in changed for each in self._deletes(topic, id, change)
            )
            self._renew()  # not after another replicator has taken the lock
            self._put(topic, rows)
            statement = self._statements["delete_head"]
            self._run_all(
                (statement, (topic, self.segment_of(id), id))
                for id, change in changed
                if change.head is None
            )
            self._renew()
            self._put_pointer(topic, partition, pointer)

    def load(self, topic: str, batches: Iterable[Rows], pointers: Mapping[int, Pointer]) -> None:
        self.check_writable()
        with self._errors():
            self._run("put_setting", _loading(topic), self.owner, now_ms())
            for rows in batches:
                self._renew()
                self._put(topic, rows)
            self._renew()
            # Either all pointers are stored and the load is over, or none.
            batch = self._batch(self._driver.query.BatchType.LOGGED)
            at_ms = now_ms()
            for partition, pointer in pointers.items():
                values = (topic, partition, *pointer, at_ms, at_ms)
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
        """Store events and snapshots, then heads."""
        self._run_all(self._event_statements(rows.events))
        self._put_snapshots(topic, rows.snapshots)
        statement = self._statements["put_head"]
        self._run_all(
            (statement, head_parameters(topic, id, self.segment_of(id), head, self._driver.util))
            for id, head in rows.heads
        )

    def _put_snapshots(self, topic: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store snapshots; keep the latest."""
        statement = self._statements["put_snapshot"]
        self._run_all((statement, snapshot_parameters(row)) for row in rows)
        for id in {row[1] for row in rows}:
            found = list(self._run("old_snapshot", topic, id, MAX_SNAPSHOTS + 1))
            if len(found) > MAX_SNAPSHOTS:
                self._run("delete_old_snapshots", topic, id, found[-1].seq_nr)

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
        at_ms = now_ms()
        if self._run("pointer", topic, partition).one() is None:
            self._run("new_pointer", topic, partition, *pointer, at_ms, at_ms)
        else:
            self._run("put_pointer", *pointer, at_ms, topic, partition)


def _loading(topic: str) -> str:
    """Return the setting that exists while a topic is loaded."""
    return f"loading {topic}"
