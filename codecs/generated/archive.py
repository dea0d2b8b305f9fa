"""Messages of the SBE schema io.aeron.archive.codecs, id 101, version 14.

Generated from aeron-archive-codecs.xml with sbe-tool by codecs/generate.py; do not edit.
Regenerate: python -m aerotape.codecs.generate
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import ClassVar, Self

from aerotape.codecs.runtime import (
    ENCODE_FAULTS,
    Buffer,
    Message,
    check_block,
    data_field,
    decode_message,
    encode_error,
    enum_member,
    read_data,
    read_text,
    text_field,
)

SCHEMA_ID = 101
SCHEMA_VERSION = 14


class ControlResponseCode(IntEnum):
    """Enum `ControlResponseCode` of the schema, int32 on the wire."""

    OK = 0
    ERROR = 1
    RECORDING_UNKNOWN = 2
    SUBSCRIPTION_UNKNOWN = 3


class SourceLocation(IntEnum):
    """Enum `SourceLocation` of the schema, int32 on the wire."""

    LOCAL = 0
    REMOTE = 1


class BooleanType(IntEnum):
    """Enum `BooleanType` of the schema, int32 on the wire."""

    FALSE = 0
    TRUE = 1


class RecordingState(IntEnum):
    """Enum `RecordingState` of the schema, int32 on the wire."""

    INVALID = 0
    VALID = 1
    DELETED = 2


class RecordingSignal(IntEnum):
    """Enum `RecordingSignal` of the schema, int32 on the wire."""

    START = 0
    STOP = 1
    EXTEND = 2
    REPLICATE = 3
    MERGE = 4
    SYNC = 5
    DELETE = 6
    REPLICATE_END = 7


_CONTROL_RESPONSE = Struct("<HHHHqqqii")
_CONTROL_RESPONSE_BLOCK_V4 = Struct("<qqqii")
_CONTROL_RESPONSE_BLOCK_V0 = Struct("<qqqi")


class ControlResponse(Message):
    """Template 1, `ControlResponse`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "relevant_id",
        "code",
        "version",
        "error_message",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        relevant_id: int = 0,
        code: ControlResponseCode = ControlResponseCode.OK,
        version: int | None = None,  # since version 4
        error_message: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.relevant_id = relevant_id
        self.code = code
        self.version = version
        self.error_message = error_message

    def encode(self) -> bytes:
        try:
            block = _CONTROL_RESPONSE.pack(
                32,
                1,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.relevant_id,
                self.code,
                0 if self.version is None else self.version,
            )
            return block + text_field(self.error_message)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CONTROL_RESPONSE, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        version_: int | None = None
        if version >= 4:
            end = check_block("ControlResponse", buffer, offset, block_length, 32)
            (
                control_session_id,
                correlation_id,
                relevant_id,
                code,
                version_,
            ) = _CONTROL_RESPONSE_BLOCK_V4.unpack_from(buffer, offset)
        else:
            end = check_block("ControlResponse", buffer, offset, block_length, 28)
            (
                control_session_id,
                correlation_id,
                relevant_id,
                code,
            ) = _CONTROL_RESPONSE_BLOCK_V0.unpack_from(buffer, offset)
        code = enum_member(ControlResponseCode, code, "ControlResponse.code")
        if version_ == 0:
            version_ = None
        error_message, _ = read_text(buffer, end, "ControlResponse.error_message")
        return cls(control_session_id, correlation_id, relevant_id, code, version_, error_message)


_CLOSE_SESSION_REQUEST = Struct("<HHHHq")
_CLOSE_SESSION_REQUEST_BLOCK = Struct("<q")


class CloseSessionRequest(Message):
    """Template 3, `CloseSessionRequest`."""

    TEMPLATE_ID: ClassVar[int] = 3
    BLOCK_LENGTH: ClassVar[int] = 8
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id",)
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id

    def encode(self) -> bytes:
        try:
            return _CLOSE_SESSION_REQUEST.pack(8, 3, 101, 14, self.control_session_id)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CLOSE_SESSION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 8,
        version: int = 14,
    ) -> Self:
        check_block("CloseSessionRequest", buffer, offset, block_length, 8)
        (control_session_id,) = _CLOSE_SESSION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id)


_START_RECORDING_REQUEST = Struct("<HHHHqqii")
_START_RECORDING_REQUEST_BLOCK = Struct("<qqii")


class StartRecordingRequest(Message):
    """Template 4, `StartRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 4
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "stream_id",
        "source_location",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        stream_id: int = 0,
        source_location: SourceLocation = SourceLocation.LOCAL,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.stream_id = stream_id
        self.source_location = source_location
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _START_RECORDING_REQUEST.pack(
                24,
                4,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.stream_id,
                self.source_location,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _START_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        end = check_block("StartRecordingRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            stream_id,
            source_location,
        ) = _START_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        source_location = enum_member(
            SourceLocation,
            source_location,
            "StartRecordingRequest.source_location",
        )
        channel, _ = read_text(buffer, end, "StartRecordingRequest.channel")
        return cls(control_session_id, correlation_id, stream_id, source_location, channel)


_STOP_RECORDING_REQUEST = Struct("<HHHHqqi")
_STOP_RECORDING_REQUEST_BLOCK = Struct("<qqi")


class StopRecordingRequest(Message):
    """Template 5, `StopRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 5
    BLOCK_LENGTH: ClassVar[int] = 20
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "stream_id", "channel")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        stream_id: int = 0,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.stream_id = stream_id
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _STOP_RECORDING_REQUEST.pack(
                20,
                5,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.stream_id,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 20,
        version: int = 14,
    ) -> Self:
        end = check_block("StopRecordingRequest", buffer, offset, block_length, 20)
        (
            control_session_id,
            correlation_id,
            stream_id,
        ) = _STOP_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        channel, _ = read_text(buffer, end, "StopRecordingRequest.channel")
        return cls(control_session_id, correlation_id, stream_id, channel)


_REPLAY_REQUEST = Struct("<HHHHqqqqqiiq")
_REPLAY_REQUEST_BLOCK_V10 = Struct("<qqqqqiiq")
_REPLAY_REQUEST_BLOCK_V7 = Struct("<qqqqqii")
_REPLAY_REQUEST_BLOCK_V0 = Struct("<qqqqqi")


class ReplayRequest(Message):
    """Template 6, `ReplayRequest`."""

    TEMPLATE_ID: ClassVar[int] = 6
    BLOCK_LENGTH: ClassVar[int] = 56
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "position",
        "length",
        "replay_stream_id",
        "file_io_max_length",
        "replay_token",
        "replay_channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        position: int = 0,
        length: int = 0,
        replay_stream_id: int = 0,
        file_io_max_length: int | None = None,  # since version 7
        replay_token: int | None = None,  # since version 10
        replay_channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.position = position
        self.length = length
        self.replay_stream_id = replay_stream_id
        self.file_io_max_length = file_io_max_length
        self.replay_token = replay_token
        self.replay_channel = replay_channel

    def encode(self) -> bytes:
        try:
            block = _REPLAY_REQUEST.pack(
                56,
                6,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.position,
                self.length,
                self.replay_stream_id,
                -2147483648 if self.file_io_max_length is None else self.file_io_max_length,
                -9223372036854775808 if self.replay_token is None else self.replay_token,
            )
            return block + text_field(self.replay_channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLAY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 56,
        version: int = 14,
    ) -> Self:
        file_io_max_length: int | None = None
        replay_token: int | None = None
        if version >= 10:
            end = check_block("ReplayRequest", buffer, offset, block_length, 56)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                replay_stream_id,
                file_io_max_length,
                replay_token,
            ) = _REPLAY_REQUEST_BLOCK_V10.unpack_from(buffer, offset)
        elif version >= 7:
            end = check_block("ReplayRequest", buffer, offset, block_length, 48)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                replay_stream_id,
                file_io_max_length,
            ) = _REPLAY_REQUEST_BLOCK_V7.unpack_from(buffer, offset)
        else:
            end = check_block("ReplayRequest", buffer, offset, block_length, 44)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                replay_stream_id,
            ) = _REPLAY_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        if file_io_max_length == -2147483648:
            file_io_max_length = None
        if replay_token == -9223372036854775808:
            replay_token = None
        replay_channel, _ = read_text(buffer, end, "ReplayRequest.replay_channel")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            position,
            length,
            replay_stream_id,
            file_io_max_length,
            replay_token,
            replay_channel,
        )


_STOP_REPLAY_REQUEST = Struct("<HHHHqqq")
_STOP_REPLAY_REQUEST_BLOCK = Struct("<qqq")


class StopReplayRequest(Message):
    """Template 7, `StopReplayRequest`."""

    TEMPLATE_ID: ClassVar[int] = 7
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "replay_session_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        replay_session_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.replay_session_id = replay_session_id

    def encode(self) -> bytes:
        try:
            return _STOP_REPLAY_REQUEST.pack(
                24,
                7,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.replay_session_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_REPLAY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopReplayRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            replay_session_id,
        ) = _STOP_REPLAY_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, replay_session_id)


_LIST_RECORDINGS_REQUEST = Struct("<HHHHqqqi")
_LIST_RECORDINGS_REQUEST_BLOCK = Struct("<qqqi")


class ListRecordingsRequest(Message):
    """Template 8, `ListRecordingsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 8
    BLOCK_LENGTH: ClassVar[int] = 28
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "from_recording_id", "record_count")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        from_recording_id: int = 0,
        record_count: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.from_recording_id = from_recording_id
        self.record_count = record_count

    def encode(self) -> bytes:
        try:
            return _LIST_RECORDINGS_REQUEST.pack(
                28,
                8,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.from_recording_id,
                self.record_count,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_RECORDINGS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 28,
        version: int = 14,
    ) -> Self:
        check_block("ListRecordingsRequest", buffer, offset, block_length, 28)
        (
            control_session_id,
            correlation_id,
            from_recording_id,
            record_count,
        ) = _LIST_RECORDINGS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, from_recording_id, record_count)


_LIST_RECORDINGS_FOR_URI_REQUEST = Struct("<HHHHqqqii")
_LIST_RECORDINGS_FOR_URI_REQUEST_BLOCK = Struct("<qqqii")


class ListRecordingsForUriRequest(Message):
    """Template 9, `ListRecordingsForUriRequest`."""

    TEMPLATE_ID: ClassVar[int] = 9
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "from_recording_id",
        "record_count",
        "stream_id",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        from_recording_id: int = 0,
        record_count: int = 0,
        stream_id: int = 0,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.from_recording_id = from_recording_id
        self.record_count = record_count
        self.stream_id = stream_id
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _LIST_RECORDINGS_FOR_URI_REQUEST.pack(
                32,
                9,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.from_recording_id,
                self.record_count,
                self.stream_id,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_RECORDINGS_FOR_URI_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        end = check_block("ListRecordingsForUriRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            from_recording_id,
            record_count,
            stream_id,
        ) = _LIST_RECORDINGS_FOR_URI_REQUEST_BLOCK.unpack_from(buffer, offset)
        channel, _ = read_text(buffer, end, "ListRecordingsForUriRequest.channel")
        return cls(
            control_session_id,
            correlation_id,
            from_recording_id,
            record_count,
            stream_id,
            channel,
        )


_LIST_RECORDING_REQUEST = Struct("<HHHHqqq")
_LIST_RECORDING_REQUEST_BLOCK = Struct("<qqq")


class ListRecordingRequest(Message):
    """Template 10, `ListRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 10
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _LIST_RECORDING_REQUEST.pack(
                24,
                10,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("ListRecordingRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _LIST_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_EXTEND_RECORDING_REQUEST = Struct("<HHHHqqqii")
_EXTEND_RECORDING_REQUEST_BLOCK = Struct("<qqqii")


class ExtendRecordingRequest(Message):
    """Template 11, `ExtendRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 11
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "stream_id",
        "source_location",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        stream_id: int = 0,
        source_location: SourceLocation = SourceLocation.LOCAL,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.stream_id = stream_id
        self.source_location = source_location
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _EXTEND_RECORDING_REQUEST.pack(
                32,
                11,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.stream_id,
                self.source_location,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _EXTEND_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        end = check_block("ExtendRecordingRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            recording_id,
            stream_id,
            source_location,
        ) = _EXTEND_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        source_location = enum_member(
            SourceLocation,
            source_location,
            "ExtendRecordingRequest.source_location",
        )
        channel, _ = read_text(buffer, end, "ExtendRecordingRequest.channel")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            stream_id,
            source_location,
            channel,
        )


_RECORDING_POSITION_REQUEST = Struct("<HHHHqqq")
_RECORDING_POSITION_REQUEST_BLOCK = Struct("<qqq")


class RecordingPositionRequest(Message):
    """Template 12, `RecordingPositionRequest`."""

    TEMPLATE_ID: ClassVar[int] = 12
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _RECORDING_POSITION_REQUEST.pack(
                24,
                12,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_POSITION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("RecordingPositionRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _RECORDING_POSITION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_TRUNCATE_RECORDING_REQUEST = Struct("<HHHHqqqq")
_TRUNCATE_RECORDING_REQUEST_BLOCK = Struct("<qqqq")


class TruncateRecordingRequest(Message):
    """Template 13, `TruncateRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 13
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id", "position")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        position: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.position = position

    def encode(self) -> bytes:
        try:
            return _TRUNCATE_RECORDING_REQUEST.pack(
                32,
                13,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _TRUNCATE_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("TruncateRecordingRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            recording_id,
            position,
        ) = _TRUNCATE_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id, position)


_STOP_RECORDING_SUBSCRIPTION_REQUEST = Struct("<HHHHqqq")
_STOP_RECORDING_SUBSCRIPTION_REQUEST_BLOCK = Struct("<qqq")


class StopRecordingSubscriptionRequest(Message):
    """Template 14, `StopRecordingSubscriptionRequest`."""

    TEMPLATE_ID: ClassVar[int] = 14
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "subscription_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        subscription_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.subscription_id = subscription_id

    def encode(self) -> bytes:
        try:
            return _STOP_RECORDING_SUBSCRIPTION_REQUEST.pack(
                24,
                14,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.subscription_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_RECORDING_SUBSCRIPTION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopRecordingSubscriptionRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            subscription_id,
        ) = _STOP_RECORDING_SUBSCRIPTION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, subscription_id)


_STOP_POSITION_REQUEST = Struct("<HHHHqqq")
_STOP_POSITION_REQUEST_BLOCK = Struct("<qqq")


class StopPositionRequest(Message):
    """Template 15, `StopPositionRequest`."""

    TEMPLATE_ID: ClassVar[int] = 15
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _STOP_POSITION_REQUEST.pack(
                24,
                15,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_POSITION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopPositionRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _STOP_POSITION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_FIND_LAST_MATCHING_RECORDING_REQUEST = Struct("<HHHHqqqii")
_FIND_LAST_MATCHING_RECORDING_REQUEST_BLOCK = Struct("<qqqii")


class FindLastMatchingRecordingRequest(Message):
    """Template 16, `FindLastMatchingRecordingRequest`."""

    TEMPLATE_ID: ClassVar[int] = 16
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "min_recording_id",
        "session_id",
        "stream_id",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        min_recording_id: int = 0,
        session_id: int = 0,
        stream_id: int = 0,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.min_recording_id = min_recording_id
        self.session_id = session_id
        self.stream_id = stream_id
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _FIND_LAST_MATCHING_RECORDING_REQUEST.pack(
                32,
                16,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.min_recording_id,
                self.session_id,
                self.stream_id,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _FIND_LAST_MATCHING_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        end = check_block("FindLastMatchingRecordingRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            min_recording_id,
            session_id,
            stream_id,
        ) = _FIND_LAST_MATCHING_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        channel, _ = read_text(buffer, end, "FindLastMatchingRecordingRequest.channel")
        return cls(
            control_session_id,
            correlation_id,
            min_recording_id,
            session_id,
            stream_id,
            channel,
        )


_LIST_RECORDING_SUBSCRIPTIONS_REQUEST = Struct("<HHHHqqiiii")
_LIST_RECORDING_SUBSCRIPTIONS_REQUEST_BLOCK = Struct("<qqiiii")


class ListRecordingSubscriptionsRequest(Message):
    """Template 17, `ListRecordingSubscriptionsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 17
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "pseudo_index",
        "subscription_count",
        "apply_stream_id",
        "stream_id",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        pseudo_index: int = 0,
        subscription_count: int = 0,
        apply_stream_id: BooleanType = BooleanType.FALSE,
        stream_id: int = 0,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.pseudo_index = pseudo_index
        self.subscription_count = subscription_count
        self.apply_stream_id = apply_stream_id
        self.stream_id = stream_id
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _LIST_RECORDING_SUBSCRIPTIONS_REQUEST.pack(
                32,
                17,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.pseudo_index,
                self.subscription_count,
                self.apply_stream_id,
                self.stream_id,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_RECORDING_SUBSCRIPTIONS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        end = check_block("ListRecordingSubscriptionsRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            pseudo_index,
            subscription_count,
            apply_stream_id,
            stream_id,
        ) = _LIST_RECORDING_SUBSCRIPTIONS_REQUEST_BLOCK.unpack_from(buffer, offset)
        apply_stream_id = enum_member(
            BooleanType,
            apply_stream_id,
            "ListRecordingSubscriptionsRequest.apply_stream_id",
        )
        channel, _ = read_text(buffer, end, "ListRecordingSubscriptionsRequest.channel")
        return cls(
            control_session_id,
            correlation_id,
            pseudo_index,
            subscription_count,
            apply_stream_id,
            stream_id,
            channel,
        )


_BOUNDED_REPLAY_REQUEST = Struct("<HHHHqqqqqiiiq")
_BOUNDED_REPLAY_REQUEST_BLOCK_V10 = Struct("<qqqqqiiiq")
_BOUNDED_REPLAY_REQUEST_BLOCK_V7 = Struct("<qqqqqiii")
_BOUNDED_REPLAY_REQUEST_BLOCK_V0 = Struct("<qqqqqii")


class BoundedReplayRequest(Message):
    """Template 18, `BoundedReplayRequest`."""

    TEMPLATE_ID: ClassVar[int] = 18
    BLOCK_LENGTH: ClassVar[int] = 60
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "position",
        "length",
        "limit_counter_id",
        "replay_stream_id",
        "file_io_max_length",
        "replay_token",
        "replay_channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        position: int = 0,
        length: int = 0,
        limit_counter_id: int = 0,
        replay_stream_id: int = 0,
        file_io_max_length: int | None = None,  # since version 7
        replay_token: int | None = None,  # since version 10
        replay_channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.position = position
        self.length = length
        self.limit_counter_id = limit_counter_id
        self.replay_stream_id = replay_stream_id
        self.file_io_max_length = file_io_max_length
        self.replay_token = replay_token
        self.replay_channel = replay_channel

    def encode(self) -> bytes:
        try:
            block = _BOUNDED_REPLAY_REQUEST.pack(
                60,
                18,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.position,
                self.length,
                self.limit_counter_id,
                self.replay_stream_id,
                -2147483648 if self.file_io_max_length is None else self.file_io_max_length,
                -9223372036854775808 if self.replay_token is None else self.replay_token,
            )
            return block + text_field(self.replay_channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _BOUNDED_REPLAY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 60,
        version: int = 14,
    ) -> Self:
        file_io_max_length: int | None = None
        replay_token: int | None = None
        if version >= 10:
            end = check_block("BoundedReplayRequest", buffer, offset, block_length, 60)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                limit_counter_id,
                replay_stream_id,
                file_io_max_length,
                replay_token,
            ) = _BOUNDED_REPLAY_REQUEST_BLOCK_V10.unpack_from(buffer, offset)
        elif version >= 7:
            end = check_block("BoundedReplayRequest", buffer, offset, block_length, 52)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                limit_counter_id,
                replay_stream_id,
                file_io_max_length,
            ) = _BOUNDED_REPLAY_REQUEST_BLOCK_V7.unpack_from(buffer, offset)
        else:
            end = check_block("BoundedReplayRequest", buffer, offset, block_length, 48)
            (
                control_session_id,
                correlation_id,
                recording_id,
                position,
                length,
                limit_counter_id,
                replay_stream_id,
            ) = _BOUNDED_REPLAY_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        if file_io_max_length == -2147483648:
            file_io_max_length = None
        if replay_token == -9223372036854775808:
            replay_token = None
        replay_channel, _ = read_text(buffer, end, "BoundedReplayRequest.replay_channel")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            position,
            length,
            limit_counter_id,
            replay_stream_id,
            file_io_max_length,
            replay_token,
            replay_channel,
        )


_STOP_ALL_REPLAYS_REQUEST = Struct("<HHHHqqq")
_STOP_ALL_REPLAYS_REQUEST_BLOCK = Struct("<qqq")


class StopAllReplaysRequest(Message):
    """Template 19, `StopAllReplaysRequest`."""

    TEMPLATE_ID: ClassVar[int] = 19
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _STOP_ALL_REPLAYS_REQUEST.pack(
                24,
                19,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_ALL_REPLAYS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopAllReplaysRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _STOP_ALL_REPLAYS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_CATALOG_HEADER = Struct("<HHHHiiqi11xb")
_CATALOG_HEADER_BLOCK = Struct("<iiqi11xb")


class CatalogHeader(Message):
    """Template 20, `CatalogHeader`."""

    TEMPLATE_ID: ClassVar[int] = 20
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("version", "length", "next_recording_id", "alignment", "reserved")
    __slots__ = __match_args__

    def __init__(
        self,
        version: int = 0,
        length: int = 0,
        next_recording_id: int = 0,
        alignment: int = 0,
        reserved: int = 0,
    ) -> None:
        self.version = version
        self.length = length
        self.next_recording_id = next_recording_id
        self.alignment = alignment
        self.reserved = reserved

    def encode(self) -> bytes:
        try:
            return _CATALOG_HEADER.pack(
                32,
                20,
                101,
                14,
                self.version,
                self.length,
                self.next_recording_id,
                self.alignment,
                self.reserved,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CATALOG_HEADER, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("CatalogHeader", buffer, offset, block_length, 32)
        (
            version_,
            length,
            next_recording_id,
            alignment,
            reserved,
        ) = _CATALOG_HEADER_BLOCK.unpack_from(buffer, offset)
        return cls(version_, length, next_recording_id, alignment, reserved)


_RECORDING_DESCRIPTOR_HEADER = Struct("<HHHHiii19xb")
_RECORDING_DESCRIPTOR_HEADER_BLOCK = Struct("<iii19xb")


class RecordingDescriptorHeader(Message):
    """Template 21, `RecordingDescriptorHeader`."""

    TEMPLATE_ID: ClassVar[int] = 21
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("length", "state", "checksum", "reserved")
    __slots__ = __match_args__

    def __init__(
        self,
        length: int = 0,
        state: RecordingState = RecordingState.INVALID,
        checksum: int = 0,
        reserved: int = 0,
    ) -> None:
        self.length = length
        self.state = state
        self.checksum = checksum
        self.reserved = reserved

    def encode(self) -> bytes:
        try:
            return _RECORDING_DESCRIPTOR_HEADER.pack(
                32,
                21,
                101,
                14,
                self.length,
                self.state,
                self.checksum,
                self.reserved,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_DESCRIPTOR_HEADER, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("RecordingDescriptorHeader", buffer, offset, block_length, 32)
        (
            length,
            state,
            checksum,
            reserved,
        ) = _RECORDING_DESCRIPTOR_HEADER_BLOCK.unpack_from(buffer, offset)
        state = enum_member(RecordingState, state, "RecordingDescriptorHeader.state")
        return cls(length, state, checksum, reserved)


_RECORDING_DESCRIPTOR = Struct("<HHHHqqqqqqqiiiiii")
_RECORDING_DESCRIPTOR_BLOCK = Struct("<qqqqqqqiiiiii")


class RecordingDescriptor(Message):
    """Template 22, `RecordingDescriptor`."""

    TEMPLATE_ID: ClassVar[int] = 22
    BLOCK_LENGTH: ClassVar[int] = 80
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "start_timestamp",
        "stop_timestamp",
        "start_position",
        "stop_position",
        "initial_term_id",
        "segment_file_length",
        "term_buffer_length",
        "mtu_length",
        "session_id",
        "stream_id",
        "stripped_channel",
        "original_channel",
        "source_identity",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        start_timestamp: int = 0,
        stop_timestamp: int = 0,
        start_position: int = 0,
        stop_position: int = 0,
        initial_term_id: int = 0,
        segment_file_length: int = 0,
        term_buffer_length: int = 0,
        mtu_length: int = 0,
        session_id: int = 0,
        stream_id: int = 0,
        stripped_channel: str = "",
        original_channel: str = "",
        source_identity: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.start_timestamp = start_timestamp
        self.stop_timestamp = stop_timestamp
        self.start_position = start_position
        self.stop_position = stop_position
        self.initial_term_id = initial_term_id
        self.segment_file_length = segment_file_length
        self.term_buffer_length = term_buffer_length
        self.mtu_length = mtu_length
        self.session_id = session_id
        self.stream_id = stream_id
        self.stripped_channel = stripped_channel
        self.original_channel = original_channel
        self.source_identity = source_identity

    def encode(self) -> bytes:
        try:
            block = _RECORDING_DESCRIPTOR.pack(
                80,
                22,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.start_timestamp,
                self.stop_timestamp,
                self.start_position,
                self.stop_position,
                self.initial_term_id,
                self.segment_file_length,
                self.term_buffer_length,
                self.mtu_length,
                self.session_id,
                self.stream_id,
            )
            return (
                block
                + text_field(self.stripped_channel)
                + text_field(self.original_channel)
                + text_field(self.source_identity)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_DESCRIPTOR, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 80,
        version: int = 14,
    ) -> Self:
        end = check_block("RecordingDescriptor", buffer, offset, block_length, 80)
        (
            control_session_id,
            correlation_id,
            recording_id,
            start_timestamp,
            stop_timestamp,
            start_position,
            stop_position,
            initial_term_id,
            segment_file_length,
            term_buffer_length,
            mtu_length,
            session_id,
            stream_id,
        ) = _RECORDING_DESCRIPTOR_BLOCK.unpack_from(buffer, offset)
        stripped_channel, end = read_text(buffer, end, "RecordingDescriptor.stripped_channel")
        original_channel, end = read_text(buffer, end, "RecordingDescriptor.original_channel")
        source_identity, _ = read_text(buffer, end, "RecordingDescriptor.source_identity")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            start_timestamp,
            stop_timestamp,
            start_position,
            stop_position,
            initial_term_id,
            segment_file_length,
            term_buffer_length,
            mtu_length,
            session_id,
            stream_id,
            stripped_channel,
            original_channel,
            source_identity,
        )


_RECORDING_SUBSCRIPTION_DESCRIPTOR = Struct("<HHHHqqqi")
_RECORDING_SUBSCRIPTION_DESCRIPTOR_BLOCK = Struct("<qqqi")


class RecordingSubscriptionDescriptor(Message):
    """Template 23, `RecordingSubscriptionDescriptor`."""

    TEMPLATE_ID: ClassVar[int] = 23
    BLOCK_LENGTH: ClassVar[int] = 28
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "subscription_id",
        "stream_id",
        "stripped_channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        subscription_id: int = 0,
        stream_id: int = 0,
        stripped_channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.subscription_id = subscription_id
        self.stream_id = stream_id
        self.stripped_channel = stripped_channel

    def encode(self) -> bytes:
        try:
            block = _RECORDING_SUBSCRIPTION_DESCRIPTOR.pack(
                28,
                23,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.subscription_id,
                self.stream_id,
            )
            return block + text_field(self.stripped_channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_SUBSCRIPTION_DESCRIPTOR, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 28,
        version: int = 14,
    ) -> Self:
        end = check_block("RecordingSubscriptionDescriptor", buffer, offset, block_length, 28)
        (
            control_session_id,
            correlation_id,
            subscription_id,
            stream_id,
        ) = _RECORDING_SUBSCRIPTION_DESCRIPTOR_BLOCK.unpack_from(buffer, offset)
        stripped_channel, _ = read_text(
            buffer,
            end,
            "RecordingSubscriptionDescriptor.stripped_channel",
        )
        return cls(control_session_id, correlation_id, subscription_id, stream_id, stripped_channel)


_RECORDING_SIGNAL_EVENT = Struct("<HHHHqqqqqi")
_RECORDING_SIGNAL_EVENT_BLOCK = Struct("<qqqqqi")


class RecordingSignalEvent(Message):
    """Template 24, `RecordingSignalEvent`."""

    TEMPLATE_ID: ClassVar[int] = 24
    BLOCK_LENGTH: ClassVar[int] = 44
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "subscription_id",
        "position",
        "signal",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        subscription_id: int = 0,
        position: int = 0,
        signal: RecordingSignal = RecordingSignal.START,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.subscription_id = subscription_id
        self.position = position
        self.signal = signal

    def encode(self) -> bytes:
        try:
            return _RECORDING_SIGNAL_EVENT.pack(
                44,
                24,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.subscription_id,
                self.position,
                self.signal,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_SIGNAL_EVENT, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 44,
        version: int = 14,
    ) -> Self:
        check_block("RecordingSignalEvent", buffer, offset, block_length, 44)
        (
            control_session_id,
            correlation_id,
            recording_id,
            subscription_id,
            position,
            signal,
        ) = _RECORDING_SIGNAL_EVENT_BLOCK.unpack_from(buffer, offset)
        signal = enum_member(RecordingSignal, signal, "RecordingSignalEvent.signal")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            subscription_id,
            position,
            signal,
        )


_REPLICATE_REQUEST = Struct("<HHHHqqqqi")
_REPLICATE_REQUEST_BLOCK = Struct("<qqqqi")


class ReplicateRequest(Message):
    """Template 50, `ReplicateRequest`."""

    TEMPLATE_ID: ClassVar[int] = 50
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "src_recording_id",
        "dst_recording_id",
        "src_control_stream_id",
        "src_control_channel",
        "live_destination",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        src_recording_id: int = 0,
        dst_recording_id: int = 0,
        src_control_stream_id: int = 0,
        src_control_channel: str = "",
        live_destination: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.src_recording_id = src_recording_id
        self.dst_recording_id = dst_recording_id
        self.src_control_stream_id = src_control_stream_id
        self.src_control_channel = src_control_channel
        self.live_destination = live_destination

    def encode(self) -> bytes:
        try:
            block = _REPLICATE_REQUEST.pack(
                36,
                50,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.src_recording_id,
                self.dst_recording_id,
                self.src_control_stream_id,
            )
            return block + text_field(self.src_control_channel) + text_field(self.live_destination)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLICATE_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 14,
    ) -> Self:
        end = check_block("ReplicateRequest", buffer, offset, block_length, 36)
        (
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
            src_control_stream_id,
        ) = _REPLICATE_REQUEST_BLOCK.unpack_from(buffer, offset)
        src_control_channel, end = read_text(buffer, end, "ReplicateRequest.src_control_channel")
        live_destination, _ = read_text(buffer, end, "ReplicateRequest.live_destination")
        return cls(
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
            src_control_stream_id,
            src_control_channel,
            live_destination,
        )


_STOP_REPLICATION_REQUEST = Struct("<HHHHqqq")
_STOP_REPLICATION_REQUEST_BLOCK = Struct("<qqq")


class StopReplicationRequest(Message):
    """Template 51, `StopReplicationRequest`."""

    TEMPLATE_ID: ClassVar[int] = 51
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "replication_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        replication_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.replication_id = replication_id

    def encode(self) -> bytes:
        try:
            return _STOP_REPLICATION_REQUEST.pack(
                24,
                51,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.replication_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_REPLICATION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopReplicationRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            replication_id,
        ) = _STOP_REPLICATION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, replication_id)


_START_POSITION_REQUEST = Struct("<HHHHqqq")
_START_POSITION_REQUEST_BLOCK = Struct("<qqq")


class StartPositionRequest(Message):
    """Template 52, `StartPositionRequest`."""

    TEMPLATE_ID: ClassVar[int] = 52
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _START_POSITION_REQUEST.pack(
                24,
                52,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _START_POSITION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StartPositionRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _START_POSITION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_DETACH_SEGMENTS_REQUEST = Struct("<HHHHqqqq")
_DETACH_SEGMENTS_REQUEST_BLOCK = Struct("<qqqq")


class DetachSegmentsRequest(Message):
    """Template 53, `DetachSegmentsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 53
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id", "new_start_position")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        new_start_position: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.new_start_position = new_start_position

    def encode(self) -> bytes:
        try:
            return _DETACH_SEGMENTS_REQUEST.pack(
                32,
                53,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.new_start_position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _DETACH_SEGMENTS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("DetachSegmentsRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            recording_id,
            new_start_position,
        ) = _DETACH_SEGMENTS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id, new_start_position)


_DELETE_DETACHED_SEGMENTS_REQUEST = Struct("<HHHHqqq")
_DELETE_DETACHED_SEGMENTS_REQUEST_BLOCK = Struct("<qqq")


class DeleteDetachedSegmentsRequest(Message):
    """Template 54, `DeleteDetachedSegmentsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 54
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _DELETE_DETACHED_SEGMENTS_REQUEST.pack(
                24,
                54,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _DELETE_DETACHED_SEGMENTS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("DeleteDetachedSegmentsRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _DELETE_DETACHED_SEGMENTS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_PURGE_SEGMENTS_REQUEST = Struct("<HHHHqqqq")
_PURGE_SEGMENTS_REQUEST_BLOCK = Struct("<qqqq")


class PurgeSegmentsRequest(Message):
    """Template 55, `PurgeSegmentsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 55
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id", "new_start_position")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        new_start_position: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.new_start_position = new_start_position

    def encode(self) -> bytes:
        try:
            return _PURGE_SEGMENTS_REQUEST.pack(
                32,
                55,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.new_start_position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _PURGE_SEGMENTS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("PurgeSegmentsRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            recording_id,
            new_start_position,
        ) = _PURGE_SEGMENTS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id, new_start_position)


_ATTACH_SEGMENTS_REQUEST = Struct("<HHHHqqq")
_ATTACH_SEGMENTS_REQUEST_BLOCK = Struct("<qqq")


class AttachSegmentsRequest(Message):
    """Template 56, `AttachSegmentsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 56
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _ATTACH_SEGMENTS_REQUEST.pack(
                24,
                56,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _ATTACH_SEGMENTS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("AttachSegmentsRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _ATTACH_SEGMENTS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_MIGRATE_SEGMENTS_REQUEST = Struct("<HHHHqqqq")
_MIGRATE_SEGMENTS_REQUEST_BLOCK = Struct("<qqqq")


class MigrateSegmentsRequest(Message):
    """Template 57, `MigrateSegmentsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 57
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "src_recording_id",
        "dst_recording_id",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        src_recording_id: int = 0,
        dst_recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.src_recording_id = src_recording_id
        self.dst_recording_id = dst_recording_id

    def encode(self) -> bytes:
        try:
            return _MIGRATE_SEGMENTS_REQUEST.pack(
                32,
                57,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.src_recording_id,
                self.dst_recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _MIGRATE_SEGMENTS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 14,
    ) -> Self:
        check_block("MigrateSegmentsRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
        ) = _MIGRATE_SEGMENTS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, src_recording_id, dst_recording_id)


_AUTH_CONNECT_REQUEST = Struct("<HHHHqii")
_AUTH_CONNECT_REQUEST_BLOCK = Struct("<qii")


class AuthConnectRequest(Message):
    """Template 58, `AuthConnectRequest`."""

    TEMPLATE_ID: ClassVar[int] = 58
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "correlation_id",
        "response_stream_id",
        "version",
        "response_channel",
        "encoded_credentials",
        "client_info",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        correlation_id: int = 0,
        response_stream_id: int = 0,
        version: int | None = None,
        response_channel: str = "",
        encoded_credentials: bytes = b"",
        client_info: str | None = "",
    ) -> None:
        self.correlation_id = correlation_id
        self.response_stream_id = response_stream_id
        self.version = version
        self.response_channel = response_channel
        self.encoded_credentials = encoded_credentials
        self.client_info = client_info

    def encode(self) -> bytes:
        try:
            block = _AUTH_CONNECT_REQUEST.pack(
                16,
                58,
                101,
                14,
                self.correlation_id,
                self.response_stream_id,
                0 if self.version is None else self.version,
            )
            return (
                block
                + text_field(self.response_channel)
                + data_field(self.encoded_credentials)
                + text_field(self.client_info)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _AUTH_CONNECT_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 14,
    ) -> Self:
        end = check_block("AuthConnectRequest", buffer, offset, block_length, 16)
        (
            correlation_id,
            response_stream_id,
            version_,
        ) = _AUTH_CONNECT_REQUEST_BLOCK.unpack_from(buffer, offset)
        if version_ == 0:
            version_ = None
        response_channel, end = read_text(buffer, end, "AuthConnectRequest.response_channel")
        encoded_credentials, end = read_data(buffer, end, "AuthConnectRequest.encoded_credentials")
        client_info: str | None = None
        if version >= 12:
            client_info, _ = read_text(buffer, end, "AuthConnectRequest.client_info")
        return cls(
            correlation_id,
            response_stream_id,
            version_,
            response_channel,
            encoded_credentials,
            client_info,
        )


_CHALLENGE = Struct("<HHHHqqi")
_CHALLENGE_BLOCK = Struct("<qqi")


class Challenge(Message):
    """Template 59, `Challenge`."""

    TEMPLATE_ID: ClassVar[int] = 59
    BLOCK_LENGTH: ClassVar[int] = 20
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "version", "encoded_challenge")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        version: int | None = None,
        encoded_challenge: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.version = version
        self.encoded_challenge = encoded_challenge

    def encode(self) -> bytes:
        try:
            block = _CHALLENGE.pack(
                20,
                59,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                0 if self.version is None else self.version,
            )
            return block + data_field(self.encoded_challenge)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CHALLENGE, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 20,
        version: int = 14,
    ) -> Self:
        end = check_block("Challenge", buffer, offset, block_length, 20)
        (
            control_session_id,
            correlation_id,
            version_,
        ) = _CHALLENGE_BLOCK.unpack_from(buffer, offset)
        if version_ == 0:
            version_ = None
        encoded_challenge, _ = read_data(buffer, end, "Challenge.encoded_challenge")
        return cls(control_session_id, correlation_id, version_, encoded_challenge)


_CHALLENGE_RESPONSE = Struct("<HHHHqq")
_CHALLENGE_RESPONSE_BLOCK = Struct("<qq")


class ChallengeResponse(Message):
    """Template 60, `ChallengeResponse`."""

    TEMPLATE_ID: ClassVar[int] = 60
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "encoded_credentials")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        encoded_credentials: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.encoded_credentials = encoded_credentials

    def encode(self) -> bytes:
        try:
            block = _CHALLENGE_RESPONSE.pack(
                16,
                60,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
            )
            return block + data_field(self.encoded_credentials)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CHALLENGE_RESPONSE, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 14,
    ) -> Self:
        end = check_block("ChallengeResponse", buffer, offset, block_length, 16)
        (control_session_id, correlation_id) = _CHALLENGE_RESPONSE_BLOCK.unpack_from(buffer, offset)
        encoded_credentials, _ = read_data(buffer, end, "ChallengeResponse.encoded_credentials")
        return cls(control_session_id, correlation_id, encoded_credentials)


_KEEP_ALIVE_REQUEST = Struct("<HHHHqq")
_KEEP_ALIVE_REQUEST_BLOCK = Struct("<qq")


class KeepAliveRequest(Message):
    """Template 61, `KeepAliveRequest`."""

    TEMPLATE_ID: ClassVar[int] = 61
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id

    def encode(self) -> bytes:
        try:
            return _KEEP_ALIVE_REQUEST.pack(
                16,
                61,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _KEEP_ALIVE_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 14,
    ) -> Self:
        check_block("KeepAliveRequest", buffer, offset, block_length, 16)
        (control_session_id, correlation_id) = _KEEP_ALIVE_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id)


_TAGGED_REPLICATE_REQUEST = Struct("<HHHHqqqqqqi")
_TAGGED_REPLICATE_REQUEST_BLOCK = Struct("<qqqqqqi")


class TaggedReplicateRequest(Message):
    """Template 62, `TaggedReplicateRequest`."""

    TEMPLATE_ID: ClassVar[int] = 62
    BLOCK_LENGTH: ClassVar[int] = 52
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "src_recording_id",
        "dst_recording_id",
        "channel_tag_id",
        "subscription_tag_id",
        "src_control_stream_id",
        "src_control_channel",
        "live_destination",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        src_recording_id: int = 0,
        dst_recording_id: int = 0,
        channel_tag_id: int = 0,
        subscription_tag_id: int = 0,
        src_control_stream_id: int = 0,
        src_control_channel: str = "",
        live_destination: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.src_recording_id = src_recording_id
        self.dst_recording_id = dst_recording_id
        self.channel_tag_id = channel_tag_id
        self.subscription_tag_id = subscription_tag_id
        self.src_control_stream_id = src_control_stream_id
        self.src_control_channel = src_control_channel
        self.live_destination = live_destination

    def encode(self) -> bytes:
        try:
            block = _TAGGED_REPLICATE_REQUEST.pack(
                52,
                62,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.src_recording_id,
                self.dst_recording_id,
                self.channel_tag_id,
                self.subscription_tag_id,
                self.src_control_stream_id,
            )
            return block + text_field(self.src_control_channel) + text_field(self.live_destination)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _TAGGED_REPLICATE_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 52,
        version: int = 14,
    ) -> Self:
        end = check_block("TaggedReplicateRequest", buffer, offset, block_length, 52)
        (
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
            channel_tag_id,
            subscription_tag_id,
            src_control_stream_id,
        ) = _TAGGED_REPLICATE_REQUEST_BLOCK.unpack_from(buffer, offset)
        src_control_channel, end = read_text(
            buffer,
            end,
            "TaggedReplicateRequest.src_control_channel",
        )
        live_destination, _ = read_text(buffer, end, "TaggedReplicateRequest.live_destination")
        return cls(
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
            channel_tag_id,
            subscription_tag_id,
            src_control_stream_id,
            src_control_channel,
            live_destination,
        )


_START_RECORDING_REQUEST2 = Struct("<HHHHqqiii")
_START_RECORDING_REQUEST2_BLOCK = Struct("<qqiii")


class StartRecordingRequest2(Message):
    """Template 63, `StartRecordingRequest2`."""

    TEMPLATE_ID: ClassVar[int] = 63
    BLOCK_LENGTH: ClassVar[int] = 28
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "stream_id",
        "source_location",
        "auto_stop",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        stream_id: int = 0,
        source_location: SourceLocation = SourceLocation.LOCAL,
        auto_stop: BooleanType = BooleanType.FALSE,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.stream_id = stream_id
        self.source_location = source_location
        self.auto_stop = auto_stop
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _START_RECORDING_REQUEST2.pack(
                28,
                63,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.stream_id,
                self.source_location,
                self.auto_stop,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _START_RECORDING_REQUEST2, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 28,
        version: int = 14,
    ) -> Self:
        end = check_block("StartRecordingRequest2", buffer, offset, block_length, 28)
        (
            control_session_id,
            correlation_id,
            stream_id,
            source_location,
            auto_stop,
        ) = _START_RECORDING_REQUEST2_BLOCK.unpack_from(buffer, offset)
        source_location = enum_member(
            SourceLocation,
            source_location,
            "StartRecordingRequest2.source_location",
        )
        auto_stop = enum_member(BooleanType, auto_stop, "StartRecordingRequest2.auto_stop")
        channel, _ = read_text(buffer, end, "StartRecordingRequest2.channel")
        return cls(
            control_session_id,
            correlation_id,
            stream_id,
            source_location,
            auto_stop,
            channel,
        )


_EXTEND_RECORDING_REQUEST2 = Struct("<HHHHqqqiii")
_EXTEND_RECORDING_REQUEST2_BLOCK = Struct("<qqqiii")


class ExtendRecordingRequest2(Message):
    """Template 64, `ExtendRecordingRequest2`."""

    TEMPLATE_ID: ClassVar[int] = 64
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "recording_id",
        "stream_id",
        "source_location",
        "auto_stop",
        "channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        stream_id: int = 0,
        source_location: SourceLocation = SourceLocation.LOCAL,
        auto_stop: BooleanType = BooleanType.FALSE,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.stream_id = stream_id
        self.source_location = source_location
        self.auto_stop = auto_stop
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _EXTEND_RECORDING_REQUEST2.pack(
                36,
                64,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
                self.stream_id,
                self.source_location,
                self.auto_stop,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _EXTEND_RECORDING_REQUEST2, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 14,
    ) -> Self:
        end = check_block("ExtendRecordingRequest2", buffer, offset, block_length, 36)
        (
            control_session_id,
            correlation_id,
            recording_id,
            stream_id,
            source_location,
            auto_stop,
        ) = _EXTEND_RECORDING_REQUEST2_BLOCK.unpack_from(buffer, offset)
        source_location = enum_member(
            SourceLocation,
            source_location,
            "ExtendRecordingRequest2.source_location",
        )
        auto_stop = enum_member(BooleanType, auto_stop, "ExtendRecordingRequest2.auto_stop")
        channel, _ = read_text(buffer, end, "ExtendRecordingRequest2.channel")
        return cls(
            control_session_id,
            correlation_id,
            recording_id,
            stream_id,
            source_location,
            auto_stop,
            channel,
        )


_STOP_RECORDING_BY_IDENTITY_REQUEST = Struct("<HHHHqqq")
_STOP_RECORDING_BY_IDENTITY_REQUEST_BLOCK = Struct("<qqq")


class StopRecordingByIdentityRequest(Message):
    """Template 65, `StopRecordingByIdentityRequest`."""

    TEMPLATE_ID: ClassVar[int] = 65
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _STOP_RECORDING_BY_IDENTITY_REQUEST.pack(
                24,
                65,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _STOP_RECORDING_BY_IDENTITY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("StopRecordingByIdentityRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _STOP_RECORDING_BY_IDENTITY_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_REPLICATE_REQUEST2 = Struct("<HHHHqqqqqqqiii")
_REPLICATE_REQUEST2_BLOCK_V8 = Struct("<qqqqqqqiii")
_REPLICATE_REQUEST2_BLOCK_V7 = Struct("<qqqqqqqii")
_REPLICATE_REQUEST2_BLOCK_V0 = Struct("<qqqqqqqi")


class ReplicateRequest2(Message):
    """Template 66, `ReplicateRequest2`, since version 6."""

    TEMPLATE_ID: ClassVar[int] = 66
    BLOCK_LENGTH: ClassVar[int] = 68
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "src_recording_id",
        "dst_recording_id",
        "stop_position",
        "channel_tag_id",
        "subscription_tag_id",
        "src_control_stream_id",
        "file_io_max_length",
        "replication_session_id",
        "src_control_channel",
        "live_destination",
        "replication_channel",
        "encoded_credentials",
        "src_response_channel",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        src_recording_id: int = 0,
        dst_recording_id: int = 0,
        stop_position: int = 0,
        channel_tag_id: int = 0,
        subscription_tag_id: int = 0,
        src_control_stream_id: int = 0,
        file_io_max_length: int | None = None,  # since version 7
        replication_session_id: int | None = None,  # since version 8
        src_control_channel: str = "",
        live_destination: str = "",
        replication_channel: str = "",
        encoded_credentials: bytes | None = b"",
        src_response_channel: str | None = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.src_recording_id = src_recording_id
        self.dst_recording_id = dst_recording_id
        self.stop_position = stop_position
        self.channel_tag_id = channel_tag_id
        self.subscription_tag_id = subscription_tag_id
        self.src_control_stream_id = src_control_stream_id
        self.file_io_max_length = file_io_max_length
        self.replication_session_id = replication_session_id
        self.src_control_channel = src_control_channel
        self.live_destination = live_destination
        self.replication_channel = replication_channel
        self.encoded_credentials = encoded_credentials
        self.src_response_channel = src_response_channel

    def encode(self) -> bytes:
        try:
            block = _REPLICATE_REQUEST2.pack(
                68,
                66,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.src_recording_id,
                self.dst_recording_id,
                self.stop_position,
                self.channel_tag_id,
                self.subscription_tag_id,
                self.src_control_stream_id,
                -2147483648 if self.file_io_max_length is None else self.file_io_max_length,
                -2147483648 if self.replication_session_id is None else self.replication_session_id,
            )
            return (
                block
                + text_field(self.src_control_channel)
                + text_field(self.live_destination)
                + text_field(self.replication_channel)
                + data_field(self.encoded_credentials)
                + text_field(self.src_response_channel)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLICATE_REQUEST2, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 68,
        version: int = 14,
    ) -> Self:
        file_io_max_length: int | None = None
        replication_session_id: int | None = None
        if version >= 8:
            end = check_block("ReplicateRequest2", buffer, offset, block_length, 68)
            (
                control_session_id,
                correlation_id,
                src_recording_id,
                dst_recording_id,
                stop_position,
                channel_tag_id,
                subscription_tag_id,
                src_control_stream_id,
                file_io_max_length,
                replication_session_id,
            ) = _REPLICATE_REQUEST2_BLOCK_V8.unpack_from(buffer, offset)
        elif version >= 7:
            end = check_block("ReplicateRequest2", buffer, offset, block_length, 64)
            (
                control_session_id,
                correlation_id,
                src_recording_id,
                dst_recording_id,
                stop_position,
                channel_tag_id,
                subscription_tag_id,
                src_control_stream_id,
                file_io_max_length,
            ) = _REPLICATE_REQUEST2_BLOCK_V7.unpack_from(buffer, offset)
        else:
            end = check_block("ReplicateRequest2", buffer, offset, block_length, 60)
            (
                control_session_id,
                correlation_id,
                src_recording_id,
                dst_recording_id,
                stop_position,
                channel_tag_id,
                subscription_tag_id,
                src_control_stream_id,
            ) = _REPLICATE_REQUEST2_BLOCK_V0.unpack_from(buffer, offset)
        if file_io_max_length == -2147483648:
            file_io_max_length = None
        if replication_session_id == -2147483648:
            replication_session_id = None
        src_control_channel, end = read_text(buffer, end, "ReplicateRequest2.src_control_channel")
        live_destination, end = read_text(buffer, end, "ReplicateRequest2.live_destination")
        replication_channel, end = read_text(buffer, end, "ReplicateRequest2.replication_channel")
        encoded_credentials: bytes | None = None
        if version >= 8:
            encoded_credentials, end = read_data(
                buffer,
                end,
                "ReplicateRequest2.encoded_credentials",
            )
        src_response_channel: str | None = None
        if version >= 10:
            src_response_channel, _ = read_text(
                buffer,
                end,
                "ReplicateRequest2.src_response_channel",
            )
        return cls(
            control_session_id,
            correlation_id,
            src_recording_id,
            dst_recording_id,
            stop_position,
            channel_tag_id,
            subscription_tag_id,
            src_control_stream_id,
            file_io_max_length,
            replication_session_id,
            src_control_channel,
            live_destination,
            replication_channel,
            encoded_credentials,
            src_response_channel,
        )


_MAX_RECORDED_POSITION_REQUEST = Struct("<HHHHqqq")
_MAX_RECORDED_POSITION_REQUEST_BLOCK = Struct("<qqq")


class MaxRecordedPositionRequest(Message):
    """Template 67, `MaxRecordedPositionRequest`, since version 9."""

    TEMPLATE_ID: ClassVar[int] = 67
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _MAX_RECORDED_POSITION_REQUEST.pack(
                24,
                67,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _MAX_RECORDED_POSITION_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("MaxRecordedPositionRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _MAX_RECORDED_POSITION_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_ARCHIVE_ID_REQUEST = Struct("<HHHHqq")
_ARCHIVE_ID_REQUEST_BLOCK = Struct("<qq")


class ArchiveIdRequest(Message):
    """Template 68, `ArchiveIdRequest`, since version 9."""

    TEMPLATE_ID: ClassVar[int] = 68
    BLOCK_LENGTH: ClassVar[int] = 16
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id

    def encode(self) -> bytes:
        try:
            return _ARCHIVE_ID_REQUEST.pack(
                16,
                68,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _ARCHIVE_ID_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 16,
        version: int = 14,
    ) -> Self:
        check_block("ArchiveIdRequest", buffer, offset, block_length, 16)
        (control_session_id, correlation_id) = _ARCHIVE_ID_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id)


_RECORDING_STARTED = Struct("<HHHHqqii")
_RECORDING_STARTED_BLOCK = Struct("<qqii")


class RecordingStarted(Message):
    """Template 101, `RecordingStarted`."""

    TEMPLATE_ID: ClassVar[int] = 101
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = (
        "recording_id",
        "start_position",
        "session_id",
        "stream_id",
        "channel",
        "source_identity",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        recording_id: int = 0,
        start_position: int = 0,
        session_id: int = 0,
        stream_id: int = 0,
        channel: str = "",
        source_identity: str = "",
    ) -> None:
        self.recording_id = recording_id
        self.start_position = start_position
        self.session_id = session_id
        self.stream_id = stream_id
        self.channel = channel
        self.source_identity = source_identity

    def encode(self) -> bytes:
        try:
            block = _RECORDING_STARTED.pack(
                24,
                101,
                101,
                14,
                self.recording_id,
                self.start_position,
                self.session_id,
                self.stream_id,
            )
            return block + text_field(self.channel) + text_field(self.source_identity)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_STARTED, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        end = check_block("RecordingStarted", buffer, offset, block_length, 24)
        (
            recording_id,
            start_position,
            session_id,
            stream_id,
        ) = _RECORDING_STARTED_BLOCK.unpack_from(buffer, offset)
        channel, end = read_text(buffer, end, "RecordingStarted.channel")
        source_identity, _ = read_text(buffer, end, "RecordingStarted.source_identity")
        return cls(recording_id, start_position, session_id, stream_id, channel, source_identity)


_RECORDING_PROGRESS = Struct("<HHHHqqq")
_RECORDING_PROGRESS_BLOCK = Struct("<qqq")


class RecordingProgress(Message):
    """Template 102, `RecordingProgress`."""

    TEMPLATE_ID: ClassVar[int] = 102
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("recording_id", "start_position", "position")
    __slots__ = __match_args__

    def __init__(
        self,
        recording_id: int = 0,
        start_position: int = 0,
        position: int = 0,
    ) -> None:
        self.recording_id = recording_id
        self.start_position = start_position
        self.position = position

    def encode(self) -> bytes:
        try:
            return _RECORDING_PROGRESS.pack(
                24,
                102,
                101,
                14,
                self.recording_id,
                self.start_position,
                self.position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_PROGRESS, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("RecordingProgress", buffer, offset, block_length, 24)
        (
            recording_id,
            start_position,
            position,
        ) = _RECORDING_PROGRESS_BLOCK.unpack_from(buffer, offset)
        return cls(recording_id, start_position, position)


_RECORDING_STOPPED = Struct("<HHHHqqq")
_RECORDING_STOPPED_BLOCK = Struct("<qqq")


class RecordingStopped(Message):
    """Template 103, `RecordingStopped`."""

    TEMPLATE_ID: ClassVar[int] = 103
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("recording_id", "start_position", "stop_position")
    __slots__ = __match_args__

    def __init__(
        self,
        recording_id: int = 0,
        start_position: int = 0,
        stop_position: int = 0,
    ) -> None:
        self.recording_id = recording_id
        self.start_position = start_position
        self.stop_position = stop_position

    def encode(self) -> bytes:
        try:
            return _RECORDING_STOPPED.pack(
                24,
                103,
                101,
                14,
                self.recording_id,
                self.start_position,
                self.stop_position,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECORDING_STOPPED, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("RecordingStopped", buffer, offset, block_length, 24)
        (
            recording_id,
            start_position,
            stop_position,
        ) = _RECORDING_STOPPED_BLOCK.unpack_from(buffer, offset)
        return cls(recording_id, start_position, stop_position)


_PURGE_RECORDING_REQUEST = Struct("<HHHHqqq")
_PURGE_RECORDING_REQUEST_BLOCK = Struct("<qqq")


class PurgeRecordingRequest(Message):
    """Template 104, `PurgeRecordingRequest`, since version 5."""

    TEMPLATE_ID: ClassVar[int] = 104
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _PURGE_RECORDING_REQUEST.pack(
                24,
                104,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _PURGE_RECORDING_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("PurgeRecordingRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _PURGE_RECORDING_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_REPLAY_TOKEN_REQUEST = Struct("<HHHHqqq")
_REPLAY_TOKEN_REQUEST_BLOCK = Struct("<qqq")


class ReplayTokenRequest(Message):
    """Template 105, `ReplayTokenRequest`, since version 10."""

    TEMPLATE_ID: ClassVar[int] = 105
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id

    def encode(self) -> bytes:
        try:
            return _REPLAY_TOKEN_REQUEST.pack(
                24,
                105,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLAY_TOKEN_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        check_block("ReplayTokenRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _REPLAY_TOKEN_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, recording_id)


_PING = Struct("<HHHHq")
_PING_BLOCK = Struct("<q")


class Ping(Message):
    """Template 106, `Ping`, since version 11."""

    TEMPLATE_ID: ClassVar[int] = 106
    BLOCK_LENGTH: ClassVar[int] = 8
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id",)
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id

    def encode(self) -> bytes:
        try:
            return _PING.pack(8, 106, 101, 14, self.control_session_id)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _PING, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 8,
        version: int = 14,
    ) -> Self:
        check_block("Ping", buffer, offset, block_length, 8)
        (control_session_id,) = _PING_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id)


_UPDATE_CHANNEL_REQUEST = Struct("<HHHHqqq")
_UPDATE_CHANNEL_REQUEST_BLOCK = Struct("<qqq")


class UpdateChannelRequest(Message):
    """Template 107, `UpdateChannelRequest`, since version 13."""

    TEMPLATE_ID: ClassVar[int] = 107
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 101
    SCHEMA_VERSION: ClassVar[int] = 14

    __match_args__ = ("control_session_id", "correlation_id", "recording_id", "channel")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        recording_id: int = 0,
        channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.recording_id = recording_id
        self.channel = channel

    def encode(self) -> bytes:
        try:
            block = _UPDATE_CHANNEL_REQUEST.pack(
                24,
                107,
                101,
                14,
                self.control_session_id,
                self.correlation_id,
                self.recording_id,
            )
            return block + text_field(self.channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _UPDATE_CHANNEL_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 14,
    ) -> Self:
        end = check_block("UpdateChannelRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            recording_id,
        ) = _UPDATE_CHANNEL_REQUEST_BLOCK.unpack_from(buffer, offset)
        channel, _ = read_text(buffer, end, "UpdateChannelRequest.channel")
        return cls(control_session_id, correlation_id, recording_id, channel)


MESSAGES: dict[int, type[Message]] = {
    1: ControlResponse,
    3: CloseSessionRequest,
    4: StartRecordingRequest,
    5: StopRecordingRequest,
    6: ReplayRequest,
    7: StopReplayRequest,
    8: ListRecordingsRequest,
    9: ListRecordingsForUriRequest,
    10: ListRecordingRequest,
    11: ExtendRecordingRequest,
    12: RecordingPositionRequest,
    13: TruncateRecordingRequest,
    14: StopRecordingSubscriptionRequest,
    15: StopPositionRequest,
    16: FindLastMatchingRecordingRequest,
    17: ListRecordingSubscriptionsRequest,
    18: BoundedReplayRequest,
    19: StopAllReplaysRequest,
    20: CatalogHeader,
    21: RecordingDescriptorHeader,
    22: RecordingDescriptor,
    23: RecordingSubscriptionDescriptor,
    24: RecordingSignalEvent,
    50: ReplicateRequest,
    51: StopReplicationRequest,
    52: StartPositionRequest,
    53: DetachSegmentsRequest,
    54: DeleteDetachedSegmentsRequest,
    55: PurgeSegmentsRequest,
    56: AttachSegmentsRequest,
    57: MigrateSegmentsRequest,
    58: AuthConnectRequest,
    59: Challenge,
    60: ChallengeResponse,
    61: KeepAliveRequest,
    62: TaggedReplicateRequest,
    63: StartRecordingRequest2,
    64: ExtendRecordingRequest2,
    65: StopRecordingByIdentityRequest,
    66: ReplicateRequest2,
    67: MaxRecordedPositionRequest,
    68: ArchiveIdRequest,
    101: RecordingStarted,
    102: RecordingProgress,
    103: RecordingStopped,
    104: PurgeRecordingRequest,
    105: ReplayTokenRequest,
    106: Ping,
    107: UpdateChannelRequest,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "io.aeron.archive.codecs", MESSAGES)
