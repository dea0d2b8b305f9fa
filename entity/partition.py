"""The recording of a topic's partition: its channel's alias, stream id and durability.

The alias is ``entities-TOPIC-P-of-N``, for a topic of type PD_JOURNAL ``entities-TOPIC-P-of-N-pd``.
A writer requests its recording with the durability of the topic (`durability`).
The stream id follows from the alias, so that writers that share a media driver share a publication.
Recordings of other streams are never touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.channel_uri import ChannelUri, alias_of
from aerotape.durability import PARAMETER

if TYPE_CHECKING:
    from aerotape.codecs.journal_type import JournalType

ALIAS_FRAGMENT: Final = "alias=entities-"
"""Part of the channel of each partition."""
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
    def type(self) -> JournalType:
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
        return _native.string_hash(self.alias)

    def channel(self, base: str) -> str:
        """Return the channel of its publications: `base` with the alias.

        Over UDP the recorder is a spy, which has to count as a subscriber (``ssc``).
        """
        uri = ChannelUri.parse(base)
        if not uri.is_ipc:
            uri.put("ssc", "true")
        uri.put("alias", self.alias)
        return str(uri)

    def recorded_channel(self, channel: str) -> str:
        """Return the channel of a request to record a publication's channel."""
        if not self.is_persistent:
            return channel
        uri = ChannelUri.parse(channel)
        uri.put(PARAMETER, "pd")
        return str(uri)

    def __str__(self) -> str:
        return f"partition {self.index} of topic {self.topic}"


def partition_in(recording: RecordingDescriptor) -> Partition | None:
    """Return the partition that a recording is, None when it is not one."""
    return partition_on(recording.stripped_channel, recording.stream_id)


def partition_on(channel: str, stream_id: int) -> Partition | None:
    """Return the partition that is recorded from a channel and stream, None when it is not one."""
    if ALIAS_FRAGMENT not in channel:
        return None
    alias = alias_of(channel) or ""
    found = _ALIAS.fullmatch(alias)
    if found is None:
        return None
    is_persistent = found["pd"] is not None
    partition = Partition(found["topic"], int(found["index"]), int(found["count"]), is_persistent)
    is_one = partition.alias == alias and partition.index < partition.count
    return partition if is_one and partition.stream_id == stream_id else None
