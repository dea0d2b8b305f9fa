"""Requests that the mailbox answers by itself, and those that it must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aerotape import _native
from aerotape.archive.control import responses
from aerotape.codecs import archive as codecs

SECOND_NS = 1_000_000_000
SESSION = 5


@dataclass
class Rig:
    """A mailbox that polls requests, a caller, and where the caller reads the answers."""

    mailbox: _native.Mailbox
    lookups: _native.Lookups
    requests: _native.Subscription
    request_stream: _native.ExclusivePublication
    answers: _native.Subscription
    answer_stream: _native.ExclusivePublication
    image_id: int

    def ask(self, request: object) -> list[_native.Event]:
        """Send a request; return the messages that are left to Python, waiting for one."""
        data = request if isinstance(request, bytes) else request.encode()  # type: ignore[attr-defined]
        assert self.request_stream.offer_within(data, SECOND_NS) > 0
        came: list[_native.Event] = []
        for _ in range(20):
            came += self.mailbox.wait([self.requests], SECOND_NS // 20, 10, self.lookups)
            if came or self.answers.image_by_session_id(self.answer_stream.session_id) is None:
                break
            self.answered += [payload for payload, *_ in self.answers.poll(10)]
            if self.answered:
                break
        return [event for event in came if event[0] == "message"]

    def __post_init__(self) -> None:
        self.answered: list[bytes] = []


def find(recording_id: int, *, session: int = SESSION, correlation_id: int = 77) -> object:
    return codecs.ListRecordingRequest(
        control_session_id=session, correlation_id=correlation_id, recording_id=recording_id
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
    lookups = _native.Lookups(codecs.ListRecordingRequest.TEMPLATE_ID, codecs.SCHEMA_ID)
    lookups.keep(3, responses.recording_descriptor(0, 0, bytes(96)))
    lookups.serve(SESSION, image.correlation_id, answer_stream)
    yield Rig(
        mailbox, lookups, requests, request_stream, answers, answer_stream, image.correlation_id
    )
    client.close()
    driver.close()


def test_what_is_kept_is_answered(rig: Rig) -> None:
    """The answer is what was kept, with the session and the correlation id of the request."""
    assert rig.ask(find(3)) == []
    assert rig.answered == [responses.recording_descriptor(SESSION, 77, bytes(96))]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(find(4), id="another recording"),
        pytest.param(find(3, session=6), id="another session"),
        pytest.param(
            codecs.StopPositionRequest(
                control_session_id=SESSION, correlation_id=77, recording_id=3
            ),
            id="another request",
        ),
        pytest.param(find(3).encode()[:31], id="cut short"),  # type: ignore[attr-defined]
        pytest.param(b"", id="empty"),
    ],
)
def test_other_requests_are_left_to_python(rig: Rig, request_: object) -> None:
    """Whatever is not known to have this answer arrives as an event."""
    assert len(rig.ask(request_)) == 1
    assert rig.answered == []


def test_what_is_forgotten_is_left_to_python(rig: Rig) -> None:
    """A recording that has changed, and a session that has to be asked, have no answer here."""
    rig.lookups.forget(3)
    assert len(rig.ask(find(3))) == 1
    rig.lookups.keep(3, responses.recording_descriptor(0, 0, bytes(64)))
    assert rig.ask(find(3)) == []
    assert rig.answered.pop() == responses.recording_descriptor(SESSION, 77, bytes(64))
    rig.lookups.leave(SESSION)
    assert len(rig.ask(find(3))) == 1
    assert rig.answered == []


def test_requests_of_another_stream_are_left_to_python(rig: Rig) -> None:
    """A session is served on the image that owns it, and on no other."""
    rig.lookups.serve(SESSION, rig.image_id + 1, rig.answer_stream)
    assert len(rig.ask(find(3))) == 1
    assert rig.answered == []


def test_an_answer_that_cannot_be_sent_is_left_to_python(rig: Rig) -> None:
    """Python decides what back pressure and a closed publication mean."""
    rig.answer_stream.close()
    assert len(rig.ask(find(3))) == 1


def test_requests_behind_one_for_python_wait_for_it(rig: Rig) -> None:
    """Answers keep the order of the requests."""
    for request in (find(4), find(3)):
        assert rig.request_stream.offer_within(request.encode(), SECOND_NS) > 0  # type: ignore[attr-defined]
    assert len(rig.mailbox.wait([rig.requests], SECOND_NS, 10, rig.lookups)) == 2
    assert rig.answers.poll(10) == []


def test_a_response_without_an_address_is_refused(rig: Rig) -> None:
    with pytest.raises(ValueError, match="24 bytes at least"):
        rig.lookups.keep(3, bytes(23))
