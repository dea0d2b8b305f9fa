"""Checks of what an archive records as a partition of a topic, or in place of a partition.

The alias of its channel makes a recording a partition. A second recording of a partition, or one
of another kind, would make the topic unusable for all, and so would other data in its recording.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aerotape.archive.entity.partition import (
    ALIAS_FRAGMENT,
    Partition,
    partition_in,
    partition_on,
)
from aerotape.archive.recording.durability import PARAMETER, durability_of
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.catalog import Catalog


def check_start(catalog: Catalog, recordings: Recordings, channel: str, stream_id: int) -> None:
    """Check that a new recording of a channel and stream does not contradict its topic, if any.

    An empty recording of the partition is accepted: writers that begin it at the same time create
    several, and all but the first delete theirs.

    Raises:
        ArchiveError: the topic has another number of partitions or another type, or the partition
            has a recording with data (INVALID_EXTENSION).
    """
    partition = partition_on(channel, stream_id)
    if partition is None:
        return
    _check_durability(partition, channel)
    fragment = f"{ALIAS_FRAGMENT}{partition.topic}-".encode()
    for recording_id in catalog.descriptors(0, len(catalog), channel_fragment=fragment).ids:
        descriptor = catalog.descriptor(recording_id)
        other = partition_in(descriptor)
        if other is None or other.topic != partition.topic:
            continue
        if replace(other, index=partition.index) != partition:
            raise ArchiveError(
                f"topic {other.topic} has {other.count} partitions of type {other.type}, as in"
                f" recording {recording_id}, not {partition.count} of type {partition.type}: use"
                " those, or another topic"
            )
        session = recordings.session(recording_id)
        end = descriptor.stop_position if session is None else session.position
        if other == partition and end > descriptor.start_position:
            raise ArchiveError(
                f"{partition} has recording {recording_id}: extend it",
                ErrorCode.INVALID_EXTENSION,
            )


def _check_durability(partition: Partition, channel: str) -> None:
    """Refuse the durability of another type of topic."""
    if durability_of(channel) is not None and not partition.is_persistent:
        raise ArchiveError(
            f"{partition} is of type {partition.type}: record it without {PARAMETER}, or create the"
            " topic as PD_JOURNAL"
        )


def check_change(descriptor: RecordingDescriptor, channel: str) -> None:
    """Check that a recording stays the partition that it is, or none, with another channel.

    Raises:
        ArchiveError: it does not.
    """
    before, after = partition_in(descriptor), partition_on(channel, descriptor.stream_id)
    if before != after:
        raise ArchiveError(
            f"recording {descriptor.recording_id} is {before or 'not a partition of a topic'}, and"
            f" channel={channel} that of {after or 'none'}: use a channel with the same alias"
        )
    if after is not None:
        _check_durability(after, channel)
