"""An archive (Java's or ours) that refuses requests, and a comparison of their error texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode, SourceLocation
from support.daemon.control_rig import RawClient, await_true

IPC = "aeron:ipc?term-length=64k"
NOBODY = 1 << 40
MAX_RECORDINGS = 60
SEGMENT_LENGTH = 64 * 1024
# A message of this length takes a frame of 1,024 bytes.
MESSAGE = b"x" * 992
_streams = itertools.count(3100)
_GUARDS = {
    "aerotape": ("support.daemon.authenticator:Guard", "support.daemon.authenticator:Actions"),
    "java": ("harness.Guard", "harness.Guard$Actions"),
}


def properties(kind: str) -> dict[str, str]:
    """Limits low enough to be reached, and the guard that accepts `open:NAME`."""
    authenticator, authorisation = _GUARDS[kind]
    return {
        "aeron.archive.authenticator.supplier": authenticator,
        "aeron.archive.authorisation.service.supplier": authorisation,
        "aeron.archive.max.concurrent.recordings": str(MAX_RECORDINGS),
        "aeron.archive.max.concurrent.replays": "1",
        # The time that a test waits for a source that does not exist.
        "aeron.archive.message.timeout": "3s",
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32",
        "aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32",
    }


def next_stream_id() -> int:
    """Return a stream id that no other test uses."""
    return next(_streams)


class Rig:
    """An archive that refuses requests, a session with all rights, and streams to record."""

    def __init__(self, archive: Any) -> None:
        self.archive = archive
        self.aeron = _native.AeronClient(str(archive.aeron_dir))
        self.raw = self.connected(b"open:alice")

    def connected(self, credentials: bytes, **fields: Any) -> RawClient:
        """Return a further session."""
        raw = RawClient(self.aeron, IPC, response_stream_id=next_stream_id())
        self.answer = raw.connect(encoded_credentials=credentials, **fields)
        return raw

    def refused(self, kind: Callable[..., Any], **fields: Any) -> Any:
        """Return the error response to a request."""
        return error(self.raw.call(kind, **fields))

    def start(self, stream_id: int, channel: str = IPC) -> Any:
        """Return the response to a recording request."""
        return self.raw.call(
            codecs.StartRecordingRequest,
            stream_id=stream_id,
            source_location=SourceLocation.LOCAL,
            channel=channel,
        )

    def recording(self, stream_id: int, count: int, params: str = "") -> tuple[int, Any]:
        """Record messages; return the ids of the live recording and of its stream.

        Args:
            params: further parameters of the publication's channel, each with a leading `|`.
        """
        started = self.start(stream_id)
        assert started.code is ControlResponseCode.OK, started
        channel = f"aeron:ipc?{params[1:]}" if "term-length" in params else IPC + params
        publication = self.aeron.add_exclusive_publication(channel, stream_id)
        signal = self.signal(started.correlation_id, codecs.RecordingSignal.START)
        recording_id = int(signal.recording_id)
        for _ in range(count):
            assert publication.offer_within(MESSAGE, 5_000_000_000) > 0
        await_true(lambda: self.position(recording_id) == publication.position)
        return recording_id, publication

    def signal(self, correlation_id: int, wanted: codecs.RecordingSignal) -> Any:
        """Wait for a signal about what a request has started."""
        return self.raw.await_message(
            codecs.RecordingSignalEvent, correlation_id=correlation_id, signal=wanted
        )

    def position(self, recording_id: int) -> int:
        answer = self.raw.call(codecs.RecordingPositionRequest, recording_id=recording_id)
        return int(answer.relevant_id)

    def stopped(self, count: int, params: str = "", stream_id: int | None = None) -> int:
        """Make a `recording` and stop it."""
        stream_id = next_stream_id() if stream_id is None else stream_id
        recording_id, publication = self.recording(stream_id, count, params)
        # The stream is closed first, so that the next recording of its channel does not record it.
        publication.close()
        await_true(lambda: self.position(recording_id) == -1)
        self.raw.call(codecs.StopRecordingRequest, stream_id=stream_id, channel=IPC)
        return recording_id

    def segment_file(self, recording_id: int, base_position: int = 0) -> Path:
        """Return the path of a segment file."""
        return Path(self.archive.archive_dir, f"{recording_id}-{base_position}.rec")

    def error_after_ok(self, kind: Callable[..., Any], **fields: Any) -> Any:
        """Return the error of a request that failed after its OK.

        Errors of a replication have its id, which is the relevant id of the OK.
        """
        granted = self.raw.call(kind, **fields)
        assert granted.code is ControlResponseCode.OK, granted
        ids = (granted.correlation_id, granted.relevant_id)
        return self.raw.await_where(
            lambda each: (
                isinstance(each, codecs.ControlResponse)
                and each.code is ControlResponseCode.ERROR
                and each.correlation_id in ids
            )
        )


def error(answer: Any) -> Any:
    """Return the response, which must be an error."""
    assert answer.code is ControlResponseCode.ERROR, answer
    return answer


def replay_fields(recording_id: int, **fields: Any) -> dict[str, Any]:
    """Return the fields of a replay request; the default is all of a recording."""
    return {
        "recording_id": recording_id,
        "position": -1,
        "length": -1,
        "replay_stream_id": next_stream_id(),
        "file_io_max_length": -1,
        "replay_channel": "aeron:ipc",
        **fields,
    }


def replication_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields of a replication request; the default is recording 0 to a new one."""
    return {
        "src_recording_id": 0,
        "dst_recording_id": -1,
        "stop_position": -1,
        "channel_tag_id": -1,
        "subscription_tag_id": -1,
        "src_control_stream_id": 10,
        "file_io_max_length": -1,
        "replication_session_id": -1,
        **fields,
    }


# The beginnings of texts of Java, its client or its driver, and of the id of a failed replay.
_JAVAS_OWN = re.compile(
    r"(java|io\.aeron)\.[a-z.]+[A-Z]|For input string|step=[A-Z]|x{50}"
    r"|, recordingId=\d+, replaySessionId="
)
# Texts of Aeron 1.54 that differ in Java 1.51.
_NEWER = {
    "max concurrent recordings reached N": "max concurrent recordings reached at N",
    "When replaying and stopping": "when replaying and stopping",
    "invalid media: ": "unknown media: ",
}


def words(answer: Any, rig: Rig) -> str:
    """Return the text of an error without numbers and addresses, which differ between runs.

    In texts of the Java archive, the category at the beginning is removed too, and everything from
    the point at which the texts differ.
    """
    text = answer.error_message.replace(str(rig.archive.archive_dir), "DIR")
    text = re.sub(r"\b(ERROR|WARN|FATAL) - ", "", text)
    text = re.sub(r"-?\d+", "N", _JAVAS_OWN.split(text)[0])
    for older, newer in _NEWER.items():
        text = text.replace(older, newer)
    return text
