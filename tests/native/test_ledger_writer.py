"""The native writer of a ledger, on a real publication."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from aerotape import _native
from aerotape.codecs.entry import Entry, decode

SECOND_NS = 1_000_000_000
BACK_PRESSURED, CLOSED = -2, -4
SCOPE, LEDGER = 2**63 + 5, 2**64 - 9
PASSWORD = b"secret"


class Ledger:
    """A writer, its publication and a reader of what it adds."""

    def __init__(self, client: _native.AeronClient, **options: Any) -> None:
        self.subscription = client.add_subscription("aeron:ipc", 8)
        self.publication = client.add_exclusive_publication("aeron:ipc?term-length=64k", 8)
        while not self.publication.is_connected:
            pass
        fields = {
            "id": (SCOPE, LEDGER),
            "digest_type": "HMAC",
            "password": PASSWORD,
            "next_entry_id": 0,
            "length": 0,
            "last_add_confirmed": -1,
        }
        self.writer = _native.LedgerWriter(self.publication, **{**fields, **options})

    def read(self, count: int) -> list[Entry]:
        """Read that many entries; each is checked."""
        found: list[bytes] = []
        while len(found) < count:
            left = count - len(found)
            found += [message[0] for message in self.subscription.poll(left, SECOND_NS)]
        return [decode(data, password=PASSWORD) for data in found]


@pytest.fixture
def ledger(client: _native.AeronClient) -> Ledger:
    return Ledger(client)


def test_confirmed_positions_confirm_entries(ledger: Ledger) -> None:
    """Later entries carry the last add confirmed, which never decreases."""
    ends = [ledger.writer.add(b"payload")[1] for _ in range(5)]
    assert ledger.writer.confirm(0) == -1
    assert ledger.writer.confirm(ends[0] - 1) == -1
    assert ledger.writer.confirm(ends[1]) == 1
    assert ledger.writer.confirm(ends[3] - 1) == 2
    assert ledger.writer.confirm(ends[0]) == 2
    ledger.writer.add(b"after")
    assert ledger.read(6)[-1].last_add_confirmed == 2
    assert ledger.writer.confirm(2**62) == 5
    assert ledger.writer.last_add_confirmed == 5


def test_a_second_writer_continues_the_ledger(client: _native.AeronClient) -> None:
    """Entries that the first has not confirmed are confirmed by the position where it ended."""
    first = Ledger(client)
    for _ in range(10):
        first.writer.add(b"payload")
    first.publication.close()
    first.subscription.close()
    second = Ledger(client, next_entry_id=10, length=70, last_add_confirmed=4)
    begin = second.publication.position
    assert second.writer.last_add_pushed == 9
    assert second.writer.confirm(begin - 1) == 4
    entry_id, end = second.writer.add(b"more")
    assert (entry_id, second.writer.length) == (10, 74)
    assert second.writer.confirm(begin) == 9
    assert second.writer.confirm(end) == 10
    assert second.read(1) == [Entry(LEDGER, 10, 4, 74, b"more", "HMAC", SCOPE)]


def test_what_does_not_fit_is_not_numbered(ledger: Ledger) -> None:
    """Back pressure leaves the ledger at the last entry that was added, and adding continues."""
    payloads = [bytes(500)] * 1_000
    last, result = ledger.writer.add_many(payloads)
    assert result == BACK_PRESSURED
    assert 0 < last < 999
    assert ledger.writer.add(b"x") == (last, BACK_PRESSURED)
    assert ledger.writer.add(b"x", 1_000_000) == (last, BACK_PRESSURED)
    assert ledger.writer.length == 500 * (last + 1)
    ledger.read(last + 1)
    assert ledger.writer.add(b"x", SECOND_NS)[0] == last + 1
    assert ledger.read(1)[0].length == 500 * (last + 1) + 1


def test_a_slow_reader_gets_all(ledger: Ledger) -> None:
    """Adding waits for room without the interpreter, many times the term buffer's length."""
    rng = random.Random(5)
    payloads = [rng.randbytes(rng.randrange(2_000)) for _ in range(3_000)]
    read: list[Entry] = []
    reader = threading.Thread(target=lambda: read.extend(ledger.read(len(payloads))))
    reader.start()
    last, position = ledger.writer.add_many(payloads, 60 * SECOND_NS)
    assert (last, position) == (2_999, ledger.publication.position)
    reader.join()
    assert [entry.payload for entry in read] == payloads
    assert [entry.entry_id for entry in read] == list(range(3_000))
