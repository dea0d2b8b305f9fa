"""Two archives, one of which replicates from the other, with a Java client each."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.builders.streams import segment_files
from support.daemon.control_rig import await_true
from support.jvm.java import JavaArchiveException, JavaClient

CONTROL_STREAM_ID = 10
NULL = -1
_BATCH = 2_000


@dataclass(frozen=True)
class Side:
    """An archive and a Java client that is connected to it."""

    kind: str
    archive: Any
    client: JavaClient

    def segments(self, recording_id: int) -> dict[int, bytes]:
        """Return the bytes of a recording's segment files, by their base positions."""
        folder = Path(self.archive.archive_dir)
        bases = self.segment_bases(recording_id)
        return {base: (folder / f"{recording_id}-{base}.rec").read_bytes() for base in bases}

    def segment_bases(self, recording_id: int) -> list[int]:
        """Return the base positions of a recording's segment files."""
        return segment_files(self.archive.archive_dir, recording_id)

    def descriptor(self, recording_id: int) -> dict[str, Any]:
        """Return a recording's descriptor without the fields of the request."""
        [row] = self.client.call("listRecording", recording_id)
        return {n: v for n, v in row.items() if n not in ("controlSessionId", "correlationId")}

    def recorded(self, channel: str, stream_id: int, *, count: int = 200) -> Recorded:
        """Record `count` messages; the recording stays live."""
        self.client.call("startRecording", channel, stream_id, "LOCAL")
        return Recorded(self, channel, stream_id, count)

    def stopped(self, channel: str, stream_id: int, *, count: int = 200) -> Recorded:
        """Record `count` messages and stop the recording."""
        stream = self.recorded(channel, stream_id, count=count)
        stream.stop()
        return stream


class Recorded:
    """A stream that is being recorded by the Java archive or ours."""

    def __init__(self, side: Side, channel: str, stream_id: int, count: int) -> None:
        self.side = side
        self.channel = channel
        self.stream_id = stream_id
        self._count = 0
        self.publication = side.client.add_exclusive_publication(channel, stream_id)
        self._counter = side.client.recording_counter(self.publication["sessionId"])
        self.recording_id: int = self._counter["recordingId"]
        self.position: int = self.publication["position"]
        self.offer(count)

    def offer(self, count: int) -> int:
        """Record further messages; return the position after them."""
        # Offered in parts, because the time for each offer is limited.
        while count > 0:
            batch = min(count, _BATCH)
            offered = self.side.client.offer(
                self.publication,
                seed=self.stream_id,
                first_index=self._count,
                count=batch,
                max_length=3000,
            )
            self._count += batch
            count -= batch
            self.position = offered["position"]
            reached = self.side.client.await_counter(self._counter["counterId"], self.position)
            assert reached == self.position
        return self.position

    def stop(self) -> None:
        """End the recording and the stream."""
        self.side.client.call("stopRecording", self.channel, self.stream_id)
        client = self.side.client
        await_true(lambda: client.call("getStopPosition", self.recording_id) != NULL)
        self.side.client.close_resource(self.publication)


@dataclass(frozen=True)
class Pair:
    """A pair of archives: the destination replicates from the source."""

    destination: Side
    source: Side

    def replicate(self, recording_id: int, **params: Any) -> int:
        """Replicate a recording of the source; return the replication's id."""
        self.destination.client.call("takeSignals")
        result: int = self.destination.client.call(
            "replicate",
            recording_id,
            CONTROL_STREAM_ID,
            self.source.archive.control_channel,
            params,
        )
        return result

    def await_signals(
        self, last: str, timeout_s: float = 60.0, replica_id: int = NULL
    ) -> list[dict[str, Any]]:
        """Return the signals up to the one named; an error is returned like a signal.

        With the id of the destination recording, the wait continues as long as it grows.
        """
        deadline_s = time.monotonic() + timeout_s
        signals: list[dict[str, Any]] = []
        position = NULL
        while last not in [signal["signal"] for signal in signals]:
            if replica_id != NULL:
                before = position
                position = self.destination.client.call("getMaxRecordedPosition", replica_id)
                if position != before:
                    deadline_s = time.monotonic() + timeout_s
            what = f"{signals}, and recording {replica_id} is at {position}"
            assert time.monotonic() < deadline_s, f"no {last} signal, but {what}"
            try:
                signals += self.destination.client.call("takeSignals")
            except JavaArchiveException as error:
                signals.append({"signal": "ERROR", "position": error.error_code, "error": error})
            time.sleep(0.002)
        return signals

    def await_end(self) -> list[dict[str, Any]]:
        """Return the signals up to STOP and REPLICATE_END, in either order."""
        signals = self.await_signals("STOP")
        if "REPLICATE_END" not in names(signals):
            signals += self.await_signals("REPLICATE_END")
        return signals

    def assert_same(self, recording_id: int, replica_id: int) -> None:
        """Assert that a replica has the bytes of its source."""
        assert self.source.segments(recording_id) == self.destination.segments(replica_id)


def with_session_id(segments: dict[int, bytes], session_id: int) -> dict[int, bytes]:
    """Return segments with another session id in all their frames."""
    changed = {}
    for base, data in segments.items():
        copy = bytearray(data)
        offset = 0
        while offset < len(copy) and (length := struct.unpack_from("<i", copy, offset)[0]) > 0:
            struct.pack_into("<i", copy, offset + 12, session_id)
            offset += (length + 31) & ~31
        changed[base] = bytes(copy)
    return changed


def shown(signals: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return names and positions of signals; for an error its code."""
    return [(signal["signal"], signal["position"]) for signal in signals]


def names(signals: list[dict[str, Any]]) -> list[str]:
    """Return the names of signals."""
    return [signal["signal"] for signal in signals]
