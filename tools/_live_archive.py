"""A temporary archive whose recording, replaying and scanning is measured.

Archive, media driver, publisher and subscriber are threads of this process. The publisher and the
subscriber are native loops: no Python code runs for each message.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape import _native
from aerotape.aeron import Aeron
from aerotape.archive.archive import Archive
from aerotape.channel_uri import with_session_id
from aerotape.clients import ArchiveClient, connect
from aerotape.context import Closing
from aerotape.counter_keys import CounterType
from aerotape.errors import AerotapeError
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.protocol import NULL_POSITION

if TYPE_CHECKING:
    from aerotape.frame_header import ChecksumName

CHANNEL: Final = "aeron:ipc?term-length=16m"
_STREAM_ID: Final = 1001
_REPLAY_STREAM_ID: Final = 1002
_OFFERED_BYTES: Final = 1 << 20
_PATIENCE_NS: Final = 100_000_000
_STALLED_S: Final = 30.0
_FRAGMENTS: Final = 1 << 16
_T = TypeVar("_T")


def frame_bytes(message_bytes: int) -> int:
    """Return the length of a message of one frame in a segment file, header and alignment too."""
    return align_frame(HEADER_LENGTH + message_bytes)


def counting_payload(length: int) -> bytes:
    """Return ascending bytes as the payload of a message."""
    return bytes(number & 0xFF for number in range(length))


class LiveArchive(Closing):
    """An archive that records streams of a fixed number of messages, one after the other.

    Attributes:
        folder: its directory.
        messages: the number of messages.
        recorded_length: bytes of the last recording.
    """

    def __init__(
        self,
        folder: Path,
        aeron_dir: Path,
        length: int,
        message_bytes: int,
        checksum: ChecksumName = "none",
    ) -> None:
        """Start the archive and its media driver.

        Args:
            folder: the archive directory, which is created.
            aeron_dir: the media driver's directory.
            length: least length of a recording, bytes.
            message_bytes: length of each message, bytes.
            checksum: the checksum of recorded frames.
        """
        self.folder = folder
        self.messages = max(1, length // frame_bytes(message_bytes))
        self.recorded_length = 0
        self._payload = counting_payload(message_bytes)
        self._recording_id: int | None = None
        properties: dict[str, object] = {
            "aeron.dir.delete.on.start": True,
            "aeron.dir.delete.on.shutdown": True,
            "aeron.threading.mode": "SHARED",
            "aeron.term.buffer.sparse.file": True,
            "aeron.archive.threading.mode": "SHARED",
            "aeron.archive.control.channel.enabled": False,
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.archive.record.checksum": checksum,
        }
        with ExitStack() as stack:
            archive = stack.enter_context(
                Archive.launch(folder, aeron_dir, properties=properties)
            )
            self._aeron = stack.enter_context(Aeron(archive.aeron_dir))
            self._client = stack.enter_context(
                connect(
                    aeron=self._aeron,
                    control_request_channel=archive.local_control_channel,
                    control_request_stream_id=archive.config.local_control_stream_id,
                )
            )
            self._resources = stack.pop_all()

    def close(self) -> None:
        """Stop the archive. Idempotent."""
        self._resources.close()

    def record(self) -> float:
        """Purge the last recording, record again, and return the seconds until the last message."""
        if self._recording_id is not None:
            self._client.purge_recording(self._recording_id)
            self._recording_id = None
        native = self._aeron.native
        publication = native.add_exclusive_publication(CHANNEL, _STREAM_ID)
        try:
            own = with_session_id(CHANNEL, publication.session_id)
            self._client.start_recording(own, _STREAM_ID, auto_stop=True)
            counters = native.counters()
            recording_id, counter_id = _until(
                lambda: _recording(counters, publication.session_id), "the recording did not start"
            )
            begin = time.perf_counter()
            self._flood(publication)
            end = publication.position
            _until_moved(lambda: counters.value(counter_id), end, "the recording does not advance")
            seconds = time.perf_counter() - begin
        finally:
            publication.close()
        _until(
            lambda: self._client.stop_position(recording_id) != NULL_POSITION,
            "the recording did not stop",
        )
        self._recording_id, self.recorded_length = recording_id, end
        return seconds

    def replay(self) -> float:
        """Replay the last recording to a subscriber that skips the data; return the seconds."""
        return replay_seconds(self._aeron, self._client, self._recorded(), self.recorded_length)

    def scan(self) -> float:
        """Read the last recording into Arrow on one processor; return the seconds."""
        from aerotape.replay.offline.directory import open_directory

        recording = open_directory(self.folder).recording(self._recorded())
        begin = time.perf_counter()
        count = sum(batch.num_rows for batch in recording.to_batches())
        seconds = time.perf_counter() - begin
        if count != self.messages:
            raise AerotapeError(f"scan found {count} messages, expected {self.messages}")
        return seconds

    def _recorded(self) -> int:
        if self._recording_id is None:
            self.record()
        assert self._recording_id is not None
        return self._recording_id

    def _flood(self, publication: _native.ExclusivePublication) -> None:
        length = len(self._payload)
        at_once = max(1, _OFFERED_BYTES // frame_bytes(length))
        slices = array("q", [0, length] * at_once)
        left, deadline = self.messages, time.monotonic() + _STALLED_S
        while left > 0:
            offered = slices if left >= at_once else slices[: 2 * left]
            sent, result = publication.offer_slices(
                b"", self._payload, offered, patience_ns=_PATIENCE_NS
            )
            left -= sent
            if sent:
                deadline = time.monotonic() + _STALLED_S
            elif time.monotonic() >= deadline:
                raise AerotapeError(
                    f"no message was accepted for {_STALLED_S:g} s (offers return {result})"
                )


def replay_seconds(
    aeron: Aeron, client: ArchiveClient, recording_id: int, length: int, channel: str = CHANNEL
) -> float:
    """Replay a recording of `length` bytes to a subscriber that skips the data."""
    subscription = aeron.native.add_subscription(channel, _REPLAY_STREAM_ID)
    try:
        begin = time.perf_counter()
        replay_session_id = client.start_replay(recording_id, channel, _REPLAY_STREAM_ID)
        session_id = int.from_bytes(
            (replay_session_id & 0xFFFFFFFF).to_bytes(4, "little"), "little", signed=True
        )
        image = _until(
            lambda: subscription.image_by_session_id(session_id), "the replay did not start"
        )

        def position() -> int:
            image.skip_to(length, _FRAGMENTS)
            return image.position

        _until_moved(position, length, "the replay does not advance")
        return time.perf_counter() - begin
    finally:
        subscription.close()


def _recording(counters: _native.CountersReader, session_id: int) -> tuple[int, int] | None:
    """Return the recording id and the counter id of the recording of a session."""
    for counter_id, _, key, *_ in counters.rows(CounterType.RECORDING_POSITION):
        if int.from_bytes(key[8:12], "little", signed=True) == session_id:
            return int.from_bytes(key[:8], "little"), counter_id
    return None


def _until(found: Callable[[], _T | None], complaint: str) -> _T:
    """Wait until a function returns a true value, and return it."""
    deadline = time.monotonic() + _STALLED_S
    while not (it := found()):
        if time.monotonic() >= deadline:
            raise AerotapeError(f"{complaint} ({_STALLED_S:g} s)")
        time.sleep(0.000_1)
    return it


def _until_moved(position: Callable[[], int], end: int, complaint: str) -> None:
    """Wait until a position reaches the end; an error if it stops advancing."""
    last, deadline = -1, time.monotonic() + _STALLED_S
    while (now := position()) < end:
        if now > last:
            last, deadline = now, time.monotonic() + _STALLED_S
            time.sleep(0)  # let other Python threads run
        elif time.monotonic() >= deadline:
            raise AerotapeError(f"{complaint} at position {now} of {end} ({_STALLED_S:g} s)")
        else:
            time.sleep(0.000_05)
