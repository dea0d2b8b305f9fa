"""A simulated market: the same seed yields the same SBE-encoded messages in every process.

The publishers send the messages; the demo generates them again to compare the recorded ones.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Iterable, Iterator

import market_data

from aerotape.codecs.runtime import Message

_LEVEL = struct.Struct("<qii")


def messages(seed: int, count: int | None = None) -> Iterator[bytes]:
    """Yield `count` encoded messages (or without end): quotes, trades and book snapshots.

    Sizes are 52 bytes to about 16 KB, so that some are larger than the MTU and are fragmented.
    """
    quote, trade, book = market_data.Quote, market_data.Trade, market_data.BookSnapshot
    dice = random.Random(seed)
    remarks = [dice.randbytes(dice.randrange(0, 200)) for _ in range(256)]
    levels = [
        b"".join(_LEVEL.pack(dice.randrange(1 << 40), level, level * 3) for level in range(depth))
        for depth in (5, 20, 100, 400, 1000)
    ]
    chances = [dice.random() for _ in range(4093)]
    sequence = 0
    clock_ns = 1_700_000_000_000_000_000
    price = 100_000_000
    while count is None or sequence < count:
        chance = chances[sequence % 4093]
        clock_ns += 1_000 + sequence % 977
        price += int(chance * 2_000) - 1_000
        instrument = sequence % 211
        message: Message
        if chance < 0.80:
            message = quote(
                sequence=sequence,
                event_time=clock_ns,
                instrument_id=instrument,
                bid_size=100 + sequence % 900,
                ask_size=100 + sequence % 700,
                bid_price=price - 500,
                ask_price=price + 500,
            )
        elif chance < 0.99:
            message = trade(
                sequence=sequence,
                event_time=clock_ns,
                instrument_id=instrument,
                size=1 + sequence % 1_000,
                price=price,
                remarks=remarks[sequence % 256],
            )
        else:
            depth = levels[sequence % 5]
            message = book(
                sequence=sequence,
                event_time=clock_ns,
                instrument_id=instrument,
                level_count=len(depth) // _LEVEL.size,
                levels=depth,
            )
        yield message.encode()
        sequence += 1


class Digest:
    """Count, bytes and a BLAKE2b digest of messages in their order."""

    def __init__(self, payloads: Iterable[bytes] = ()) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0
        self.size_bytes = 0
        for payload in payloads:
            self.add(payload)

    def add(self, payload: bytes) -> None:
        """Add a message and its length, so that message boundaries count."""
        self._hash.update(len(payload).to_bytes(4, "little"))
        self._hash.update(payload)
        self.count += 1
        self.size_bytes += len(payload)

    def __str__(self) -> str:
        return self._hash.hexdigest()
