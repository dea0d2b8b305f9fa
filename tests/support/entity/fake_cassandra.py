"""The store in Cassandra over tables in memory; its process can end before any write."""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

from aerotape.entity.stores.base import StoreOptions
from aerotape.entity.stores.cassandra import CassandraStore
from aerotape.entity.stores.cql import PUT_HEAD_COLUMNS
from aerotape.entity.stores.rows import READ_HEAD_COLUMNS, SNAPSHOT_COLUMNS, EventRow

_tuple_type: Any = namedtuple  # mypy accepts literal names of fields only
HeadRow = _tuple_type("HeadRow", READ_HEAD_COLUMNS)
SnapshotRow = _tuple_type("SnapshotRow", SNAPSHOT_COLUMNS)


class KilledError(Exception):
    """The replicator's process has ended."""


class Duration(NamedTuple):
    """The driver's type of durations."""

    months: int
    days: int
    nanoseconds: int


class Result(list[Any]):
    """The rows that a statement returns."""

    def one(self) -> Any:
        return self[0] if self else None


class Batch(list[tuple[Any, Any]]):
    """Statements that are executed all or none."""

    def add(self, statement: Any, values: Any) -> None:
        self.append((statement, values))


class Tables:
    """The tables of one topic, by their keys, with a method for each statement."""

    def __init__(self) -> None:
        self._heads: dict[str, Any] = {}
        self._events: dict[tuple[str, int, int, int], EventRow] = {}
        self._snapshots: dict[tuple[str, int], Any] = {}
        self._pointers: dict[int, SimpleNamespace] = {}

    def put_event(self, *values: Any) -> None:
        row = EventRow._make(values)
        self._events[row.id, row.segment, row.seq_nr, row.timestamp] = row

    def events(self, id: str, topic: str, segment: int, after: int, last: int) -> Result:
        keys = sorted(self._events)
        found = [key for key in keys if key[:2] == (id, segment) and after < key[2] <= last]
        return Result(self._events[key]._replace(timestamp=_time(key[3])) for key in found)

    def delete_events(self, id: str, topic: str, segment: int, first: int, last: int) -> None:
        for key in list(self._events):
            if key[:2] == (id, segment) and first <= key[2] <= last:
                del self._events[key]

    def delete_segment(self, id: str, topic: str, segment: int) -> None:
        for key in list(self._events):
            if key[:2] == (id, segment):
                del self._events[key]

    def put_head(self, *values: Any) -> None:
        row = dict(zip(PUT_HEAD_COLUMNS, values, strict=True))
        row |= {column: _time(row[column]) for column in ("created", "updated")}
        self._heads[row["id"]] = HeadRow(*(row[column] for column in READ_HEAD_COLUMNS))

    def head(self, topic: str, segment: int, id: str) -> Result:
        return Result([self._heads[id]] if id in self._heads else [])

    def delete_head(self, topic: str, segment: int, id: str) -> None:
        self._heads.pop(id, None)

    def put_snapshot(self, *values: Any) -> None:
        row = SnapshotRow._make(values)
        self._snapshots[row.id, row.seq_nr] = row._replace(timestamp=_time(row.timestamp))

    def snapshots(self, topic: str, id: str) -> Result:
        keys = sorted((key for key in self._snapshots if key[0] == id), reverse=True)
        return Result(self._snapshots[key] for key in keys)

    def old_snapshot(self, topic: str, id: str, limit: int) -> Result:
        return Result(self.snapshots(topic, id)[:limit])

    def delete_old_snapshots(self, topic: str, id: str, to: int) -> None:
        for row in self.snapshots(topic, id):
            if row.seq_nr <= to:
                del self._snapshots[id, row.seq_nr]

    def delete_snapshots(self, topic: str, id: str) -> None:
        for row in self.snapshots(topic, id):
            del self._snapshots[id, row.seq_nr]

    def new_pointer(
        self, topic: str, partition: int, offset: int, next_position: int, created: int, at: int
    ) -> None:
        self.put_pointer(offset, next_position, at, topic, partition)

    def put_pointer(
        self, offset: int, next_position: int, updated: int, topic: str, partition: int
    ) -> None:
        self._pointers[partition] = SimpleNamespace(offset=offset, next_position=next_position)

    def pointer(self, topic: str, partition: int) -> Result:
        return Result([self._pointers[partition]] if partition in self._pointers else [])


class FakeCassandra(CassandraStore):
    """The store, for one topic.

    Attributes:
        writes_left: how many statements may write until the process ends; None: it does not end.
    """

    def __init__(self, chance: random.Random, segment_size: int) -> None:
        """Create an empty store; `chance` is the order of statements executed concurrently."""
        self.options = StoreOptions(segments=3, segment_size=segment_size)
        self.url, self.is_writable, self.owner = "cassandra://fake", True, "owner"
        self.writes_left: int | None = None
        self._chance = chance
        names = [each for each in vars(Tables) if not each.startswith("_")]
        tables = Tables()
        self._statements = {name: getattr(tables, name) for name in names}
        self._driver = SimpleNamespace(
            util=SimpleNamespace(Duration=Duration),
            query=SimpleNamespace(BatchType=SimpleNamespace(UNLOGGED="UNLOGGED")),
        )

    def close(self) -> None:
        pass

    @contextmanager
    def _errors(self) -> Iterator[None]:
        yield

    def _renew(self) -> None:
        pass

    def _batch(self, kind: Any) -> Any:
        return Batch()

    def _run(self, name: str, *parameters: Any) -> Any:
        return self._execute(self._statements[name], parameters)

    def _run_all(self, statements: Iterable[tuple[Any, Any]]) -> list[Any]:
        pending = list(enumerate(statements))
        self._chance.shuffle(pending)
        results = {number: self._execute(*statement) for number, statement in pending}
        return [result for _, result in sorted(results.items())]

    def _execute(self, statement: Any, values: Any) -> Any:
        batch = statement if isinstance(statement, Batch) else [(statement, values)]
        is_write = batch[0][0].__name__.startswith(("put", "new", "delete"))
        if is_write and self.writes_left is not None:
            if self.writes_left == 0:
                raise KilledError
            self.writes_left -= 1
        (*_, result) = [each(*parameters) for each, parameters in batch]
        return result


def _time(milliseconds: int) -> Any:
    """Return a time as the driver returns it, from milliseconds since the epoch."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
