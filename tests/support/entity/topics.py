"""Topics of a running archive, for tests: a new name for each, and events in short form."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from aerotape.codecs.entity import Event
from aerotape.entity.records import EventRecord

_NUMBERS = itertools.count()


def new_topic() -> str:
    """Return a name that no other test uses."""
    return f"test.topic-{next(_NUMBERS)}"


def events(*seq_nrs: int) -> list[Event]:
    """Return events with these sequence numbers and binary payloads that name them."""
    return [Event(each, f"event {each}".encode(), "binary", ("tag",)) for each in seq_nrs]


def numbers(records: Iterable[EventRecord]) -> list[int]:
    """Return the sequence numbers of events that were read."""
    return [record.seq_nr for record in records]


def tagged_events(*seq_nrs: int) -> list[Event]:
    """Return events with these sequence numbers and the tags "odd", "third", both or none."""
    return [
        Event(
            each,
            b'{"n":%d}' % each,
            "json",
            ("odd",) * (each % 2) + ("third",) * (each % 3 == 0),
        )
        for each in seq_nrs
    ]
