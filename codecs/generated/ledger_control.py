"""Messages of the SBE schema aerotape.ledger.control, id 201, version 2.

Generated from ledger-control.xml with sbe-tool by codecs/generate.py; do not edit.
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

SCHEMA_ID = 201
SCHEMA_VERSION = 2


class LedgerType(IntEnum):
    """Enum `LedgerType` of the schema, int32 on the wire."""

    PD_JOURNAL = 0
    VD_JOURNAL = 1


class DigestType(IntEnum):
    """Enum `DigestType` of the schema, int32 on the wire."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class WriterLocation(IntEnum):
    """Enum `WriterLocation` of the schema, int32 on the wire."""

    LOCAL = 0
    REMOTE = 1


class Reach(IntEnum):
    """Enum `Reach` of the schema, int32 on the wire."""

    ACKNOWLEDGED = 0
    CONFIRMED = 1


class BooleanType(IntEnum):
    """Enum `BooleanType` of the schema, int32 on the wire."""

    FALSE = 0
    TRUE = 1


class LedgerState(IntEnum):
    """Enum `LedgerState` of the schema, int32 on the wire."""

    OPEN = 0
    CLOSED = 1


_CREATE_LEDGER_REQUEST = Struct("<HHHHqqqqiiii")
_CREATE_LEDGER_REQUEST_BLOCK = Struct("<qqqqiiii")


class CreateLedgerRequest(Message):
    """Template 1, `CreateLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 48
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "ledger_type",
        "digest_type",
        "write_quorum",
        "ack_quorum",
        "password_token",
        "mirrors",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        ledger_type: LedgerType = LedgerType.PD_JOURNAL,
        digest_type: DigestType = DigestType.CRC32,
        write_quorum: int = 0,
        ack_quorum: int = 0,
        password_token: bytes = b"",
        mirrors: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.ledger_type = ledger_type
        self.digest_type = digest_type
        self.write_quorum = write_quorum
        self.ack_quorum = ack_quorum
        self.password_token = password_token
        self.mirrors = mirrors

    def encode(self) -> bytes:
        try:
            block = _CREATE_LEDGER_REQUEST.pack(
                48,
                1,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.ledger_type,
                self.digest_type,
                self.write_quorum,
                self.ack_quorum,
            )
            return block + data_field(self.password_token) + text_field(self.mirrors)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CREATE_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 48,
        version: int = 2,
    ) -> Self:
        end = check_block("CreateLedgerRequest", buffer, offset, block_length, 48)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            ledger_type,
            digest_type,
            write_quorum,
            ack_quorum,
        ) = _CREATE_LEDGER_REQUEST_BLOCK.unpack_from(buffer, offset)
        ledger_type = enum_member(LedgerType, ledger_type, "CreateLedgerRequest.ledger_type")
        digest_type = enum_member(DigestType, digest_type, "CreateLedgerRequest.digest_type")
        password_token, end = read_data(buffer, end, "CreateLedgerRequest.password_token")
        mirrors, _ = read_text(buffer, end, "CreateLedgerRequest.mirrors")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            ledger_type,
            digest_type,
            write_quorum,
            ack_quorum,
            password_token,
            mirrors,
        )


_LEDGER_INFO_REQUEST = Struct("<HHHHqqqq")
_LEDGER_INFO_REQUEST_BLOCK = Struct("<qqqq")


class LedgerInfoRequest(Message):
    """Template 2, `LedgerInfoRequest`."""

    TEMPLATE_ID: ClassVar[int] = 2
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "password_token",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        password_token: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.password_token = password_token

    def encode(self) -> bytes:
        try:
            block = _LEDGER_INFO_REQUEST.pack(
                32,
                2,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
            )
            return block + data_field(self.password_token)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LEDGER_INFO_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        end = check_block("LedgerInfoRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
        ) = _LEDGER_INFO_REQUEST_BLOCK.unpack_from(buffer, offset)
        password_token, _ = read_data(buffer, end, "LedgerInfoRequest.password_token")
        return cls(control_session_id, correlation_id, scope_id, ledger_id, password_token)


_LIST_LEDGERS_REQUEST = Struct("<HHHHqqqqi")
_LIST_LEDGERS_REQUEST_BLOCK = Struct("<qqqqi")


class ListLedgersRequest(Message):
    """Template 3, `ListLedgersRequest`."""

    TEMPLATE_ID: ClassVar[int] = 3
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id", "from_ledger_id", "count")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        from_ledger_id: int = 0,
        count: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.from_ledger_id = from_ledger_id
        self.count = count

    def encode(self) -> bytes:
        try:
            return _LIST_LEDGERS_REQUEST.pack(
                36,
                3,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.from_ledger_id,
                self.count,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_LEDGERS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 2,
    ) -> Self:
        check_block("ListLedgersRequest", buffer, offset, block_length, 36)
        (
            control_session_id,
            correlation_id,
            scope_id,
            from_ledger_id,
            count,
        ) = _LIST_LEDGERS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, from_ledger_id, count)


_ATTACH_WRITER_REQUEST = Struct("<HHHHqqqqiii")
_ATTACH_WRITER_REQUEST_BLOCK = Struct("<qqqqiii")


class AttachWriterRequest(Message):
    """Template 4, `AttachWriterRequest`."""

    TEMPLATE_ID: ClassVar[int] = 4
    BLOCK_LENGTH: ClassVar[int] = 44
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "stream_id",
        "session_id",
        "location",
        "channel",
        "password_token",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        stream_id: int = 0,
        session_id: int = 0,
        location: WriterLocation = WriterLocation.LOCAL,
        channel: str = "",
        password_token: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.stream_id = stream_id
        self.session_id = session_id
        self.location = location
        self.channel = channel
        self.password_token = password_token

    def encode(self) -> bytes:
        try:
            block = _ATTACH_WRITER_REQUEST.pack(
                44,
                4,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.stream_id,
                self.session_id,
                self.location,
            )
            return block + text_field(self.channel) + data_field(self.password_token)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _ATTACH_WRITER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 44,
        version: int = 2,
    ) -> Self:
        end = check_block("AttachWriterRequest", buffer, offset, block_length, 44)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            stream_id,
            session_id,
            location,
        ) = _ATTACH_WRITER_REQUEST_BLOCK.unpack_from(buffer, offset)
        location = enum_member(WriterLocation, location, "AttachWriterRequest.location")
        channel, end = read_text(buffer, end, "AttachWriterRequest.channel")
        password_token, _ = read_data(buffer, end, "AttachWriterRequest.password_token")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            stream_id,
            session_id,
            location,
            channel,
            password_token,
        )


_SYNC_LEDGER_REQUEST = Struct("<HHHHqqqq")
_SYNC_LEDGER_REQUEST_BLOCK = Struct("<qqqq")


class SyncLedgerRequest(Message):
    """Template 5, `SyncLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 5
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id", "ledger_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id

    def encode(self) -> bytes:
        try:
            return _SYNC_LEDGER_REQUEST.pack(
                32,
                5,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _SYNC_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        check_block("SyncLedgerRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
        ) = _SYNC_LEDGER_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, ledger_id)


_AWAIT_LEDGER_REQUEST = Struct("<HHHHqqqqqiqq")
_AWAIT_LEDGER_REQUEST_BLOCK_V1 = Struct("<qqqqqiqq")
_AWAIT_LEDGER_REQUEST_BLOCK_V0 = Struct("<qqqqqiq")


class AwaitLedgerRequest(Message):
    """Template 6, `AwaitLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 6
    BLOCK_LENGTH: ClassVar[int] = 60
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "position",
        "reach",
        "timeout_ns",
        "attach_id",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        position: int = 0,
        reach: Reach = Reach.ACKNOWLEDGED,
        timeout_ns: int = 0,
        attach_id: int | None = None,  # since version 1
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.position = position
        self.reach = reach
        self.timeout_ns = timeout_ns
        self.attach_id = attach_id

    def encode(self) -> bytes:
        try:
            return _AWAIT_LEDGER_REQUEST.pack(
                60,
                6,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.position,
                self.reach,
                self.timeout_ns,
                -9223372036854775808 if self.attach_id is None else self.attach_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _AWAIT_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 60,
        version: int = 2,
    ) -> Self:
        attach_id: int | None = None
        if version >= 1:
            check_block("AwaitLedgerRequest", buffer, offset, block_length, 60)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                position,
                reach,
                timeout_ns,
                attach_id,
            ) = _AWAIT_LEDGER_REQUEST_BLOCK_V1.unpack_from(buffer, offset)
        else:
            check_block("AwaitLedgerRequest", buffer, offset, block_length, 52)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                position,
                reach,
                timeout_ns,
            ) = _AWAIT_LEDGER_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        reach = enum_member(Reach, reach, "AwaitLedgerRequest.reach")
        if attach_id == -9223372036854775808:
            attach_id = None
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            position,
            reach,
            timeout_ns,
            attach_id,
        )


_CLOSE_LEDGER_REQUEST = Struct("<HHHHqqqq")
_CLOSE_LEDGER_REQUEST_BLOCK = Struct("<qqqq")


class CloseLedgerRequest(Message):
    """Template 7, `CloseLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 7
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id", "ledger_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id

    def encode(self) -> bytes:
        try:
            return _CLOSE_LEDGER_REQUEST.pack(
                32,
                7,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _CLOSE_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        check_block("CloseLedgerRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
        ) = _CLOSE_LEDGER_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, ledger_id)


_RECOVER_LEDGER_REQUEST = Struct("<HHHHqqqq")
_RECOVER_LEDGER_REQUEST_BLOCK = Struct("<qqqq")


class RecoverLedgerRequest(Message):
    """Template 8, `RecoverLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 8
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "password_token",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        password_token: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.password_token = password_token

    def encode(self) -> bytes:
        try:
            block = _RECOVER_LEDGER_REQUEST.pack(
                32,
                8,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
            )
            return block + data_field(self.password_token)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _RECOVER_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        end = check_block("RecoverLedgerRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
        ) = _RECOVER_LEDGER_REQUEST_BLOCK.unpack_from(buffer, offset)
        password_token, _ = read_data(buffer, end, "RecoverLedgerRequest.password_token")
        return cls(control_session_id, correlation_id, scope_id, ledger_id, password_token)


_LIST_SCOPED_RECORDINGS_REQUEST = Struct("<HHHHqqqqi")
_LIST_SCOPED_RECORDINGS_REQUEST_BLOCK = Struct("<qqqqi")


class ListScopedRecordingsRequest(Message):
    """Template 40, `ListScopedRecordingsRequest`."""

    TEMPLATE_ID: ClassVar[int] = 40
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "from_recording_id",
        "record_count",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        from_recording_id: int = 0,
        record_count: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.from_recording_id = from_recording_id
        self.record_count = record_count

    def encode(self) -> bytes:
        try:
            return _LIST_SCOPED_RECORDINGS_REQUEST.pack(
                36,
                40,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.from_recording_id,
                self.record_count,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LIST_SCOPED_RECORDINGS_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 2,
    ) -> Self:
        check_block("ListScopedRecordingsRequest", buffer, offset, block_length, 36)
        (
            control_session_id,
            correlation_id,
            scope_id,
            from_recording_id,
            record_count,
        ) = _LIST_SCOPED_RECORDINGS_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, from_recording_id, record_count)


_DELETE_LEDGER_REQUEST = Struct("<HHHHqqqq")
_DELETE_LEDGER_REQUEST_BLOCK = Struct("<qqqq")


class DeleteLedgerRequest(Message):
    """Template 9, `DeleteLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 9
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id", "ledger_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id

    def encode(self) -> bytes:
        try:
            return _DELETE_LEDGER_REQUEST.pack(
                32,
                9,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _DELETE_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 2,
    ) -> Self:
        check_block("DeleteLedgerRequest", buffer, offset, block_length, 32)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
        ) = _DELETE_LEDGER_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, ledger_id)


_SCOPED_REPLAY_REQUEST = Struct("<HHHHqqqqqqiiq")
_SCOPED_REPLAY_REQUEST_BLOCK = Struct("<qqqqqqiiq")


class ScopedReplayRequest(Message):
    """Template 41, `ScopedReplayRequest`."""

    TEMPLATE_ID: ClassVar[int] = 41
    BLOCK_LENGTH: ClassVar[int] = 64
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
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
        scope_id: int = 0,
        recording_id: int = 0,
        position: int = 0,
        length: int = 0,
        replay_stream_id: int = 0,
        file_io_max_length: int = 0,
        replay_token: int = 0,
        replay_channel: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.recording_id = recording_id
        self.position = position
        self.length = length
        self.replay_stream_id = replay_stream_id
        self.file_io_max_length = file_io_max_length
        self.replay_token = replay_token
        self.replay_channel = replay_channel

    def encode(self) -> bytes:
        try:
            block = _SCOPED_REPLAY_REQUEST.pack(
                64,
                41,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.recording_id,
                self.position,
                self.length,
                self.replay_stream_id,
                self.file_io_max_length,
                self.replay_token,
            )
            return block + text_field(self.replay_channel)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _SCOPED_REPLAY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 64,
        version: int = 2,
    ) -> Self:
        end = check_block("ScopedReplayRequest", buffer, offset, block_length, 64)
        (
            control_session_id,
            correlation_id,
            scope_id,
            recording_id,
            position,
            length,
            replay_stream_id,
            file_io_max_length,
            replay_token,
        ) = _SCOPED_REPLAY_REQUEST_BLOCK.unpack_from(buffer, offset)
        replay_channel, _ = read_text(buffer, end, "ScopedReplayRequest.replay_channel")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            recording_id,
            position,
            length,
            replay_stream_id,
            file_io_max_length,
            replay_token,
            replay_channel,
        )


_LOCATE_ENTRY_REQUEST = Struct("<HHHHqqqqq")
_LOCATE_ENTRY_REQUEST_BLOCK = Struct("<qqqqq")


class LocateEntryRequest(Message):
    """Template 10, `LocateEntryRequest`."""

    TEMPLATE_ID: ClassVar[int] = 10
    BLOCK_LENGTH: ClassVar[int] = 40
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id", "ledger_id", "entry_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        entry_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.entry_id = entry_id

    def encode(self) -> bytes:
        try:
            return _LOCATE_ENTRY_REQUEST.pack(
                40,
                10,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.entry_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LOCATE_ENTRY_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 40,
        version: int = 2,
    ) -> Self:
        check_block("LocateEntryRequest", buffer, offset, block_length, 40)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            entry_id,
        ) = _LOCATE_ENTRY_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id, ledger_id, entry_id)


_NEXT_SCOPE_REQUEST = Struct("<HHHHqqq")
_NEXT_SCOPE_REQUEST_BLOCK = Struct("<qqq")


class NextScopeRequest(Message):
    """Template 42, `NextScopeRequest`."""

    TEMPLATE_ID: ClassVar[int] = 42
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = ("control_session_id", "correlation_id", "scope_id")
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id

    def encode(self) -> bytes:
        try:
            return _NEXT_SCOPE_REQUEST.pack(
                24,
                42,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _NEXT_SCOPE_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 2,
    ) -> Self:
        check_block("NextScopeRequest", buffer, offset, block_length, 24)
        (
            control_session_id,
            correlation_id,
            scope_id,
        ) = _NEXT_SCOPE_REQUEST_BLOCK.unpack_from(buffer, offset)
        return cls(control_session_id, correlation_id, scope_id)


_MIRROR_LEDGER_REQUEST = Struct("<HHHHqqqqqqiiiqqiii")
_MIRROR_LEDGER_REQUEST_BLOCK_V1 = Struct("<qqqqqqiiiqqiii")
_MIRROR_LEDGER_REQUEST_BLOCK_V0 = Struct("<qqqqqqiiiq")


class MirrorLedgerRequest(Message):
    """Template 11, `MirrorLedgerRequest`."""

    TEMPLATE_ID: ClassVar[int] = 11
    BLOCK_LENGTH: ClassVar[int] = 88
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "created_ms",
        "source_recording_id",
        "source_stream_id",
        "ledger_type",
        "digest_type",
        "confirmed_position",
        "recorded_position",
        "step",
        "write_quorum",
        "ack_quorum",
        "password_hash",
        "source_channel",
        "member_record",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        created_ms: int = 0,
        source_recording_id: int = 0,
        source_stream_id: int = 0,
        ledger_type: LedgerType = LedgerType.PD_JOURNAL,
        digest_type: DigestType = DigestType.CRC32,
        confirmed_position: int = 0,
        recorded_position: int | None = None,  # since version 1
        step: int | None = None,  # since version 1
        write_quorum: int | None = None,  # since version 1
        ack_quorum: int | None = None,  # since version 1
        password_hash: bytes = b"",
        source_channel: str = "",
        member_record: str | None = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.created_ms = created_ms
        self.source_recording_id = source_recording_id
        self.source_stream_id = source_stream_id
        self.ledger_type = ledger_type
        self.digest_type = digest_type
        self.confirmed_position = confirmed_position
        self.recorded_position = recorded_position
        self.step = step
        self.write_quorum = write_quorum
        self.ack_quorum = ack_quorum
        self.password_hash = password_hash
        self.source_channel = source_channel
        self.member_record = member_record

    def encode(self) -> bytes:
        try:
            block = _MIRROR_LEDGER_REQUEST.pack(
                88,
                11,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.created_ms,
                self.source_recording_id,
                self.source_stream_id,
                self.ledger_type,
                self.digest_type,
                self.confirmed_position,
                -9223372036854775808 if self.recorded_position is None else self.recorded_position,
                -2147483648 if self.step is None else self.step,
                -2147483648 if self.write_quorum is None else self.write_quorum,
                -2147483648 if self.ack_quorum is None else self.ack_quorum,
            )
            return (
                block
                + data_field(self.password_hash)
                + text_field(self.source_channel)
                + text_field(self.member_record)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _MIRROR_LEDGER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 88,
        version: int = 2,
    ) -> Self:
        recorded_position: int | None = None
        step: int | None = None
        write_quorum: int | None = None
        ack_quorum: int | None = None
        if version >= 1:
            end = check_block("MirrorLedgerRequest", buffer, offset, block_length, 88)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                created_ms,
                source_recording_id,
                source_stream_id,
                ledger_type,
                digest_type,
                confirmed_position,
                recorded_position,
                step,
                write_quorum,
                ack_quorum,
            ) = _MIRROR_LEDGER_REQUEST_BLOCK_V1.unpack_from(buffer, offset)
        else:
            end = check_block("MirrorLedgerRequest", buffer, offset, block_length, 68)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                created_ms,
                source_recording_id,
                source_stream_id,
                ledger_type,
                digest_type,
                confirmed_position,
            ) = _MIRROR_LEDGER_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        ledger_type = enum_member(LedgerType, ledger_type, "MirrorLedgerRequest.ledger_type")
        digest_type = enum_member(DigestType, digest_type, "MirrorLedgerRequest.digest_type")
        if recorded_position == -9223372036854775808:
            recorded_position = None
        if step == -2147483648:
            step = None
        if write_quorum == -2147483648:
            write_quorum = None
        if ack_quorum == -2147483648:
            ack_quorum = None
        password_hash, end = read_data(buffer, end, "MirrorLedgerRequest.password_hash")
        source_channel, end = read_text(buffer, end, "MirrorLedgerRequest.source_channel")
        member_record: str | None = None
        if version >= 1:
            member_record, _ = read_text(buffer, end, "MirrorLedgerRequest.member_record")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            created_ms,
            source_recording_id,
            source_stream_id,
            ledger_type,
            digest_type,
            confirmed_position,
            recorded_position,
            step,
            write_quorum,
            ack_quorum,
            password_hash,
            source_channel,
            member_record,
        )


_REPLACE_MIRROR_REQUEST = Struct("<HHHHqqqqi")
_REPLACE_MIRROR_REQUEST_BLOCK_V1 = Struct("<qqqqi")
_REPLACE_MIRROR_REQUEST_BLOCK_V0 = Struct("<qqqq")


class ReplaceMirrorRequest(Message):
    """Template 12, `ReplaceMirrorRequest`."""

    TEMPLATE_ID: ClassVar[int] = 12
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "is_lost",
        "mirror",
        "replacement",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        is_lost: int | None = None,  # since version 1
        mirror: str = "",
        replacement: str = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.is_lost = is_lost
        self.mirror = mirror
        self.replacement = replacement

    def encode(self) -> bytes:
        try:
            block = _REPLACE_MIRROR_REQUEST.pack(
                36,
                12,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                -2147483648 if self.is_lost is None else self.is_lost,
            )
            return block + text_field(self.mirror) + text_field(self.replacement)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _REPLACE_MIRROR_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 2,
    ) -> Self:
        is_lost: int | None = None
        if version >= 1:
            end = check_block("ReplaceMirrorRequest", buffer, offset, block_length, 36)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                is_lost,
            ) = _REPLACE_MIRROR_REQUEST_BLOCK_V1.unpack_from(buffer, offset)
        else:
            end = check_block("ReplaceMirrorRequest", buffer, offset, block_length, 32)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
            ) = _REPLACE_MIRROR_REQUEST_BLOCK_V0.unpack_from(buffer, offset)
        if is_lost == -2147483648:
            is_lost = None
        mirror, end = read_text(buffer, end, "ReplaceMirrorRequest.mirror")
        replacement, _ = read_text(buffer, end, "ReplaceMirrorRequest.replacement")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            is_lost,
            mirror,
            replacement,
        )


_PREPARE_WRITER_REQUEST = Struct("<HHHHqqqqi")
_PREPARE_WRITER_REQUEST_BLOCK = Struct("<qqqqi")


class PrepareWriterRequest(Message):
    """Template 13, `PrepareWriterRequest`."""

    TEMPLATE_ID: ClassVar[int] = 13
    BLOCK_LENGTH: ClassVar[int] = 36
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "takes_over",
        "password_token",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        takes_over: BooleanType = BooleanType.FALSE,
        password_token: bytes = b"",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.takes_over = takes_over
        self.password_token = password_token

    def encode(self) -> bytes:
        try:
            block = _PREPARE_WRITER_REQUEST.pack(
                36,
                13,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.takes_over,
            )
            return block + data_field(self.password_token)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _PREPARE_WRITER_REQUEST, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 36,
        version: int = 2,
    ) -> Self:
        end = check_block("PrepareWriterRequest", buffer, offset, block_length, 36)
        (
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            takes_over,
        ) = _PREPARE_WRITER_REQUEST_BLOCK.unpack_from(buffer, offset)
        takes_over = enum_member(BooleanType, takes_over, "PrepareWriterRequest.takes_over")
        password_token, _ = read_data(buffer, end, "PrepareWriterRequest.password_token")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            takes_over,
            password_token,
        )


_LEDGER_DESCRIPTOR = Struct("<HHHHqqqqqqqqqqqiiiiiiiiqqq")
_LEDGER_DESCRIPTOR_BLOCK_V2 = Struct("<qqqqqqqqqqqiiiiiiiiqqq")
_LEDGER_DESCRIPTOR_BLOCK_V1 = Struct("<qqqqqqqqqqqiiiiiiiiq")
_LEDGER_DESCRIPTOR_BLOCK_V0 = Struct("<qqqqqqqqqqqiiiiiiii")


class LedgerDescriptor(Message):
    """Template 20, `LedgerDescriptor`."""

    TEMPLATE_ID: ClassVar[int] = 20
    BLOCK_LENGTH: ClassVar[int] = 144
    SCHEMA_ID: ClassVar[int] = 201
    SCHEMA_VERSION: ClassVar[int] = 2

    __match_args__ = (
        "control_session_id",
        "correlation_id",
        "scope_id",
        "ledger_id",
        "created_ms",
        "recording_id",
        "recorded_position",
        "confirmed_position",
        "last_pushed",
        "last_confirmed",
        "length",
        "recording_counter_id",
        "confirmed_counter_id",
        "ledger_type",
        "digest_type",
        "state",
        "write_quorum",
        "ack_quorum",
        "has_password",
        "archive_id",
        "damaged_entries",
        "repaired_entries",
        "mirrors",
        "member_record",
        "members",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        control_session_id: int = 0,
        correlation_id: int = 0,
        scope_id: int = 0,
        ledger_id: int = 0,
        created_ms: int = 0,
        recording_id: int = 0,
        recorded_position: int = 0,
        confirmed_position: int = 0,
        last_pushed: int | None = None,
        last_confirmed: int | None = None,
        length: int | None = None,
        recording_counter_id: int = 0,
        confirmed_counter_id: int = 0,
        ledger_type: LedgerType = LedgerType.PD_JOURNAL,
        digest_type: DigestType = DigestType.CRC32,
        state: LedgerState = LedgerState.OPEN,
        write_quorum: int = 0,
        ack_quorum: int = 0,
        has_password: BooleanType = BooleanType.FALSE,
        archive_id: int | None = None,  # since version 1
        damaged_entries: int | None = None,  # since version 2
        repaired_entries: int | None = None,  # since version 2
        mirrors: str = "",
        member_record: str | None = "",
        members: str | None = "",
    ) -> None:
        self.control_session_id = control_session_id
        self.correlation_id = correlation_id
        self.scope_id = scope_id
        self.ledger_id = ledger_id
        self.created_ms = created_ms
        self.recording_id = recording_id
        self.recorded_position = recorded_position
        self.confirmed_position = confirmed_position
        self.last_pushed = last_pushed
        self.last_confirmed = last_confirmed
        self.length = length
        self.recording_counter_id = recording_counter_id
        self.confirmed_counter_id = confirmed_counter_id
        self.ledger_type = ledger_type
        self.digest_type = digest_type
        self.state = state
        self.write_quorum = write_quorum
        self.ack_quorum = ack_quorum
        self.has_password = has_password
        self.archive_id = archive_id
        self.damaged_entries = damaged_entries
        self.repaired_entries = repaired_entries
        self.mirrors = mirrors
        self.member_record = member_record
        self.members = members

    def encode(self) -> bytes:
        try:
            block = _LEDGER_DESCRIPTOR.pack(
                144,
                20,
                201,
                2,
                self.control_session_id,
                self.correlation_id,
                self.scope_id,
                self.ledger_id,
                self.created_ms,
                self.recording_id,
                self.recorded_position,
                self.confirmed_position,
                -9223372036854775808 if self.last_pushed is None else self.last_pushed,
                -9223372036854775808 if self.last_confirmed is None else self.last_confirmed,
                -9223372036854775808 if self.length is None else self.length,
                self.recording_counter_id,
                self.confirmed_counter_id,
                self.ledger_type,
                self.digest_type,
                self.state,
                self.write_quorum,
                self.ack_quorum,
                self.has_password,
                -9223372036854775808 if self.archive_id is None else self.archive_id,
                -9223372036854775808 if self.damaged_entries is None else self.damaged_entries,
                -9223372036854775808 if self.repaired_entries is None else self.repaired_entries,
            )
            return (
                block
                + text_field(self.mirrors)
                + text_field(self.member_record)
                + text_field(self.members)
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _LEDGER_DESCRIPTOR, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 144,
        version: int = 2,
    ) -> Self:
        archive_id: int | None = None
        damaged_entries: int | None = None
        repaired_entries: int | None = None
        if version >= 2:
            end = check_block("LedgerDescriptor", buffer, offset, block_length, 144)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                created_ms,
                recording_id,
                recorded_position,
                confirmed_position,
                last_pushed,
                last_confirmed,
                length,
                recording_counter_id,
                confirmed_counter_id,
                ledger_type,
                digest_type,
                state,
                write_quorum,
                ack_quorum,
                has_password,
                archive_id,
                damaged_entries,
                repaired_entries,
            ) = _LEDGER_DESCRIPTOR_BLOCK_V2.unpack_from(buffer, offset)
        elif version >= 1:
            end = check_block("LedgerDescriptor", buffer, offset, block_length, 128)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                created_ms,
                recording_id,
                recorded_position,
                confirmed_position,
                last_pushed,
                last_confirmed,
                length,
                recording_counter_id,
                confirmed_counter_id,
                ledger_type,
                digest_type,
                state,
                write_quorum,
                ack_quorum,
                has_password,
                archive_id,
            ) = _LEDGER_DESCRIPTOR_BLOCK_V1.unpack_from(buffer, offset)
        else:
            end = check_block("LedgerDescriptor", buffer, offset, block_length, 120)
            (
                control_session_id,
                correlation_id,
                scope_id,
                ledger_id,
                created_ms,
                recording_id,
                recorded_position,
                confirmed_position,
                last_pushed,
                last_confirmed,
                length,
                recording_counter_id,
                confirmed_counter_id,
                ledger_type,
                digest_type,
                state,
                write_quorum,
                ack_quorum,
                has_password,
            ) = _LEDGER_DESCRIPTOR_BLOCK_V0.unpack_from(buffer, offset)
        if last_pushed == -9223372036854775808:
            last_pushed = None
        if last_confirmed == -9223372036854775808:
            last_confirmed = None
        if length == -9223372036854775808:
            length = None
        ledger_type = enum_member(LedgerType, ledger_type, "LedgerDescriptor.ledger_type")
        digest_type = enum_member(DigestType, digest_type, "LedgerDescriptor.digest_type")
        state = enum_member(LedgerState, state, "LedgerDescriptor.state")
        has_password = enum_member(BooleanType, has_password, "LedgerDescriptor.has_password")
        if archive_id == -9223372036854775808:
            archive_id = None
        if damaged_entries == -9223372036854775808:
            damaged_entries = None
        if repaired_entries == -9223372036854775808:
            repaired_entries = None
        mirrors, end = read_text(buffer, end, "LedgerDescriptor.mirrors")
        member_record: str | None = None
        if version >= 1:
            member_record, end = read_text(buffer, end, "LedgerDescriptor.member_record")
        members: str | None = None
        if version >= 1:
            members, _ = read_text(buffer, end, "LedgerDescriptor.members")
        return cls(
            control_session_id,
            correlation_id,
            scope_id,
            ledger_id,
            created_ms,
            recording_id,
            recorded_position,
            confirmed_position,
            last_pushed,
            last_confirmed,
            length,
            recording_counter_id,
            confirmed_counter_id,
            ledger_type,
            digest_type,
            state,
            write_quorum,
            ack_quorum,
            has_password,
            archive_id,
            damaged_entries,
            repaired_entries,
            mirrors,
            member_record,
            members,
        )


MESSAGES: dict[int, type[Message]] = {
    1: CreateLedgerRequest,
    2: LedgerInfoRequest,
    3: ListLedgersRequest,
    4: AttachWriterRequest,
    5: SyncLedgerRequest,
    6: AwaitLedgerRequest,
    7: CloseLedgerRequest,
    8: RecoverLedgerRequest,
    40: ListScopedRecordingsRequest,
    9: DeleteLedgerRequest,
    41: ScopedReplayRequest,
    10: LocateEntryRequest,
    42: NextScopeRequest,
    11: MirrorLedgerRequest,
    12: ReplaceMirrorRequest,
    13: PrepareWriterRequest,
    20: LedgerDescriptor,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "aerotape.ledger.control", MESSAGES)
