"""Requests for descriptors that the mailbox answers by itself, and those that it must not."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aerotape import _native
from aerotape.archive.control import responses
from aerotape.archive.control.listing import native_lookups
from aerotape.codecs import archive as codecs

SECOND_NS = 1_000_000_000
SESSION = 5
LENGTH = 96
# Recordings that the catalog has; other bytes lie between them.
IDS = (0, 1, 3, 4, 9)
CATALOG = bytes(range(256)) * 4


def place(recording_id: int) -> tuple[int, int]:
    """Offset and length of a recording's descriptor."""
    return 7 * recording_id, LENGTH


def descriptor(recording_id: int, correlation_id: int = 77) -> bytes:
    """The message that a recording's descriptor comes in."""
    begin, length = place(recording_id)
    return responses.recording_descriptor(SESSION, correlation_id, CATALOG[begin : begin + length])


def end(next_id: int, correlation_id: int = 77) -> bytes:
    """The message that ends a listing of less than was asked for."""
    unknown = codecs.ControlResponseCode.RECORDING_UNKNOWN
    return responses.control_response(SESSION, correlation_id, next_id, unknown)


def extend(index: _native.DescriptorIndex, *ids: int) -> None:
    slices = [number for each in ids for number in place(each)]
    index.extend(array("q", ids), array("q", slices))


@dataclass
class Rig:
    """A mailbox that polls requests, a caller, and where the caller reads the answers."""

    mailbox: _native.Mailbox
    index: _native.DescriptorIndex
    lookups: _native.Lookups
    requests: _native.Subscription
    request_stream: _native.ExclusivePublication
    answers: _native.Subscription
    answer_stream: _native.ExclusivePublication
    image_id: int
    answered: list[bytes] = field(default_factory=list)
    catalog: bytes = CATALOG

    def send(self, request: Any) -> None:
        data = request if isinstance(request, bytes) else request.encode()
        assert self.request_stream.offer_within(data, SECOND_NS) > 0

    def wait(self, timeout_ns: int = SECOND_NS // 20) -> list[_native.Event]:
        """Wait once; return what is for Python."""
        wait = self.mailbox.wait
        came = wait([self.requests], timeout_ns, 10, (self.lookups, self.catalog))
        return [event for event in came if event[0] in ("message", "listing_left")]

    def read(self) -> list[bytes]:
        """Read what has been sent by now."""
        read: list[bytes] = []
        while found := self.answers.poll(10):
            read += [payload for payload, *_ in found]
        return read

    def ask(self, request: Any, answers: int = 1) -> list[_native.Event]:
        """Send a request; wait until something is left to Python, which is returned, or until so
        many answers have come."""
        self.send(request)
        came: list[_native.Event] = []
        for _ in range(100):
            came += self.wait()
            self.answered += self.read()
            if came or len(self.answered) >= answers:
                break
        return came


def one(recording_id: int, *, session: int = SESSION, correlation_id: int = 77) -> Any:
    return codecs.ListRecordingRequest(
        control_session_id=session, correlation_id=correlation_id, recording_id=recording_id
    )


def many(from_id: int, count: int, *, session: int = SESSION, correlation_id: int = 77) -> Any:
    return codecs.ListRecordingsRequest(
        control_session_id=session,
        correlation_id=correlation_id,
        from_recording_id=from_id,
        record_count=count,
    )


@pytest.fixture
def rig(aeron_dir: Path) -> Iterator[Rig]:
    properties = {
        "aeron.dir": str(aeron_dir),
        "aeron.threading.mode": "SHARED",
        "aeron.term.buffer.sparse.file": "true",
        "aeron.ipc.term.buffer.length": "65536",
    }
    driver = _native.MediaDriver.launch(properties)
    mailbox = _native.Mailbox()
    client = _native.AeronClient(driver.aeron_dir, mailbox=mailbox)
    requests = client.add_subscription("aeron:ipc", 10, mailbox)
    request_stream = client.add_exclusive_publication("aeron:ipc", 10)
    images: list[_native.Image] = []
    while not images:
        # May return without an event: an answer of the driver has come.
        came = mailbox.wait([requests], 5 * SECOND_NS)
        images = [event[1] for event in came if event[0] == "image_available"]
    [image] = images
    answers = client.add_subscription("aeron:ipc", 20)
    answer_stream = client.add_exclusive_publication("aeron:ipc", 20)
    while not answer_stream.is_connected:
        pass
    index = _native.DescriptorIndex()
    extend(index, *IDS)
    index.set_end(11)
    lookups = native_lookups(index)
    lookups.serve(SESSION, image.correlation_id, answer_stream)
    yield Rig(
        mailbox,
        index,
        lookups,
        requests,
        request_stream,
        answers,
        answer_stream,
        image.correlation_id,
    )
    client.close()
    driver.close()


def test_a_recording_is_answered_from_the_catalog(rig: Rig) -> None:
    """With the session and the correlation id of the request in place of its first fields."""
    assert rig.ask(one(3)) == []
    assert rig.answered == [descriptor(3)]


@pytest.mark.parametrize(
    ("from_id", "count", "listed", "next_id"),
    [
        (0, 5, IDS, None),
        (0, 6, IDS, 11),
        (0, 2**31 - 1, IDS, 11),
        (-4, 3, (0, 1, 3), None),
        (2, 2, (3, 4), None),
        (9, 1, (9,), None),
        (10, 1, (), 11),
        (50, 1, (), 50),
        (2**63 - 1, 1, (), 2**63 - 1),
    ],
)
def test_a_listing_is_answered_from_the_catalog(
    rig: Rig, from_id: int, count: int, listed: tuple[int, ...], next_id: int | None
) -> None:
    """As many as are wanted, from the first id on; the end is told when there are fewer."""
    expected = [descriptor(each) for each in listed]
    if next_id is not None:
        expected.append(end(next_id))
    assert rig.ask(many(from_id, count), len(expected)) == []
    assert rig.answered == expected
    assert not rig.lookups.is_listing(SESSION)


def test_python_may_begin_a_listing(rig: Rig) -> None:
    """It goes out in the next wait, as if the request had been answered here."""
    assert rig.lookups.list(SESSION, 78, 4, 9)
    assert rig.lookups.is_listing(SESSION)
    assert not rig.lookups.list(SESSION, 79, 4, 9)
    assert rig.wait() == []
    assert rig.read() == [descriptor(4, 78), descriptor(9, 78), end(11, 78)]
    assert not rig.lookups.list(SESSION, 78, 4, 0)
    assert not rig.lookups.list(SESSION + 1, 78, 4, 9)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(one(2), id="no such recording"),
        pytest.param(one(10), id="beyond the last recording"),
        pytest.param(one(3, session=6), id="another session"),
        pytest.param(many(0, 5, session=6), id="listing of another session"),
        pytest.param(many(0, 0), id="listing of none"),
        pytest.param(many(0, -1), id="listing of fewer"),
        pytest.param(
            codecs.StopPositionRequest(
                control_session_id=SESSION, correlation_id=77, recording_id=3
            ),
            id="another request",
        ),
        pytest.param(one(3).encode()[:31], id="cut short"),
        pytest.param(many(0, 5).encode()[:35], id="listing cut short"),
        pytest.param(b"", id="empty"),
    ],
)
def test_other_requests_are_left_to_python(rig: Rig, request_: Any) -> None:
    """Whatever is not known to have an answer arrives as an event."""
    assert len(rig.ask(request_)) == 1
    assert rig.answered == []


def test_what_is_not_indexed_is_left_to_python(rig: Rig) -> None:
    """While there may be more recordings no listing is answered, and none while none are known."""
    rig.index.set_end(None)
    assert rig.ask(one(3)) == []
    assert rig.answered.pop() == descriptor(3)
    assert len(rig.ask(many(0, 5))) == 1
    rig.index.clear()
    assert len(rig.ask(one(3))) == 1
    extend(rig.index, 3)
    rig.index.set_end(4)
    assert rig.ask(many(0, 1)) == []
    assert rig.answered == [descriptor(3)]


def test_who_is_not_served_is_left_to_python(rig: Rig) -> None:
    """A session is served until it leaves, on the image that owns it and on no other."""
    assert rig.lookups.leave(SESSION) is None
    assert len(rig.ask(one(3))) == len(rig.ask(many(0, 5))) == 1
    rig.lookups.serve(SESSION, rig.image_id + 1, rig.answer_stream)
    assert len(rig.ask(one(3))) == len(rig.ask(many(0, 5))) == 1
    assert rig.answered == []


def test_an_answer_that_cannot_be_sent_is_left_to_python(rig: Rig) -> None:
    """Python decides what back pressure and a closed publication mean."""
    rig.answer_stream.close()
    assert len(rig.ask(one(3))) == 1
    assert rig.ask(many(1, 5)) == [("listing_left", SESSION, 77, 1, 5)]
    assert not rig.lookups.is_listing(SESSION)


def test_requests_behind_one_for_python_wait_for_it(rig: Rig) -> None:
    """Answers keep the order of the requests."""
    rig.send(one(2))
    rig.send(one(3))
    assert len(rig.wait(SECOND_NS)) == 2
    assert rig.read() == []


@pytest.mark.parametrize("bad", [(1020, 8), (-1, 8), (8, -1), (1 << 62, 1 << 62)])
def test_what_is_not_in_the_catalog_is_left_to_python(rig: Rig, bad: tuple[int, int]) -> None:
    """The listing stops before a descriptor that is not within the buffer."""
    rig.index.extend(array("q", [20]), array("q", bad))
    rig.index.set_end(21)
    assert len(rig.ask(one(20))) == 1
    assert rig.answered == []
    assert rig.ask(many(9, 5), 99) == [("listing_left", SESSION, 77, 10, 4)]
    assert rig.answered == [descriptor(9)]


def test_a_descriptor_that_is_too_long_is_left_to_python(rig: Rig) -> None:
    rig.catalog = bytes(1 << 16)
    rig.index.extend(array("q", [20]), array("q", [0, 1 << 15]))
    rig.index.set_end(21)
    assert len(rig.ask(one(20))) == 1
    assert rig.ask(many(20, 1)) == [("listing_left", SESSION, 77, 20, 1)]


def test_a_reader_that_stops_leaves_the_rest_to_python(rig: Rig) -> None:
    """What is left begins where the client's part ends, with nothing twice or missing; what the
    client asks meanwhile is Python's too."""
    rig.index.clear()
    extend(rig.index, *range(100))
    long = array("q", [number for _ in range(900) for number in (0, LENGTH)])
    rig.index.extend(array("q", range(100, 1000)), long)
    rig.index.set_end(1000)
    rig.send(many(0, 5000))
    assert rig.wait(0) == []
    assert rig.lookups.is_listing(SESSION)
    rig.send(one(3))
    rig.send(many(0, 5))
    events: list[_native.Event] = []
    while len(events) < 3:
        events += rig.wait(SECOND_NS)
    assert [event[0] for event in events].count("message") == 2
    [(_, session_id, correlation_id, next_id, count)] = [
        event for event in events if event[0] == "listing_left"
    ]
    assert (session_id, correlation_id) == (SESSION, 77)
    assert count == 5000 - next_id
    read = rig.read()
    assert len(read) == next_id > 100
    assert read[:100] == [descriptor(each) for each in range(100)]
    assert not rig.lookups.is_listing(SESSION)


def test_a_reader_that_goes_on_gets_all(rig: Rig) -> None:
    """Several windows full: the listing goes on in each wait where the last one ended."""
    rig.index.clear()
    extend(rig.index, *range(100))
    long = array("q", [number for _ in range(4900) for number in (0, LENGTH)])
    rig.index.extend(array("q", range(100, 5000)), long)
    rig.index.set_end(5000)
    expected = [*map(descriptor, range(100)), *(4900 * [descriptor(0)]), end(5000)]
    rig.send(many(0, 6000))
    read: list[bytes] = []
    while len(read) < len(expected):
        for _, _, _, next_id, count in rig.wait(1000):
            # The machine stood still.
            assert count == 6000 - next_id
            assert rig.lookups.list(SESSION, 77, next_id, count)
        read += rig.read()
    assert read == expected


def test_recordings_that_come_and_go_in_a_listing(rig: Rig) -> None:
    """It goes by id: what is gone is not sent, and where more may have come Python goes on."""
    assert rig.lookups.list(SESSION, 77, 1, 9)
    rig.index.clear()
    extend(rig.index, 0, 2, 9)
    assert rig.wait() == [("listing_left", SESSION, 77, 10, 7)]
    assert rig.read() == [descriptor(2), descriptor(9)]


def test_who_leaves_is_told_what_is_left(rig: Rig) -> None:
    assert rig.lookups.list(SESSION, 78, 3, 9)
    assert rig.lookups.leave(SESSION) == (78, 3, 9)
    assert rig.wait() == []
    assert rig.read() == []


def test_an_index_is_ascending(rig: Rig) -> None:
    """What does not go on from the last recording is refused, and changes nothing."""
    index = rig.index
    for ids, slices in (([9], [0, 8]), ([10, 10], [0, 8, 0, 8]), ([10], [0]), ([8, 12], 4 * [0])):
        with pytest.raises(ValueError, match="ascending"):
            index.extend(array("q", ids), array("q", slices))
    with pytest.raises(BufferError):
        index.extend(array("i", [10]), array("q", [0, 8]))
    ids_bytes, slices_bytes = index.between(1, 9)
    assert list(array("q", ids_bytes)) == [1, 3, 4]
    assert list(array("q", slices_bytes)) == [*place(1), *place(3), *place(4)]
    assert index.between(5, 2) == (b"", b"")
    for gone in (3, 8):
        index.remove(gone)
    ids_bytes, slices_bytes = index.between(1, 9)
    assert list(array("q", ids_bytes)) == [1, 4]
    assert list(array("q", slices_bytes)) == [*place(1), *place(4)]


def test_an_index_takes_no_recordings(rig: Rig) -> None:
    """Empty arrays, whose memory is aligned for bytes only, add nothing."""
    before = rig.index.between(0, 100)
    rig.index.extend(array("q"), array("q"))
    assert rig.index.between(0, 100) == before
    assert rig.answer_stream.offer_slices(b"", CATALOG, array("q")) == (0, 0)


def test_responses_without_an_address_are_refused() -> None:
    """Answers are made from these; there must be room for who they are for."""
    whole = {"descriptor": bytes(24), "unknown": bytes(32)}
    for name in whole:
        short = {**whole, name: whole[name][:-1]}
        with pytest.raises(ValueError, match=f"{len(whole[name])} bytes at least"):
            _native.Lookups(_native.DescriptorIndex(), schema_id=101, one=32, many=8, **short)
