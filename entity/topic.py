"""Topics: named sets of recordings, one for each partition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.codecs.entity.segments import DEFAULT_SEGMENTS, head_segment
from aerotape.entity.partition import Partition, partition_in
from aerotape.errors import ConfigurationError, EntityError, UnknownTopicError

MAX_PARTITIONS: Final = DEFAULT_SEGMENTS

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


def check_topic(name: str) -> str:
    """Check the name of a topic and return it.

    Raises:
        ConfigurationError: it has other characters than letters, digits, ``.``, ``_`` and ``-``.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"topic={name!r} is not a topic's name: expected up to 200 of the characters "
            "a-z, A-Z, 0-9, '.', '_' and '-'",
            "topic",
        )
    return name


def partition_of(id: str, partitions: int) -> int:
    """Return the index of the partition of an entity."""
    return head_segment(id) % partitions


def recordings_of(
    topic: str, recordings: Iterable[RecordingDescriptor]
) -> dict[Partition, RecordingDescriptor]:
    """Return the recordings of a topic by partition, in their order.

    The first recording of a partition is its log. Writers that begin it at the same time may create
    a second one, write nothing to it and delete it.

    Raises:
        EntityError: a partition has two recordings with data, or the number of partitions or the
            type is ambiguous.
    """
    found: dict[Partition, RecordingDescriptor] = {}
    for recording in sorted(recordings, key=lambda each: each.recording_id):
        partition = partition_in(recording)
        if partition is None or partition.topic != topic:
            continue
        if partition not in found:
            found[partition] = recording
        elif recording.stop_position > recording.start_position:
            raise EntityError(
                f"{partition} has two recordings, {found[partition].recording_id} and "
                f"{recording.recording_id}: purge the one that is not its log",
                topic,
            )
    kinds: dict[str, list[str]] = {}
    for partition, recording in found.items():
        kind = f"{partition.count} partitions of type {partition.type}"
        kinds.setdefault(kind, []).append(str(recording.recording_id))
    if len(kinds) > 1:
        texts = (f"{kind} (recordings {', '.join(ids)})" for kind, ids in kinds.items())
        raise EntityError(
            f"topic {topic} has {' and '.join(texts)}: purge those that are not its log", topic
        )
    return dict(sorted(found.items(), key=lambda item: item[0].index))


def topics_of(recordings: Iterable[RecordingDescriptor]) -> list[str]:
    """Return the topics that have recordings, sorted."""
    partitions = map(partition_in, recordings)
    return sorted({partition.topic for partition in partitions if partition is not None})


def existing_recordings_of(
    topic: str, recordings: Iterable[RecordingDescriptor]
) -> dict[Partition, RecordingDescriptor]:
    """As `recordings_of`, of a topic that has recordings (UnknownTopicError: it has none)."""
    found = recordings_of(topic, recordings)
    if not found:
        raise UnknownTopicError(f"topic {topic} has no recording: check its name", topic)
    return found
