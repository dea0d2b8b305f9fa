"""Clients that send invalid messages: the archive and all other clients continue."""

from __future__ import annotations

import dataclasses
import enum
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from support.daemon.control_rig import RawClient, await_true, control_session_counters

import aerotape
from aerotape import _native
from aerotape.archive.control.control_session_adapter import MAX_MESSAGE_LENGTH
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.errors import CodecError
from aerotape.protocol import ErrorCode

LOCAL = "aeron:ipc?term-length=64k"
WIDE = "aeron:ipc?term-length=4m"
LIVE_STREAM_ID = 4321
_HEADER = struct.Struct("<HHHH")
_NUMBERS = (0, 1, -1, 2, 3, 7, 4096, 65_536, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_TEXTS = (
    "",
    "aeron:ipc",
    "aeron:ipc?term-length=64k|mtu=1408",
    "aeron:ipc?session-id=5",
    "aeron:ipc?term-length=1|mtu=0",
    "aeron:ipc?init-term-id=0|term-id=9|term-offset=64|term-length=64k",
    "aeron:ipc?alias=" + "x" * 4000,
    "aeron:udp?endpoint=127.0.0.1:0",
    "aeron:udp?endpoint=127.0.0.1:99999",
    "aeron:udp?control-mode=response|control=127.0.0.1:0",
    "aeron:udp?control-mode=response|response-correlation-id=-1",
    "aeron:udp?control-mode=manual",
    "aeron-spy:aeron:ipc",
    "aeron:",
    "aeron:ipc?",
    "aeron:ipc?=|=|",
    "ipc",
    "../../etc/passwd",
    "/etc/passwd\x00",
    "%s%n{0}" * 20,
    "x" * 8000,
)
_REQUESTS = [
    kind
    for kind in codecs.MESSAGES.values()
    if "Request" in kind.__name__ or kind is codecs.ChallengeResponse
]


@dataclasses.dataclass
class Bystander:
    """A client with a session and a recording that others must not harm."""

    raw: RawClient
    recorder: aerotape.ArchiveClient
    publication: Any
    recording_id: int

    def is_served(self) -> None:
        """It receives responses, and is recorded to the last message."""
        answer = self.raw.call(codecs.ArchiveIdRequest)
        assert answer.code is ControlResponseCode.OK
        end = self.publication.send(b"still here")
        await_true(lambda: self.recorder.max_recorded_position(self.recording_id) == end)


@pytest.fixture
def daemon(start_daemon: Callable[..., Any]) -> Any:
    """Our archive."""
    return start_daemon()


@pytest.fixture
def aeron(daemon: Any) -> Iterator[_native.AeronClient]:
    """An Aeron client for raw clients."""
    client = _native.AeronClient(str(daemon.aeron_dir))
    yield client
    client.close()


@pytest.fixture
def bystander(daemon: Any, aeron: _native.AeronClient) -> Iterator[Bystander]:
    """A client that was connected first."""
    raw = RawClient(aeron, LOCAL, response_stream_id=801)
    raw.connect()
    channel = "aeron:udp?endpoint=127.0.0.1:24326|ssc=true"
    with (
        aerotape.connect(aeron_dir=daemon.aeron_dir) as recorder,
        recorder.aeron.add_publication(channel, LIVE_STREAM_ID) as publication,
    ):
        # High ids: a random request with a small id may stop a recording, which is valid.
        recorder.start_recording("aeron:ipc", LIVE_STREAM_ID)
        for count in range(1, 22):
            with recorder.aeron.add_exclusive_publication("aeron:ipc", LIVE_STREAM_ID):
                await_true(lambda count=count: len(list(recorder.list_recordings(0))) == count)  # type: ignore[misc]
        recorder.stop_recording("aeron:ipc", LIVE_STREAM_ID)
        recorder.start_recording(channel, LIVE_STREAM_ID)
        await_true(lambda: any(recorder.list_recordings_for_uri("24326", LIVE_STREAM_ID)))
        (found,) = recorder.list_recordings_for_uri("24326", LIVE_STREAM_ID)
        yield Bystander(raw, recorder, publication, found.recording_id)


class Attacker:
    """Sends arbitrary messages over its session; reconnects when the session has ended."""

    def __init__(self, aeron: _native.AeronClient, seed: int) -> None:
        self.aeron = aeron
        self.dice = random.Random(seed)
        self._stream_id = 900
        self.answers = 0
        self.raw = self._connected()

    def _connected(self) -> RawClient:
        self._stream_id += 1
        raw = RawClient(self.aeron, WIDE, response_stream_id=self._stream_id)
        raw.connect()
        return raw

    def send(self, data: bytes) -> None:
        if self.raw.publication.offer_within(data, 1_000_000_000) <= 0:
            # The archive may disconnect the session.
            self.raw.close()
            self.raw = self._connected()
        self.raw.poll()
        self.answers += len(self.raw.received)
        self.raw.received.clear()

    def renew(self) -> None:
        """Connect again if the session has ended."""
        if self.raw.control_session_id not in control_session_counters(self.aeron):
            self.raw.close()
            self.raw = self._connected()

    def request(self, kind: type[Any]) -> bytes:
        """A request with extreme fields, over this session."""
        while True:
            fields = {
                name: self._value(name, kinds)
                for name, kinds in _fields(kind)
                if name != "control_session_id"
            }
            if "control_session_id" in kind.__match_args__:
                fields["control_session_id"] = self.raw.control_session_id
            try:
                return bytes(kind(**fields).encode())
            except CodecError:
                continue

    def _value(self, name: str, kinds: tuple[type, ...]) -> Any:
        dice = self.dice
        for kind in kinds:
            if issubclass(kind, enum.Enum):
                return dice.choice([each for each in kind if each.name != "NULL_VAL"])
        if str in kinds:
            return dice.choice(_TEXTS)
        if bytes in kinds:
            return dice.randbytes(dice.choice((0, 1, 100, 5000)))
        if name == "correlation_id":
            return self.aeron.next_correlation_id()
        return dice.choice((*_NUMBERS, dice.randrange(-(2**31), 2**31)))

    def damaged(self, data: bytes) -> bytes:
        """Flipped bits, missing or additional bytes, or wrong lengths."""
        dice = self.dice
        message = bytearray(data)
        match dice.randrange(5):
            case 0:
                del message[dice.randrange(len(message)) :]
            case 1:
                for _ in range(dice.randrange(1, 8)):
                    message[dice.randrange(len(message))] ^= 1 << dice.randrange(8)
            case 2:
                _HEADER.pack_into(
                    message, 0, dice.randrange(65_536), *_HEADER.unpack_from(message)[1:3], 0
                )
            case 3:
                length = dice.choice((0xFFFFFFFF, 0x7FFFFFFF, 0x40000000, len(message), 1))
                at = dice.randrange(8, max(9, len(message) - 4))
                message[at : at + 4] = struct.pack("<I", length)
            case _:
                message += dice.randbytes(dice.randrange(1, 2000))
        return bytes(message)


def _fields(kind: type[Any]) -> list[tuple[str, tuple[type, ...]]]:
    hints = get_type_hints(kind.__init__, vars(codecs))
    return [
        (name, getattr(hints[name], "__args__", None) or (hints[name],))
        for name in kind.__match_args__
    ]


def served(daemon: Any, bystander: Bystander) -> None:
    """Check that the bystander is served and no internal error was logged."""
    bystander.is_served()
    assert daemon.process.is_running
    assert "Traceback" not in daemon.log(), daemon.log()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_request_with_troublesome_fields_and_damaged(
    daemon: Any, aeron: _native.AeronClient, bystander: Bystander, seed: int
) -> None:
    """Each template is sent many times: extreme values, truncated, and with false lengths."""
    attacker = Attacker(aeron, seed)
    for kind in _REQUESTS:
        for _ in range(6):
            attacker.send(attacker.request(kind))
        for _ in range(24):
            attacker.send(attacker.damaged(attacker.request(kind)))
        attacker.renew()
        served(daemon, bystander)
    # The requests reached their handlers.
    assert attacker.answers > 200
    for _ in range(300):
        attacker.send(attacker.dice.randbytes(attacker.dice.randrange(1, 3000)))
    served(daemon, bystander)


def test_a_message_longer_than_any_request_is_ignored(
    daemon: Any, aeron: _native.AeronClient, bystander: Bystander
) -> None:
    """It is neither reassembled in full nor handled, and its session continues."""
    raw = RawClient(aeron, "aeron:ipc?term-length=64m", response_stream_id=802)
    raw.connect()
    channel = "aeron:ipc?alias=" + "x" * 3_000
    fits = raw.call(codecs.StopRecordingRequest, stream_id=1, channel=channel)
    assert fits.relevant_id == ErrorCode.UNKNOWN_SUBSCRIPTION
    length = MAX_MESSAGE_LENGTH
    for extra in (1, 1_000_000, 8_000_000):
        request = raw.request(
            codecs.StopRecordingRequest, stream_id=1, channel="x" * (length + extra)
        )
        assert raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
        assert request not in [getattr(m, "correlation_id", None) for m in raw.received]
    daemon.await_log("longer than any request")
    served(daemon, bystander)


def test_a_flood_of_connects_is_survived(
    daemon: Any, aeron: _native.AeronClient, bystander: Bystander
) -> None:
    """Hundreds of connects without a subscriber for their responses; the sessions time out."""
    raw = RawClient(aeron, LOCAL, response_stream_id=803)
    for number in range(300):
        raw.send(
            codecs.AuthConnectRequest(
                correlation_id=aeron.next_correlation_id(),
                response_stream_id=10_000 + number,
                version=1 << 16,
                response_channel="aeron:ipc?term-length=64k",
                encoded_credentials=b"x" * 500,
                client_info="y" * 500,
            )
        )
    served(daemon, bystander)
    await_true(lambda: len(control_session_counters(aeron)) <= 2)
    served(daemon, bystander)
