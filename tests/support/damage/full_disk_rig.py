"""An archive with a directory on a small disk, and a client that uses the protocol directly."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, RecordingSignal, SourceLocation
from support.daemon.control_rig import RawClient

IPC = "aeron:ipc?term-length=64k"
MEBIBYTE = 1 << 20
SEGMENT_BYTES = 1 << 20
THRESHOLD_BYTES = 256 << 10
PROPERTIES = {
    "aeron.archive.segment.file.length": str(SEGMENT_BYTES),
    "aeron.archive.low.storage.space.threshold": str(THRESHOLD_BYTES),
    "aeron.archive.threading.mode": "DEDICATED",
}


class Rig:
    """An archive with a directory on a small disk, and a client that uses the protocol directly."""

    def __init__(self, archive: Any, stack: ExitStack) -> None:
        self.archive = archive
        self.aeron = _native.AeronClient(str(archive.aeron_dir))
        stack.callback(self.aeron.close)
        self.raw = RawClient(self.aeron, IPC)
        self.raw.connect()
        self._streams = 100

    def start(self) -> tuple[int, Any]:
        """Start to record a separate stream; return the correlation id and the publication."""
        self._streams += 1
        response = self.try_start(self._streams)
        assert response.code is ControlResponseCode.OK, response
        publication = self.aeron.add_exclusive_publication(IPC, self._streams)
        self.signal(response.correlation_id, RecordingSignal.START)
        return response.correlation_id, publication

    def try_start(self, stream_id: int, channel: str = IPC) -> Any:
        return self.raw.call(
            codecs.StartRecordingRequest,
            stream_id=stream_id,
            source_location=SourceLocation.LOCAL,
            channel=channel,
        )

    def signal(self, correlation_id: int, signal: RecordingSignal) -> Any:
        return self.raw.await_message(
            codecs.RecordingSignalEvent, correlation_id=correlation_id, signal=signal
        )

    def error(self, correlation_id: int) -> Any:
        """Wait for the error of a request that was accepted before."""
        return self.raw.await_message(
            codecs.ControlResponse, correlation_id=correlation_id, code=ControlResponseCode.ERROR
        )

    def offer(self, publication: Any, first: int, count: int) -> None:
        for index in range(first, first + count):
            assert publication.offer_within(content(index), 10_000_000_000) > 0

    def offer_until_error(self, publication: Any, correlation_id: int, first: int = 0) -> int:
        """Publish until the recording fails; return the number of messages sent."""
        index = first
        deadline_s = time.monotonic() + 60
        while not any(
            getattr(message, "correlation_id", None) == correlation_id
            and isinstance(message, codecs.ControlResponse)
            for message in self.raw.received
        ):
            # Refused while the recorder lags, and for good once it has stopped.
            if publication.offer(content(index)) > 0:
                index += 1
            self.raw.poll(0.0005)
            assert time.monotonic() < deadline_s, f"no error; got {self.raw.received}"
        return index

    def messages(self, recording_id: int, end: int) -> list[bytes]:
        """Replay a whole recording."""
        self._streams += 1
        subscription = self.aeron.add_subscription(IPC, self._streams)
        response = self.raw.call(
            codecs.ReplayRequest,
            recording_id=recording_id,
            position=0,
            length=end,
            replay_stream_id=self._streams,
            replay_channel=IPC,
        )
        assert response.code is ControlResponseCode.OK, response
        received: list[bytes] = []
        image = None
        deadline_s = time.monotonic() + 60
        # The last frame may be padding, which is not a message.
        while image is None or image.position < end:
            image = image or next(iter(subscription.images()), None)
            received += [payload for payload, *_ in subscription.poll(50, 1_000_000)]
            assert time.monotonic() < deadline_s, f"the replay came to {image and image.position}"
        image.release()
        subscription.close()
        return received

    def descriptor(self, recording_id: int) -> Any:
        correlation_id = self.raw.request(codecs.ListRecordingRequest, recording_id=recording_id)
        return self.raw.await_message(codecs.RecordingDescriptor, correlation_id=correlation_id)

    def value(self, counter_type: int) -> int:
        [row] = self.aeron.counters().rows(counter_type)
        return int(row[7])


def content(index: int) -> bytes:
    """A message of a variable length that contains its position in the stream."""
    return index.to_bytes(8, "little") * (20 + index % 150)
