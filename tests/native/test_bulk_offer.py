"""Messages that are offered while a thread waits on a mailbox."""

from __future__ import annotations

import mmap
import threading
from array import array

import pytest

from aerotape import _native

SECOND_NS = 1_000_000_000
BACK_PRESSURED, CLOSED, ERROR = -2, -4, -6
COUNT = 500


@pytest.fixture
def source() -> mmap.mmap:
    """Numbers of four bytes each, from 0."""
    source = mmap.mmap(-1, 4 * 10_000)
    source.write(array("i", range(10_000)).tobytes())
    return source


@pytest.fixture
def streams(
    client: _native.AeronClient,
) -> tuple[_native.ExclusivePublication, _native.Subscription]:
    subscription = client.add_subscription("aeron:ipc", 8)
    publication = client.add_exclusive_publication("aeron:ipc?term-length=64k", 8)
    assert publication.offer_within(b"first", SECOND_NS) > 0
    assert taken(subscription, 1) == [b"first"]
    return publication, subscription


def taken(subscription: _native.Subscription, count: int) -> list[bytes]:
    """Read that many messages."""
    found: list[bytes] = []
    while len(found) < count:
        found += [message[0] for message in subscription.poll(count - len(found), SECOND_NS)]
    return found


def slices(*numbers: int) -> array[int]:
    return array("q", [value for number in numbers for value in (4 * number, 4)])


def bodies(*numbers: int) -> list[bytes]:
    return [b"<" + number.to_bytes(4, "little") for number in numbers]


def test_a_wait_ends_when_all_messages_are_sent(
    streams: tuple[_native.ExclusivePublication, _native.Subscription], source: mmap.mmap
) -> None:
    """More messages than the term buffer can hold, to a subscriber that reads."""
    publication, subscription = streams
    numbers = [number % 10_000 for number in range(3, 9_000 + COUNT)]
    bulk_offer = _native.BulkOffer(publication, b"<", source, slices(*numbers))
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(taken(subscription, len(numbers))))
    reader.start()
    assert _native.Mailbox().wait([subscription], 60 * SECOND_NS, 0, [bulk_offer]) == []
    reader.join()
    assert bulk_offer.sent == len(numbers)
    assert bulk_offer.result == publication.position
    assert read == bodies(*numbers)
    source.close()


def test_events_end_the_wait(
    streams: tuple[_native.ExclusivePublication, _native.Subscription], source: mmap.mmap
) -> None:
    """Events have priority over messages that are not sent yet."""
    publication, _ = streams
    bulk_offer = _native.BulkOffer(publication, b"<", source, slices(*range(5_000)))
    mailbox = _native.Mailbox()
    mailbox.wake()
    assert mailbox.wait([], 60 * SECOND_NS, 10, [bulk_offer]) == []
    assert 0 < bulk_offer.sent < 5_000


def test_the_last_message_does_not_end_the_wait(
    streams: tuple[_native.ExclusivePublication, _native.Subscription], source: mmap.mmap
) -> None:
    """No message follows it; one that cannot be sent does end the wait."""
    publication, subscription = streams
    mailbox = _native.Mailbox()
    bulk_offer = _native.BulkOffer(publication, b"<", source, slices(5, 6), is_last=True)
    timer = threading.Timer(0.3, mailbox.wake)
    timer.start()
    assert mailbox.wait([subscription], 60 * SECOND_NS, 0, [bulk_offer]) == []
    assert timer.finished.is_set()
    assert (bulk_offer.sent, taken(subscription, 2)) == (2, bodies(5, 6))
    publication.close()
    late = _native.BulkOffer(publication, b"<", source, slices(7), is_last=True)
    assert mailbox.wait([subscription], 60 * SECOND_NS, 0, [late]) == []
    assert (late.sent, late.result) == (0, CLOSED)


def test_a_message_that_cannot_be_sent_ends_the_wait(
    streams: tuple[_native.ExclusivePublication, _native.Subscription],
    source: mmap.mmap,
) -> None:
    """A message that is too long, and a stream that is closed."""
    publication, subscription = streams
    mailbox = _native.Mailbox()

    def outcome(places: array[int]) -> tuple[int, int, str | None]:
        bulk_offer = _native.BulkOffer(publication, b"<", source, places)
        assert mailbox.wait([], 60 * SECOND_NS, 10, [bulk_offer]) == []
        assert bulk_offer.is_over
        return bulk_offer.sent, bulk_offer.result, bulk_offer.failure

    assert publication.max_message_length < 9_000
    assert outcome(array("q", [0, 4, 0, 9_000])) == (1, 0, None)
    assert taken(subscription, 1) == bodies(0)
    publication.close()
    assert outcome(slices(1)) == (0, CLOSED, None)


def test_messages_are_offered_without_a_wait(
    streams: tuple[_native.ExclusivePublication, _native.Subscription], source: mmap.mmap
) -> None:
    """From a copy: the source may be closed meanwhile, and the start of a slice can be skipped."""
    publication, subscription = streams
    bulk_offer = _native.BulkOffer(publication, b"<", source, slices(5, 6), skip=1)
    source.close()
    assert bulk_offer.offer() == bulk_offer.sent == 2
    assert bulk_offer.is_over
    assert taken(subscription, 2) == [b"<" + body[2:] for body in bodies(5, 6)]


@pytest.mark.parametrize(
    "place", [(0, 40_001), (-1, 5), (40_000, 1), (0, -1), (1 << 62, 1 << 62), (0, 4)]
)
def test_a_slice_outside_of_its_buffer_is_refused(
    streams: tuple[_native.ExclusivePublication, _native.Subscription],
    source: mmap.mmap,
    place: tuple[int, int],
) -> None:
    """Invalid slices are an error before the first message is sent."""
    places = array("q", [0, 5, *place])
    with pytest.raises(ValueError, match="not an offset and length within 40000 bytes"):
        _native.BulkOffer(streams[0], b"", source, places, skip=5)
