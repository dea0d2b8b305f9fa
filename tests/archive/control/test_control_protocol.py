"""The control protocol message by message: sessions, listings and invalid messages."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import RawClient, await_true, control_session_counters
from support.jvm.java import JavaArchive

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.protocol import PROTOCOL_VERSION, semantic_version

LOCAL = "aeron:ipc?term-length=64k"
# Images time out sooner than by default. Clients and connects do not, because of slow machines.
IMPATIENT = {
    "aeron.image.liveness.timeout": "1s",
    "aeron.timer.interval": "100ms",
    "aeron.archive.connect.timeout": "3s",
    "aeron.archive.session.liveness.check.interval": "100ms",
}


_streams = itertools.count(700)


@pytest.fixture
def raw(either: Any) -> Iterator[RawClient]:
    """A raw client of one archive or the other, not connected yet."""
    aeron = _native.AeronClient(str(either.aeron_dir))
    yield RawClient(aeron, LOCAL, response_stream_id=next(_streams))
    aeron.close()


def is_alive(raw: RawClient) -> bool:
    """Return whether the archive still responds on the session of `raw`."""
    return bool(raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK)


def has_response(raw: RawClient, correlation_id: int) -> bool:
    """Return whether a message with this correlation id is in `received`."""
    return any(getattr(m, "correlation_id", None) == correlation_id for m in raw.received)


def test_connect_response(either: Any, raw: RawClient) -> None:
    """The response is OK with the control session id, sent twice, and a compatible version."""
    response = raw.connect(client_info="raw test")
    assert response.code is ControlResponseCode.OK
    assert response.relevant_id == response.control_session_id == raw.control_session_id
    assert response.version >> 16 == PROTOCOL_VERSION >> 16
    assert response.error_message == ""
    [row] = [row for row in raw.client.counters().rows(113) if row[7] == raw.control_session_id]
    assert struct.unpack_from("<qq", row[2])[1] == raw.control_session_id
    assert row[3].startswith("control-session: raw test sourceIdentity=")
    # The session's counter refers to the publication of its responses.
    limits = [struct.unpack_from("<qii", each[2]) for each in raw.client.counters().rows(1)]
    responses = [key[0] for key in limits if key[2] == raw.response_stream_id]
    assert responses == [row[6]]
    [sessions] = raw.client.counters().rows(102)
    assert sessions[7] == len(raw.client.counters().rows(113))


def old_connect(raw: RawClient, schema_version: int, version: bytes) -> Any:
    """Send a connect request of template 2, byte by byte, and return the response to it."""
    channel = raw.response_channel.encode()
    correlation_id = raw.client.next_correlation_id()
    block = struct.pack("<qi", correlation_id, raw.response_stream_id) + version
    raw.send(
        struct.pack("<HHHH", len(block), 2, 101, schema_version)
        + block
        + struct.pack("<I", len(channel))
        + channel
    )
    response = raw.response(correlation_id)
    raw.control_session_id = response.control_session_id
    return response


def test_an_old_connect_request(either: Any, raw: RawClient) -> None:
    """A connect request without room for credentials begins a session, as aeron-go expects."""
    response = old_connect(raw, 6, struct.pack("<i", PROTOCOL_VERSION))
    assert response.code is ControlResponseCode.OK
    assert response.relevant_id == response.control_session_id == raw.control_session_id
    assert response.version >> 16 == PROTOCOL_VERSION >> 16
    assert is_alive(raw)
    [row] = [row for row in raw.client.counters().rows(113) if row[7] == raw.control_session_id]
    assert row[3].startswith("control-session: ")


@pytest.mark.parametrize(
    ("schema_version", "version"), [(6, struct.pack("<i", semantic_version(0, 9, 3))), (1, b"")]
)
def test_an_old_connect_request_of_another_major_version(
    either: Any, raw: RawClient, schema_version: int, version: bytes
) -> None:
    """It is refused like any other, also where its schema has no field for the version yet."""
    response = old_connect(raw, schema_version, version)
    assert response.code is ControlResponseCode.ERROR
    number = "0.9.3" if version else "0.0.0"
    assert f"invalid client version {number}" in response.error_message


def test_another_major_version_is_refused(either: Any, raw: RawClient) -> None:
    """The response is ERROR with both versions; requests of that session get no response."""
    response = raw.connect(version=semantic_version(0, 9, 3))
    assert response.code is ControlResponseCode.ERROR
    assert "invalid client version 0.9.3" in response.error_message
    correlation_id = raw.request(codecs.ArchiveIdRequest)
    raw.connect()
    assert is_alive(raw)
    assert not has_response(raw, correlation_id)


def test_a_close_request_ends_the_session(either: Any, raw: RawClient) -> None:
    """After a close request the session's counter and response stream are closed."""
    raw.connect()
    assert is_alive(raw)
    raw.send(codecs.CloseSessionRequest(control_session_id=raw.control_session_id))
    ended = raw.control_session_id
    await_true(lambda: ended not in control_session_counters(raw.client))
    await_true(lambda: not raw.subscription.is_connected)
    raw.connect()
    assert is_alive(raw)


def test_a_keep_alive_has_no_response(either: Any, raw: RawClient) -> None:
    """It only activates the session."""
    raw.connect()
    correlation_id = raw.request(codecs.KeepAliveRequest)
    assert is_alive(raw)
    assert not has_response(raw, correlation_id)


def test_a_session_belongs_to_the_stream_that_opened_it(start_daemon: Callable[..., Any]) -> None:
    """No other stream can use or close it, even with the right control session id."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw, other = (RawClient(aeron, LOCAL, response_stream_id=stream) for stream in (701, 702))
    raw.connect()
    other.connect()
    own = other.control_session_id
    other.control_session_id = raw.control_session_id
    correlation_id = other.request(codecs.ArchiveIdRequest)
    other.send(codecs.CloseSessionRequest(control_session_id=raw.control_session_id))
    other.control_session_id = own
    for client in (raw, other):
        assert is_alive(client)
        assert not has_response(client, correlation_id)
    await_true(lambda: "does not own the control session" in daemon.log())
    aeron.close()


def test_a_descriptor_too_long_for_the_client_is_an_error(
    start_daemon: Callable[..., Any],
) -> None:
    """The listing ends with an error that names the remedy; the session continues."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=703)
    raw.connect()
    channel = f"aeron:ipc?alias={'x' * 4079}"
    assert raw.call(codecs.StartRecordingRequest, stream_id=1, channel=channel).relevant_id > 0
    publication = aeron.add_publication("aeron:ipc", 1)
    await_true(lambda: len(aeron.counters().rows(100)) == 1)
    publication.close()
    response = raw.call(codecs.ListRecordingsRequest, from_recording_id=0, record_count=5)
    assert response.code is ControlResponseCode.ERROR
    assert "term-length" in response.error_message
    raw.close()
    roomy = RawClient(
        aeron, LOCAL, response_channel="aeron:ipc?term-length=256k", response_stream_id=704
    )
    roomy.connect()
    correlation_id = roomy.request(codecs.ListRecordingRequest, recording_id=0)
    descriptor = roomy.await_message(codecs.RecordingDescriptor)
    assert (descriptor.correlation_id, descriptor.original_channel) == (correlation_id, channel)
    aeron.close()


def header(template_id: int, block_length: int = 16, schema_id: int = 101) -> bytes:
    return struct.pack("<HHHH", block_length, template_id, schema_id, 14)


def bad_messages(session_id: int) -> dict[str, bytes]:
    """Return an invalid message for each kind of damage."""
    listing = codecs.ListRecordingsForUriRequest(
        control_session_id=session_id, correlation_id=1, record_count=1, channel="aeron"
    ).encode()
    fixed = len(listing) - len("aeron") - 4
    return {
        "empty": b"",
        "shorter than a header": b"\x01\x02\x03",
        "header only": header(codecs.ArchiveIdRequest.TEMPLATE_ID),
        "truncated block": listing[: fixed - 5],
        "no variable data": listing[:fixed],
        "variable data longer than the message": listing[:fixed] + struct.pack("<I", 4_000_000),
        "negative variable data": listing[:fixed] + struct.pack("<i", -1) + b"aeron",
        "block longer than the message": header(8, block_length=0xFFFF) + listing[8:],
        "block shorter than its fields": header(8, block_length=3) + listing[8:],
        "unknown template": header(999) + bytes(64),
        "wrong schema": header(codecs.ArchiveIdRequest.TEMPLATE_ID, schema_id=1) + bytes(64),
        "a response": codecs.ControlResponse(control_session_id=session_id).encode(),
        "unknown session": codecs.ArchiveIdRequest(control_session_id=session_id + 1000).encode(),
        "close of an unknown session": codecs.CloseSessionRequest(control_session_id=-1).encode(),
        "zeros": bytes(1000),
        "ones": b"\xff" * 1000,
    }


def test_bad_messages_are_ignored(either: Any, raw: RawClient) -> None:
    """Each kind of damage is ignored, as by the reference, and the session continues."""
    raw.connect()
    assert is_alive(raw)
    for damage, message in bad_messages(raw.control_session_id).items():
        raw.send(message)
        assert is_alive(raw), damage
    if isinstance(either, JavaArchive):
        # The Java archive reads past the end of a truncated message, and responds to some of these.
        return
    answers = [m for m in raw.received if isinstance(m, codecs.ControlResponse)]
    # The connect response may have been received more than once; nothing else has.
    assert {m.relevant_id for m in answers} <= {raw.control_session_id}


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_sessions_request_stream_is_cut_off(
    run_archive: Callable[..., Any], kind: str
) -> None:
    """The request publication of a client whose session has timed out is disconnected."""
    with run_archive(kind, IMPATIENT) as archive:
        aeron = _native.AeronClient(str(archive.aeron_dir))
        deaf, well = (RawClient(aeron, LOCAL, response_stream_id=stream) for stream in (705, 706))
        well.connect()
        deaf.send(
            codecs.AuthConnectRequest(
                correlation_id=aeron.next_correlation_id(),
                response_stream_id=99,
                version=PROTOCOL_VERSION,
                response_channel="aeron:ipc?alias=unread",
            )
        )
        assert deaf.publication.is_connected
        await_true(lambda: not deaf.publication.is_connected)
        assert is_alive(well)
        aeron.close()
