"""Topics: named sets of recordings, one for each partition.

A partition's recording is found by the alias of its channel, ``entities-TOPIC-P-of-N``, for a topic
of type PD_JOURNAL ``entities-TOPIC-P-of-N-pd``. The archive syncs what it records there. The stream
id follows from the alias, so that writers that share a media driver share a publication. Recordings
of other streams are never touched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape.archive.recording.durability import Durability
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.channel_uri import ChannelUri, ChannelUriError
from aerotape.codecs.entity.segments import DEFAULT_SEGMENTS, head_segment, string_hash
from aerotape.errors import ConfigurationError, EntityError

if TYPE_CHECKING:
    from aerotape.archive.client.ledger.requests import LedgerTypeName

MAX_PARTITIONS: Final = DEFAULT_SEGMENTS

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_ALIAS: Final = re.compile(
    r"entities-(?P<topic>.+)-(?P<index>[0-9]+)-of-(?P<count>[0-9]+)(?P<pd>-pd)?"
)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a topic.

    Attributes:
        topic: the topic's name.
        index: from 0.
        count: the number of partitions of the topic.
        is_persistent: it is of type PD_JOURNAL: recorded is what is on storage.
    """

    topic: str
    index: int
    count: int
    is_persistent: bool = False

    @property
    def type(self) -> LedgerTypeName:
        """The type of its topic."""
        return "PD_JOURNAL" if self.is_persistent else "VD_JOURNAL"

    @property
    def alias(self) -> str:
        """The alias of its recording's channel."""
        end = "-pd" if self.is_persistent else ""
        return f"entities-{self.topic}-{self.index}-of-{self.count}{end}"

    @property
    def stream_id(self) -> int:
        """The stream id of its recording."""
        return string_hash(self.alias)

    def channel(self, base: str) -> str:
        """Return the channel of its publications: `base` with the alias.

        Over UDP the recorder is a spy, which has to count as a subscriber (``ssc``).
        """
        uri = ChannelUri.parse(base)
        if not uri.is_ipc:
            uri.put("ssc", "true")
        uri.put("alias", self.alias)
        return str(uri)

    def __str__(self) -> str:
        return f"partition {self.index} of topic {self.topic}"


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


def partition_in(recording: RecordingDescriptor) -> Partition | None:
    """Return the partition that a recording is, None when it is not one."""
    return partition_on(recording.stripped_channel, recording.stream_id)


def partition_on(channel: str, stream_id: int) -> Partition | None:
    """Return the partition that is recorded from a channel and stream, None when it is not one."""
    if "alias=entities-" not in channel:
        return None
    try:
        alias = ChannelUri.parse(channel).get("alias") or ""
    except ChannelUriError:
        return None
    found = _ALIAS.fullmatch(alias)
    if found is None:
        return None
    is_persistent = found["pd"] is not None
    partition = Partition(found["topic"], int(found["index"]), int(found["count"]), is_persistent)
    is_one = partition.alias == alias and partition.index < partition.count
    return partition if is_one and partition.stream_id == stream_id else None


def durability_of(channel: str, stream_id: int) -> Durability | None:
    """Return how the recording of a channel and stream is synced; None: as the archive's others."""
    partition = partition_on(channel, stream_id)
    if partition is None or not partition.is_persistent:
        return None
    key = hashlib.md5(partition.alias.encode(), usedforsecurity=False).digest()
    return Durability("pd", key)


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
    kinds = sorted({(partition.count, partition.type) for partition in found})
    if len(kinds) > 1:
        one, other = (f"{count} partitions, {type}," for count, type in kinds[:2])
        raise EntityError(
            f"topic {topic} has recordings of {one} and of {other} purge those that are not its "
            "log",
            topic,
        )
    return dict(sorted(found.items(), key=lambda item: item[0].index))


def existing_recordings_of(
    topic: str, recordings: Iterable[RecordingDescriptor]
) -> dict[Partition, RecordingDescriptor]:
    """As `recordings_of`, of a topic that has recordings (EntityError: it has none)."""
    found = recordings_of(topic, recordings)
    if not found:
        raise EntityError(f"topic {topic} has no recording: check its name", topic)
    return found
