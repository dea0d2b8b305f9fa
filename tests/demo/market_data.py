"""Messages of the SBE schema marketdata, id 900, version 0.

Generated from market-data.xml with sbe-tool by codecs/generate.py; do not edit.
Regenerate: python -m aerotape.codecs.generate market-data.xml market_data.py
"""

from __future__ import annotations

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
    read_data,
)

SCHEMA_ID = 900
SCHEMA_VERSION = 0


_QUOTE = Struct("<HHHHqqiiiqq")
_QUOTE_BLOCK = Struct("<qqiiiqq")


class Quote(Message):
    """Template 1, `Quote`."""

    TEMPLATE_ID: ClassVar[int] = 1
    BLOCK_LENGTH: ClassVar[int] = 44
    SCHEMA_ID: ClassVar[int] = 900
    SCHEMA_VERSION: ClassVar[int] = 0

    __match_args__ = (
        "sequence",
        "event_time",
        "instrument_id",
        "bid_size",
        "ask_size",
        "bid_price",
        "ask_price",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        sequence: int = 0,
        event_time: int = 0,
        instrument_id: int = 0,
        bid_size: int = 0,
        ask_size: int = 0,
        bid_price: int = 0,
        ask_price: int = 0,
    ) -> None:
        self.sequence = sequence
        self.event_time = event_time
        self.instrument_id = instrument_id
        self.bid_size = bid_size
        self.ask_size = ask_size
        self.bid_price = bid_price
        self.ask_price = ask_price

    def encode(self) -> bytes:
        try:
            return _QUOTE.pack(
                44,
                1,
                900,
                0,
                self.sequence,
                self.event_time,
                self.instrument_id,
                self.bid_size,
                self.ask_size,
                self.bid_price,
                self.ask_price,
            )
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _QUOTE, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 44,
        version: int = 0,
    ) -> Self:
        check_block("Quote", buffer, offset, block_length, 44)
        (
            sequence,
            event_time,
            instrument_id,
            bid_size,
            ask_size,
            bid_price,
            ask_price,
        ) = _QUOTE_BLOCK.unpack_from(buffer, offset)
        return cls(sequence, event_time, instrument_id, bid_size, ask_size, bid_price, ask_price)


_TRADE = Struct("<HHHHqqiiq")
_TRADE_BLOCK = Struct("<qqiiq")


class Trade(Message):
    """Template 2, `Trade`."""

    TEMPLATE_ID: ClassVar[int] = 2
    BLOCK_LENGTH: ClassVar[int] = 32
    SCHEMA_ID: ClassVar[int] = 900
    SCHEMA_VERSION: ClassVar[int] = 0

    __match_args__ = ("sequence", "event_time", "instrument_id", "size", "price", "remarks")
    __slots__ = __match_args__

    def __init__(
        self,
        sequence: int = 0,
        event_time: int = 0,
        instrument_id: int = 0,
        size: int = 0,
        price: int = 0,
        remarks: bytes = b"",
    ) -> None:
        self.sequence = sequence
        self.event_time = event_time
        self.instrument_id = instrument_id
        self.size = size
        self.price = price
        self.remarks = remarks

    def encode(self) -> bytes:
        try:
            block = _TRADE.pack(
                32,
                2,
                900,
                0,
                self.sequence,
                self.event_time,
                self.instrument_id,
                self.size,
                self.price,
            )
            return block + data_field(self.remarks)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _TRADE, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 32,
        version: int = 0,
    ) -> Self:
        end = check_block("Trade", buffer, offset, block_length, 32)
        (
            sequence,
            event_time,
            instrument_id,
            size,
            price,
        ) = _TRADE_BLOCK.unpack_from(buffer, offset)
        remarks, _ = read_data(buffer, end, "Trade.remarks")
        return cls(sequence, event_time, instrument_id, size, price, remarks)


_BOOK_SNAPSHOT = Struct("<HHHHqqii")
_BOOK_SNAPSHOT_BLOCK = Struct("<qqii")


class BookSnapshot(Message):
    """Template 3, `BookSnapshot`."""

    TEMPLATE_ID: ClassVar[int] = 3
    BLOCK_LENGTH: ClassVar[int] = 24
    SCHEMA_ID: ClassVar[int] = 900
    SCHEMA_VERSION: ClassVar[int] = 0

    __match_args__ = ("sequence", "event_time", "instrument_id", "level_count", "levels")
    __slots__ = __match_args__

    def __init__(
        self,
        sequence: int = 0,
        event_time: int = 0,
        instrument_id: int = 0,
        level_count: int = 0,
        levels: bytes = b"",
    ) -> None:
        self.sequence = sequence
        self.event_time = event_time
        self.instrument_id = instrument_id
        self.level_count = level_count
        self.levels = levels

    def encode(self) -> bytes:
        try:
            block = _BOOK_SNAPSHOT.pack(
                24,
                3,
                900,
                0,
                self.sequence,
                self.event_time,
                self.instrument_id,
                self.level_count,
            )
            return block + data_field(self.levels)
        except ENCODE_FAULTS as fault:
            raise encode_error(self, _BOOK_SNAPSHOT, fault) from None

    @classmethod
    def decode_body(
        cls,
        buffer: Buffer,
        offset: int = 0,
        block_length: int = 24,
        version: int = 0,
    ) -> Self:
        end = check_block("BookSnapshot", buffer, offset, block_length, 24)
        (
            sequence,
            event_time,
            instrument_id,
            level_count,
        ) = _BOOK_SNAPSHOT_BLOCK.unpack_from(buffer, offset)
        levels, _ = read_data(buffer, end, "BookSnapshot.levels")
        return cls(sequence, event_time, instrument_id, level_count, levels)


MESSAGES: dict[int, type[Message]] = {
    1: Quote,
    2: Trade,
    3: BookSnapshot,
}


def decode(buffer: Buffer) -> Message:
    """Decode one message of this schema, message header first; bytes after it are ignored.

    Raises:
        CodecError: too short, of another schema, of an unknown template, or damaged.
    """
    return decode_message(buffer, SCHEMA_ID, "marketdata", MESSAGES)
