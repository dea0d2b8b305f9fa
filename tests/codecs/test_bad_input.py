"""Malformed messages are always a CodecError with the field and the offset."""

from __future__ import annotations

import struct
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.jvm.java_codecs import field_names

from aerotape.codecs.generated import archive, mark
from aerotape.codecs.runtime import Message
from aerotape.errors import CodecError

EVERY_MESSAGE = pytest.mark.parametrize(
    ("module", "kind"),
    [
        pytest.param(module, kind, id=kind.__name__)
        for module in (archive, mark)
        for kind in module.MESSAGES.values()
    ],
)
CHANNEL = "aeron:udp?endpoint=localhost:40123"
REPLAY = archive.ReplayRequest(
    control_session_id=1, recording_id=2, length=-1, replay_stream_id=7, replay_channel=CHANNEL
)


def header(block_length: int, template_id: int, schema_id: int = 101, version: int = 14) -> bytes:
    return struct.pack("<HHHH", block_length, template_id, schema_id, version)


@EVERY_MESSAGE
def test_truncated_at_every_length(module: ModuleType, kind: type[Message]) -> None:
    """A message truncated anywhere is refused, and only the whole one is read."""
    message = kind()
    for name in field_names(kind):
        if getattr(message, name) == "":
            setattr(message, name, CHANNEL)
        elif getattr(message, name) == b"":
            setattr(message, name, b"secret")
    whole = message.encode()
    for length in range(len(whole)):
        with pytest.raises(CodecError, match=r"short|exceeds? the end"):
            module.decode(whole[:length])
    assert module.decode(whole) == message


def test_unknown_template() -> None:
    """A template id that is not in the schema is reported in the error."""
    with pytest.raises(CodecError, match="unknown template id 999"):
        archive.decode(header(8, 999) + bytes(8))


def test_wrong_schema() -> None:
    """A message of another schema is refused even if its template id is known."""
    with pytest.raises(CodecError, match="schema 100, expected 101"):
        archive.decode(header(8, archive.Ping.TEMPLATE_ID, schema_id=100) + bytes(8))
    with pytest.raises(CodecError, match="schema 101, expected 100"):
        mark.decode(archive.Ping().encode())


@pytest.mark.parametrize("length", [len(CHANNEL) + 1, 1 << 30, (1 << 31) - 1, (1 << 32) - 1])
def test_absurd_data_length(length: int) -> None:
    """A text whose length exceeds the message is refused, by any amount."""
    encoded = bytearray(REPLAY.encode())
    struct.pack_into("<I", encoded, 8 + REPLAY.BLOCK_LENGTH, length)
    with pytest.raises(CodecError, match=rf"replay_channel: {length} bytes .* exceed the end"):
        archive.decode(encoded)


@pytest.mark.parametrize("block_length", [0, 1, 43, 55])
def test_block_shorter_than_that_of_its_version(block_length: int) -> None:
    """A block without the fields of the sender's version is refused."""
    encoded = header(block_length, REPLAY.TEMPLATE_ID) + REPLAY.encode_body()
    with pytest.raises(CodecError, match=f"{block_length} bytes is too short: .* 56"):
        archive.decode(encoded)


def test_block_longer_than_the_message() -> None:
    """A block whose length exceeds the message is refused."""
    encoded = header(0xFFFF, REPLAY.TEMPLATE_ID) + REPLAY.encode_body()
    with pytest.raises(CodecError, match="block of 65535 bytes at offset 8 exceeds the end"):
        archive.decode(encoded)


def test_offset_outside_the_buffer() -> None:
    """A body offset outside the buffer is refused, not read from the other end."""
    body = REPLAY.encode_body()
    for offset in (-1, -len(body), len(body), 1 << 40):
        with pytest.raises(CodecError, match="exceeds the end"):
            archive.ReplayRequest.decode_body(body, offset)


@pytest.mark.parametrize("value", [2, -1, -(1 << 31)])
def test_unknown_enum_value(value: int) -> None:
    """A number that is not a value of the enum is refused with the name of the field."""
    encoded = bytearray(archive.StartRecordingRequest2(channel=CHANNEL).encode())
    struct.pack_into("<i", encoded, 8 + 20, value)
    with pytest.raises(CodecError, match=rf"source_location: {value} is not a valid Source"):
        archive.decode(encoded)


@given(
    block_length=st.integers(0, 120),
    template_id=st.sampled_from(sorted(archive.MESSAGES)) | st.integers(0, 0xFFFF),
    version=st.integers(0, 20) | st.integers(0, 0xFFFF),
    body=st.binary(max_size=200),
)
@example(block_length=0, template_id=106, version=0, body=b"")
def test_noise_is_a_message_or_a_codec_error(
    block_length: int, template_id: int, version: int, body: bytes
) -> None:
    """Any bytes after a plausible header are a message or a CodecError."""
    try:
        message = archive.decode(header(block_length, template_id, version=version) + body)
    except CodecError:
        return
    assert archive.MESSAGES[template_id] is type(message)
    # A decoded message is valid: it can be encoded and decoded again.
    again = archive.decode(message.encode())
    assert again.encode() == message.encode()


@given(
    position=st.integers(0, len(REPLAY.encode()) - 1),
    flipped=st.integers(1, 255),
)
def test_flipped_bits_are_a_message_or_a_codec_error(position: int, flipped: int) -> None:
    """A damaged byte anywhere in a message raises only CodecError."""
    encoded = bytearray(REPLAY.encode())
    encoded[position] ^= flipped
    try:
        message = archive.decode(encoded)
    except CodecError:
        return
    assert isinstance(message, archive.MESSAGES[message.TEMPLATE_ID])


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (archive.ReplayRequest(position=1 << 63), r"ReplayRequest\.position: 9223372036854775808"),
        (archive.ReplayRequest(replay_stream_id=-(1 << 31) - 1), r"\.replay_stream_id: -2147"),
        (archive.ReplayRequest(file_io_max_length=1 << 31), r"\.file_io_max_length: 2147483648"),
        (archive.ReplayRequest(length=None), r"\.length: None"),  # type: ignore[arg-type]
        (archive.ReplayRequest(length=1.5), r"\.length: 1\.5"),  # type: ignore[arg-type]
        (archive.ReplayRequest(replay_channel="alias=é"), r"\.replay_channel: 'alias=é'"),
        (archive.ReplayRequest(replay_channel=b"x"), r"\.replay_channel: b'x'"),  # type: ignore[arg-type]
        (archive.ChallengeResponse(encoded_credentials="x"), r"\.encoded_credentials: 'x'"),  # type: ignore[arg-type]
        (archive.CatalogHeader(reserved=128), r"CatalogHeader\.reserved: 128"),
    ],
)
def test_values_that_do_not_fit(message: Message, text: str) -> None:
    """A value that its field cannot hold is refused at encoding, with the name of the field."""
    with pytest.raises(CodecError, match=text):
        message.encode()
