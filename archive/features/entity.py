"""The entities of an archive, as a feature: which recordings may be partitions of topics.

The alias of its channel makes a recording a partition. A second recording of a partition, or one
of another kind, would make the topic unusable for all, and so would other data in its recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from aerotape.archive.control.feature import Feature
from aerotape.durability import PARAMETER, durability_of
from aerotape.entity.partition import (
    ALIAS_FRAGMENT,
    Partition,
    partition_in,
    partition_on,
)
from aerotape.errors import ArchiveError
from aerotape.protocol import ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.config.archive_config import ArchiveConfig
    from aerotape.archive.control.services import Services
    from aerotape.catalog.descriptor import RecordingDescriptor


class EntityFeature(Feature):
    """Refuses what would make a topic unusable, and syncs those of type PD_JOURNAL.

    Retention deletes nothing of a topic: it does not know what is replicated.
    """

    fragment = ALIAS_FRAGMENT

    def __init__(self, services: Services, config: ArchiveConfig, wake: Callable[[], None]) -> None:
        self._catalog = services.catalog
        self._recordings = services.recordings

    def check_channel(self, channel: str, stream_id: int) -> None:
        """Check that a new recording of a channel and stream does not contradict its topic, if any.

        An empty recording of the partition is accepted: writers that begin it at the same time
        create several, and all but the first delete theirs.

        Raises:
            ArchiveError: the topic has another number of partitions or another type, or the
                partition has a recording with data (INVALID_EXTENSION).
        """
        partition = partition_on(channel, stream_id)
        if partition is None:
            return
        _check_durability(partition, channel)
        catalog = self._catalog
        fragment = f"{ALIAS_FRAGMENT}{partition.topic}-".encode()
        for recording_id in catalog.descriptors(0, len(catalog), channel_fragment=fragment).ids:
            descriptor = catalog.descriptor(recording_id)
            other = partition_in(descriptor)
            if other is None or other.topic != partition.topic:
                continue
            if replace(other, index=partition.index) != partition:
                raise ArchiveError(
                    f"topic {other.topic} has {other.count} partitions of type {other.type}, as in"
                    f" recording {recording_id}, not {partition.count} of type {partition.type}:"
                    " use those, or another topic"
                )
            session = self._recordings.session(recording_id)
            end = descriptor.stop_position if session is None else session.position
            if other == partition and end > descriptor.start_position:
                raise ArchiveError(
                    f"{partition} has recording {recording_id}: extend it",
                    ErrorCode.INVALID_EXTENSION,
                )
        if partition.is_persistent and durability_of(channel) is None:
            raise ArchiveError(
                f"{partition} is of type {partition.type}: record it with {PARAMETER}=pd, or use"
                " another alias"
            )

    def check_change(self, recording: RecordingDescriptor, channel: str) -> None:
        before, after = partition_in(recording), partition_on(channel, recording.stream_id)
        if before != after:
            raise ArchiveError(
                f"recording {recording.recording_id} is {before or 'not a partition of a topic'},"
                f" and channel={channel} that of {after or 'none'}: use a channel with the same"
                " alias"
            )
        if after is not None:
            _check_durability(after, channel)

    @staticmethod
    def holds(recording: RecordingDescriptor) -> str:
        partition = partition_in(recording)
        if partition is None:
            return ""
        return f"it is {partition}: purge it with `aerotape entity retention`"


def _check_durability(partition: Partition, channel: str) -> None:
    """Refuse a durability that the type of a topic does not have."""
    if durability_of(channel) is not None and not partition.is_persistent:
        raise ArchiveError(
            f"{partition} is of type {partition.type}: record it without {PARAMETER}, or create the"
            " topic as PD_JOURNAL"
        )
