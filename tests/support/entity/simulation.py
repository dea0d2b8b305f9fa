"""Topic objects over a log in memory, whose threads are interleaved at random.

`Entities`, `TopicLog`, `KnownEnd`, `Tail` and `PartitionWriter.send` are the real ones;
publication, archive and store are replaced. A thread passes the baton in each of their calls.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from aerotape.client.blocking_requests import BlockingRequests
from aerotape.codecs.entity.messages import read_header
from aerotape.entity.blocking.entities import Entities
from aerotape.entity.log.known_end import KnownEnd
from aerotape.entity.log.topic_log import TopicLog
from aerotape.entity.log.writer import PartitionWriter
from aerotape.entity.partition import Partition
from aerotape.entity.records import EventRecord, Head, Pointer
from aerotape.entity.stores.store import Store
from aerotape.errors import InvalidPositionError
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.waiting import Task
from support.entity.baton import Baton
from support.entity.memory_store import MemoryStore

TOPIC = "orders"
_MAX_LENGTH = 1 << 20


class Record(NamedTuple):
    """A record of the log: its place, its message, and its outcome.

    Attributes:
        is_applied: whether its condition, if it has one, was met.
        last: the journal's last sequence number after it; None: no journal.
    """

    offset: int
    end: int
    message: bytes
    is_applied: bool
    last: int | None


class Seen(NamedTuple):
    """A journal after a record of the log.

    Attributes:
        incarnation: another one after a purge.
        last: its last sequence number.
        deleted: events up to this one are deleted.
        events: sequence numbers and offsets.
    """

    incarnation: str
    last: int
    deleted: int
    events: list[tuple[int, int]]


class LaggingStore(MemoryStore):
    """A store to which the log is replicated at random; passes the baton in each call."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.count = 0

    def replicate_some(self) -> None:
        """Apply a random number of records."""
        records = self.world.records
        count = self.world.chance.randint(self.count, len(records))
        for record in records[self.count : count]:
            self.apply(0, record.offset, record.message)
            self.pointers[0] = Pointer(record.offset, record.end)
        self.count = count

    def view(self, topic: str, partition: int, id: str) -> tuple[Pointer | None, Head | None]:
        self.world.switch()
        found = self.pointer(topic, partition), super().head(topic, id)
        self.world.switch()
        return found

    def head(self, topic: str, id: str) -> Head | None:
        self.world.switch()
        return super().head(topic, id)

    def events(
        self, topic: str, id: str, from_seq_nr: int = 1, record_id: str | None = None
    ) -> Iterator[EventRecord]:
        self.world.switch()
        yield from super().events(topic, id, from_seq_nr, record_id)


class World:
    """The log of one partition, and the archive that has it.

    Attributes:
        chance: decides everything that is random.
        records: the log.
        position: where it ends, bytes.
        start: up to here it is purged, bytes.
        journals: the literal effect of the log.
        states: all journals by id, after each number of records.
        store: a replicated store; None: none.
        under_way: how many records were replicated when each operation under way began.
    """

    def __init__(self, chance: random.Random, *, stored: bool = False) -> None:
        self.chance = chance
        self.baton = Baton(chance)
        self.switch = self.baton.switch
        self.records: list[Record] = []
        self.position = self.start = 0
        self.journals = MemoryStore()
        self.states: list[dict[str, Seen]] = [{}]
        self.store = LaggingStore(self) if stored else None
        self.under_way: dict[object, int] = {}
        self._term_length = chance.choice([512, 2048, 1 << 20])

    def offer(self, message: bytes) -> int:
        """Add a record; return where it ends. It does not extend over the end of a term."""
        length, term = align_frame(len(message) + HEADER_LENGTH), self._term_length
        if self.position % term + length > term:
            self.position = -(-self.position // term) * term
        offset, self.position = self.position, self.position + length
        is_applied = self.journals.apply(0, offset, message)
        journals = self.journals.model.journals
        self.states.append(
            {
                id: Seen(
                    each.incarnation,
                    each.seq_nr,
                    each.delete_to,
                    [(number, record.offset) for number, record in sorted(each.events.items())],
                )
                for id, each in journals.items()
            }
        )
        last = self.journals.model.pointer(read_header(message).id.decode())
        self.records.append(Record(offset, self.position, message, is_applied, last))
        return self.position

    def purge(self) -> None:
        """Purge a random part of the log, which no operation under way needs."""
        assert self.store is not None
        if count := min([self.store.count, *self.under_way.values()]):
            end = self.records[count - 1].end
            self.start = self.chance.randint(self.start, max(self.start, end))

    def open_topic(self, store: Store | None) -> Entities:
        """Return a topic object; `topic_log.open_writer` is to be replaced by that below."""
        archive: Any = Archive(self)
        buffer_length = self.chance.choice([0, _MAX_LENGTH])
        partitions = [Partition(TOPIC, 0, 1)]
        log = TopicLog(archive, partitions, store, "", "", 1, buffer_length)
        session: Any = None
        return Entities(BlockingRequests(session), log)


class Archive:
    """What a `LogArchive` is to a topic object."""

    def __init__(self, world: World) -> None:
        self.world = world

    def start_position(self, _: int) -> Task[int]:
        self.world.switch()
        return self.world.start
        yield

    def last_position(self, _: int) -> Task[int]:
        return self.world.position
        yield

    def records(self, _: int, begin: int, end: int) -> Records:
        return Records(self.world, begin, end)


class Records:
    """Records of the log, in batches of random length."""

    def __init__(self, world: World, begin: int, end: int) -> None:
        self.world = world
        self.begin, self.end = begin, end
        self.rest: list[SimpleNamespace] | None = None

    def next(self) -> Task[list[SimpleNamespace]]:
        self.world.switch()
        if self.rest is None:
            if self.begin < self.world.start:
                raise InvalidPositionError(
                    f"the recording begins at {self.world.start}, not at {self.begin}"
                )
            self.rest = [
                SimpleNamespace(payload=each.message, position=each.offset, end_position=each.end)
                for each in self.world.records
                if self.begin <= each.offset < self.end
            ]
        count = self.world.chance.choice([1, 3, 100])
        found, self.rest = self.rest[:count], self.rest[count:]
        return found
        yield

    def close(self) -> None:
        pass


def open_writer(
    archive: Archive, partition: Partition, channel: str, timeout_ns: int
) -> Task[PartitionWriter]:
    """Return a writer to the log of a `World`."""
    return Writer(archive.world, partition)
    yield


class Writer(PartitionWriter):
    """A writer whose publication is the log of a `World`; all is recorded when it is sent."""

    is_open = True

    def __init__(self, world: World, partition: Partition) -> None:
        self.world = world
        self.partition = partition
        recording: Any = SimpleNamespace(id=0)
        self.recording = recording
        self.max_length = self._max_payload_length = _MAX_LENGTH
        publication: Any = world
        self._publication = publication
        self.lock = threading.Lock()
        self.known_end = KnownEnd()

    def send(self, *arguments: Any) -> Task[Any]:
        self.world.switch()
        done = yield from super().send(*arguments)
        self.world.switch()
        return done

    def end_of_log(self, mark: Any) -> Task[int]:
        end = yield from super().end_of_log(mark)
        self.world.switch()
        return end

    def recorded(self, position: int) -> Task[None]:
        self.world.switch()
        return
        yield

    def close(self) -> None:
        pass
