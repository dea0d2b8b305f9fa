"""Measure recording and replaying over IPC, with an archive, a media driver and a publisher.

All are threads of this process. The publisher and the subscriber of a replay are native loops;
only measurements with Python in their name run Python code for each message.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from aerotape import _native
from aerotape.aeron import Aeron
from aerotape.archive.archive import Archive
from aerotape.channel_uri import with_session_id
from aerotape.clients import ArchiveClient, connect
from aerotape.context import Closing
from aerotape.counter_keys import CounterType
from aerotape.errors import AerotapeError
from aerotape.protocol import NULL_POSITION
from aerotape.tools._bench.measurement import Load
from aerotape.tools._bench.written import counting_payload, frame_bytes

if TYPE_CHECKING:
    from aerotape._native import ChecksumName
    from aerotape.tools._bench.workspace import Workspace

CHANNEL: Final = "aeron:ipc?term-length=16m"
_STREAM_ID: Final = 1001
_REPLAY_STREAM_ID: Final = 1002
_OFFERED_BYTES: Final = 1 << 20
_PATIENCE_NS: Final = 100_000_000
_STALLED_S: Final = 30.0
_FRAGMENTS: Final = 1 << 16
_T = TypeVar("_T")


class LiveArchive(Closing):
    """An archive that records streams of a fixed number of messages, one after the other."""

    def __init__(self, place: Workspace, load: Load, checksum: ChecksumName = "none") -> None:
        """Start the archive."""
        self.messages = max(1, load.length // frame_bytes(load.message_bytes))
        self.recorded_length = 0
        self._payload = counting_payload(load.message_bytes)
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
        self.folder = place.folder / f"live-{checksum}"
        with ExitStack() as stack:
            archive = stack.enter_context(
                Archive.launch(self.folder, place.aeron_dir, properties=properties)
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

    def replay_into_python(self) -> float:
        """Replay the last recording to the Python client by message; return the seconds."""
        begin = time.perf_counter()
        with self._client.replay(self._recorded()) as messages:
            count = sum(1 for _ in messages)
        seconds = time.perf_counter() - begin
        if count != self.messages:
            raise AerotapeError(f"a replay had {count} messages, expected {self.messages}")
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
