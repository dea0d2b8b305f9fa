"""Segment numbers of kafka-journal: of an entity's head, and of an event.

Two formulas with one name, both zero-based. Cassandra's tables are partitioned by them, and a
key's partition in a topic is its head segment modulo the number of partitions.
"""

from __future__ import annotations

from typing import Final

from aerotape.codecs.entity.lower_case import lower_case_hash
from aerotape.errors import ConfigurationError

DEFAULT_SEGMENTS: Final = 10_000
DEFAULT_SEGMENT_SIZE: Final = 10_000
MIN_SEGMENT_SIZE: Final = 2


def head_segment(id: str, segments: int = DEFAULT_SEGMENTS) -> int:
    """Return the segment of an entity's head (kafka-journal's table `metajournal`).

    Args:
        id: the entity's id.
        segments: the number of segments, at least 1.

    Raises:
        ConfigurationError: `segments` is less than 1.
    """
    if segments < 1:
        raise ConfigurationError(f"segments={segments}: must be at least 1", "segments")
    # The remainder of a truncating division, without its sign.
    return abs(lower_case_hash(id)) % segments


def event_segment(seq_nr: int, segment_size: int = DEFAULT_SEGMENT_SIZE) -> int:
    """Return the segment of an event (kafka-journal's table `journal`).

    Args:
        seq_nr: the event's sequence number, from 1.
        segment_size: events in a segment, at least 2.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    if seq_nr < 1:
        raise ConfigurationError(f"seq_nr={seq_nr}: sequence numbers begin at 1", "seq_nr")
    if segment_size < MIN_SEGMENT_SIZE:
        raise ConfigurationError(
            f"segment_size={segment_size}: must be at least {MIN_SEGMENT_SIZE}", "segment_size"
        )
    return (seq_nr - 1) // segment_size
