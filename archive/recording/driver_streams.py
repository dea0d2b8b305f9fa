"""The streams of the archive's media driver: which images it has, and how far streams have come.

A message has been accepted when its offer returns. It then precedes the tail of the publication's
log buffer, a file that all clients of the publication's driver can read: over IPC, of a publication
that is spied on, and over UDP if the publication is one of the archive's own driver. Of other
streams only the receiver's high-water mark is known, and it lags: packets are under way, and if the
last ones are lost, the next heartbeat of the sender, within 100 ms, shows that they were sent.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aerotape.channel_uri import ChannelUri
from aerotape.errors import ConfigurationError
from aerotape.frame_header import to_int32
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    from aerotape._native import AeronClient, Image

SETTLE_NS: Final = 200_000_000
"""The time in which messages from another driver still count as accepted before a stop."""

# Counters of a driver; their keys begin with registration id, session id, stream id.
_RECEIVER_HWM_TYPE_ID: Final = 3
_SUBSCRIBER_POSITION_TYPE_ID: Final = 4
_PUBLISHER_POSITION_TYPE_ID: Final = 12
_KEY: Final = struct.Struct("<qii")
# Metadata at the end of a log buffer: a tail for each of three terms, the position at which the
# stream ends, initial term id and term length.
_METADATA_LENGTH: Final = 4096
_TAILS: Final = struct.Struct("<3q")
_END: Final = struct.Struct("<q")
_END_OFFSET: Final = 128
_TERMS: Final = struct.Struct("<i8xi")
_TERMS_OFFSET: Final = 264


class _Row(NamedTuple):
    """A counter of a stream.

    Attributes:
        registration_id: of the publication, image or subscription that it belongs to.
        reference_id: of a subscriber's position, the registration id of the stream.
    """

    registration_id: int
    session_id: int
    stream_id: int
    label: str
    reference_id: int
    value: int


class _Log(NamedTuple):
    """The log buffer of a publication.

    Attributes:
        position: up to it messages are accepted, or claimed and not committed, bytes.
        is_ended: whether the publication is closed.
    """

    position: int
    is_ended: bool


@dataclass(slots=True)
class StopPoint:
    """The end of the recording of an image after a stop.

    Attributes:
        position: what precedes it is recorded, bytes; None until it is known.
        known_ns: when it is known at the latest, of `time.monotonic_ns`.
    """

    position: int | None
    known_ns: int


@dataclass(eq=False)
class DriverStreams:
    """Reads the counters and log buffers that a driver shares with its clients."""

    client: AeronClient
    _snapshot: dict[int, list[_Row]] | None = field(default=None, init=False)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the counters of each type once, for all calls in the block."""
        self._snapshot = {}
        try:
            yield
        finally:
            self._snapshot = None

    def _rows(self, type_id: int) -> list[_Row]:
        if self._snapshot is not None and type_id in self._snapshot:
            return self._snapshot[type_id]
        rows = []
        for _, _, key, label, _, _, reference_id, value in self.client.counters().rows(type_id):
            registration_id, session_id, stream_id = _KEY.unpack_from(key)
            rows.append(_Row(registration_id, session_id, stream_id, label, reference_id, value))
        if self._snapshot is not None:
            self._snapshot[type_id] = rows
        return rows

    def stop_point(self, image: Image, channel: str, settle_ns: int = SETTLE_NS) -> StopPoint:
        """Return the stop point of the recording of an image that is stopped now.

        Args:
            channel: of the image's subscription.
            settle_ns: how long what arrives of a stream from another driver counts.
        """
        position = self._accepted(image, channel)
        return StopPoint(position, time.monotonic_ns() + (settle_ns if position is None else 0))

    def settle(self, point: StopPoint, image: Image) -> int | None:
        """Return the position of a stop point; None before it is known."""
        if point.position is None and time.monotonic_ns() >= point.known_ns:
            point.position = self._received(image)
        return point.position

    def has_nothing(self, image: Image) -> bool:
        """Whether an image of IPC, or a spy's, has no message and its publication is closed."""
        log = self._log(image.correlation_id)
        return log is not None and log.is_ended and log.position <= image.join_position

    def is_closed(self, image: Image) -> bool:
        """Whether the publication of an image of IPC, or of a spy's, is closed."""
        log = self._log(image.correlation_id)
        return log is not None and log.is_ended

    def images(self, registration_id: int) -> set[int]:
        """Return the correlation ids of the images that the driver has for a subscription.

        Each is here before its publication is connected, and before the client is notified of it.
        """
        return {
            row.reference_id
            for row in self._rows(_SUBSCRIBER_POSITION_TYPE_ID)
            if row.registration_id == registration_id
        }

    def _accepted(self, image: Image, channel: str) -> int | None:
        own = self._log(image.correlation_id)
        logs = [own] if own is not None else map(self._log, self._senders(image, channel))
        return max((log.position for log in logs if log is not None), default=None)

    def _senders(self, image: Image, channel: str) -> list[int]:
        """Return the registration ids of this driver's publications to an image over UDP."""
        addresses = _addresses(channel)
        return [
            row.registration_id
            for row in self._rows(_PUBLISHER_POSITION_TYPE_ID)
            if (row.session_id, row.stream_id) == (image.session_id, image.stream_id)
            # The label ends with the channel.
            and addresses & _addresses(row.label.rpartition(" ")[2])
        ]

    def _received(self, image: Image) -> int:
        """Return the high-water mark of an image; of one that is gone, what it has is its end."""
        rows = self._rows(_RECEIVER_HWM_TYPE_ID)
        marks = [row.value for row in rows if row.registration_id == image.correlation_id]
        return max(marks, default=MAX_LONG)

    def _log(self, registration_id: int) -> _Log | None:
        """Return the state of a publication's log buffer; None if it is not of this driver."""
        path = Path(self.client.aeron_dir) / "publications" / f"{registration_id}.logbuffer"
        try:
            with path.open("rb", buffering=0) as file:
                metadata_at = os.fstat(file.fileno()).st_size - _METADATA_LENGTH
                metadata = os.pread(file.fileno(), _METADATA_LENGTH, metadata_at)
        except OSError:
            return None
        initial_term_id, term_length = _TERMS.unpack_from(metadata, _TERMS_OFFSET)
        # The other terms are older: in any order of reading them, the highest is the last one.
        position = max(
            to_int32((tail >> 32) - initial_term_id) * term_length
            + min(tail & 0xFFFF_FFFF, term_length)
            for tail in _TAILS.unpack_from(metadata)
        )
        [end] = _END.unpack_from(metadata, _END_OFFSET)
        return _Log(position, is_ended=end != MAX_LONG)


def _addresses(channel: str) -> set[str]:
    try:
        uri = ChannelUri.parse(channel)
    except ConfigurationError:
        return set()
    return {address for name in ("endpoint", "control") if (address := uri.get(name))}
