"""Generated messages: defaults, versions and buffers."""

from __future__ import annotations

import struct

import pytest

from aerotape.codecs.generated import archive, mark


def test_none_is_the_null_value() -> None:
    """None is encoded as the null value of the schema, and decoded as None."""
    request = archive.ReplayRequest(file_io_max_length=None, replay_token=None)
    encoded = request.encode()
    assert encoded[8 + 44 : 8 + 56] == struct.pack("<iq", -(1 << 31), -(1 << 63))
    assert archive.decode(encoded) == request
    header = mark.MarkFileHeader(header_length=None, archive_id=None)
    body = header.encode_body()
    assert struct.unpack_from("<i", body, 44) == (0,)
    assert struct.unpack_from("<q", body, 56) == (-1,)
    assert mark.decode(header.encode()) == header


def test_minus_one_is_not_null() -> None:
    """-1, which clients send for "not set", is not mistaken for the schema's null."""
    request = archive.decode(archive.BoundedReplayRequest(file_io_max_length=-1).encode())
    assert isinstance(request, archive.BoundedReplayRequest)
    assert request.file_io_max_length == -1


def test_newer_sender() -> None:
    """Fields and data that a newer schema version appends are skipped."""
    known = archive.AuthConnectRequest(
        correlation_id=5, response_stream_id=20, version=65_792,
        response_channel="aeron:ipc", encoded_credentials=b"\0\xff", client_info="name=test",
    )  # fmt: skip
    body = known.encode_body()
    encoded = (
        struct.pack("<HHHH", known.BLOCK_LENGTH + 12, known.TEMPLATE_ID, 101, 99)
        + body[: known.BLOCK_LENGTH]
        + b"unknown area"
        + body[known.BLOCK_LENGTH :]
        + struct.pack("<I", 3)
        + b"new"
    )
    assert archive.decode(encoded) == known


def test_sender_before_the_data_existed() -> None:
    """Variable data newer than the sender is None, and is not read from the bytes."""
    known = archive.AuthConnectRequest(response_channel="aeron:ipc", encoded_credentials=b"pw")
    body = known.encode_body()[:-4]
    request = archive.AuthConnectRequest.decode_body(body, 0, known.BLOCK_LENGTH, version=11)
    assert request.client_info is None
    assert (request.response_channel, request.encoded_credentials) == ("aeron:ipc", b"pw")
    # Encoded again with our version, it has empty client info.
    again = archive.decode(request.encode())
    assert isinstance(again, archive.AuthConnectRequest)
    assert again.client_info == ""


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_and_offset(kind: type) -> None:
    """Bodies are read from bytes, bytearrays and views at any offset; results are copies."""
    request = archive.ChallengeResponse(1, 2, b"answer")
    source = bytearray(b"..." + request.encode_body() + b"...")
    decoded = archive.ChallengeResponse.decode_body(kind(source), 3)
    source[:] = bytes(len(source))
    assert decoded == request
    assert type(decoded.encoded_credentials) is bytes


def test_text_beyond_ascii_stays_readable() -> None:
    """A byte that the schema forbids in a text is decoded as an escape; the message is not lost."""
    encoded = archive.ControlResponse(error_message="caf?").encode().replace(b"?", b"\xe9")
    response = archive.decode(encoded)
    assert isinstance(response, archive.ControlResponse)
    assert response.error_message == "caf\\xe9"
    assert archive.decode(response.encode()) == response


def test_messages_reject_unknown_attributes() -> None:
    """A mistyped field name is an error at once, when constructing and when assigning."""
    with pytest.raises(TypeError):
        archive.ReplayRequest(recordingId=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        archive.ReplayRequest().recordingId = 1  # type: ignore[attr-defined]


def test_messages_are_compared_by_their_fields() -> None:
    """Messages of one type are equal when all fields are, and show them in wire order."""
    stop = archive.StopRecordingRequest(1, 2, 3, "aeron:ipc")
    assert stop == archive.StopRecordingRequest(1, 2, 3, channel="aeron:ipc")
    assert stop != archive.StopRecordingRequest(1, 2, 3, "aeron:udp")
    # Of another type with the same fields.
    assert archive.StopReplayRequest(1, 2, 3) != archive.TruncateRecordingRequest(1, 2, 3)
    assert repr(stop) == (
        "StopRecordingRequest(control_session_id=1, correlation_id=2, stream_id=3,"
        " channel='aeron:ipc')"
    )
    with pytest.raises(TypeError):
        hash(stop)
    match stop:
        case archive.StopRecordingRequest(1, correlation, channel=channel):
            assert (correlation, channel) == (2, "aeron:ipc")
        case _:
            pytest.fail("no match")
