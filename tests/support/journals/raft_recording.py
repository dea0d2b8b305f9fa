"""Recordings whose messages are records of a raft journal."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from aerotape.codecs.raft.record import encode_record
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.journals.raft_bytes import application, configuration, initial


@dataclass(frozen=True)
class BuiltRecord:
    """A record as it was written, and where."""

    index: int
    asqn: int
    position: int
    payload: bytes


def records(count: int, seed: int = 1, first_index: int = 1) -> list[tuple[int, int, bytes]]:
    """Return index, asqn and bytes of records of all types; asqns have gaps, some are -1."""
    rng = random.Random(seed)
    found, asqn, term = [], 0, 1
    for index in range(first_index, first_index + count):
        kind = rng.choices(("application", "initial", "configuration"), (20, 2, 1))[0]
        own = -1
        if kind == "application":
            own = asqn + rng.randint(1, 4)
            asqn = own + rng.randint(0, 3)
            data = rng.randbytes(rng.choice((0, 5, 90, 3000)))
            blob = application(own, asqn, data, term, 2)
        elif kind == "initial":
            term += 1
            blob = initial(term, 2)
        else:
            members = [(3, 5, b"0"), (1, 6, "näher".encode())]
            time_ms = 1_700_000_000_000 + index
            blob = configuration(time_ms, members, [], term=term, version=2)
        found.append((index, own, encode_record(index, own, blob)))
    return found


def record_into(
    archive_dir: Path, found: list[tuple[int, int, bytes]], *, live: bool = False
) -> list[BuiltRecord]:
    """Write records as the next recording of a directory; return where each one is."""
    builder = SegmentBuilder()
    built = [
        BuiltRecord(index, asqn, builder.message(payload).position, payload)
        for index, asqn, payload in found
    ]
    add_recording(archive_dir, builder, live=live)
    return built
