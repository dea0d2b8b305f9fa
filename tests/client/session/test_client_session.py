"""The session by itself, against scripted responses of an archive."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.daemon.scripted_session import (
    SESSION,
    ScriptedStreams,
    ask,
    descriptor,
    list_ids,
    ok,
    refusal,
    session_over,
)

from aerotape.client.replay.requests import ReplayTarget, start_replay
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.runtime import HEADER, Message
from aerotape.errors import AeronTimeoutError, ClosedError
from aerotape.waiting import run


def test_responses_to_others_are_ignored() -> None:
    """Responses to other requests and sessions are not used for this request."""
    streams = ScriptedStreams(
        lambda request: [
            codecs.Ping(control_session_id=SESSION),
            codecs.ControlResponse(control_session_id=SESSION, correlation_id=1, relevant_id=666),
            ok(request, 667, session=SESSION + 1),
            ok(request, 5),
        ]
    )
    assert ask(session_over(streams)) == 5


def test_a_late_response_is_dropped() -> None:
    """After a timeout, the late response is not used for the next request."""
    streams = ScriptedStreams()
    session = session_over(streams)
    with pytest.raises(
        AeronTimeoutError, match=r"cannot ask: no response .* within 0.05 s"
    ) as late:
        ask(session)
    assert "correlation id 101" in str(late.value)
    streams.push(ok(streams.requests[0], 666))
    streams.reply = lambda request: [ok(request, 5)]
    assert ask(session) == 5


def test_requests_of_threads_are_concurrent() -> None:
    """A pending request does not block the request of another thread."""
    streams = ScriptedStreams()
    session = session_over(streams, timeout_ns=20_000_000_000)
    answers: list[int] = []
    first = threading.Thread(target=lambda: answers.append(ask(session)))
    first.start()
    while not streams.requests:
        first.join(0.001)
    streams.reply = lambda request: [ok(request, 2)]
    assert ask(session) == 2
    assert first.is_alive()
    streams.push(ok(streams.requests[0], 1))
    first.join(10.0)
    assert answers == [1]


def test_the_replay_of_an_abandoned_request_is_stopped() -> None:
    """A replay that starts after its client timed out is stopped."""
    streams = ScriptedStreams()
    session = session_over(streams)
    with pytest.raises(AeronTimeoutError):
        run(start_replay(session, 3, ReplayTarget("aeron:ipc", 40)))
    streams.push(ok(streams.requests[0], 4711))
    session.service()
    assert isinstance(streams.requests[1], codecs.StopReplayRequest)
    assert streams.requests[1].replay_session_id == 4711
    streams.push(refusal(streams.requests[1].correlation_id, 6, "unknown replay"))
    session.service()
    assert session.take_errors() == []


def test_error_of_an_earlier_request_is_stored() -> None:
    """An error for another request does not fail this one; it is returned once, by its id."""
    streams = ScriptedStreams(lambda request: [refusal(55, 0, "replay failed"), ok(request, 1)])
    session = session_over(streams)
    assert ask(session) == 1
    assert session.take_error(56) is None
    error = session.take_error(55)
    assert error is not None
    assert "replay failed" in str(error)
    assert session.take_error(55) is None
    assert session.take_errors() == []


def test_unknown_messages_are_skipped() -> None:
    """Unknown templates, as of a newer archive, are ignored."""
    unknown = HEADER.pack(8, 999, codecs.SCHEMA_ID, 99) + bytes(8)
    session = session_over(ScriptedStreams(lambda request: [unknown, ok(request, 1)]))
    assert ask(session) == 1
    assert session.take_errors() == []


@pytest.mark.parametrize(
    "garbage", [b"", b"short", HEADER.pack(8, 1, 4711, 1) + bytes(8), HEADER.pack(32, 1, 101, 14)]
)
def test_unreadable_messages_are_reported(garbage: bytes) -> None:
    """A malformed message becomes an error that can be polled; the session continues."""
    session = session_over(ScriptedStreams(lambda request: [garbage, ok(request, 1)]))
    assert ask(session) == 1
    (error,) = session.take_errors()
    assert "invalid message" in str(error)


def test_archive_that_does_not_read() -> None:
    """Back pressure for the whole timeout raises a timeout, and the session stays usable."""
    streams = ScriptedStreams(lambda request: [ok(request)])
    streams.offer_result = -2
    session = session_over(streams)
    with pytest.raises(AeronTimeoutError, match="back pressure"):
        ask(session)
    with pytest.raises(AeronTimeoutError, match="back pressure"):
        list_ids(session, 1)
    assert not session.has_pending
    streams.offer_result = 64
    assert ask(session) == 0


@pytest.mark.parametrize("result", [-1, -4, -5])
def test_request_stream_that_has_ended(result: int) -> None:
    """The session closes when its request stream has no subscriber, is closed or is used up."""
    streams = ScriptedStreams()
    streams.offer_result = result
    session = session_over(streams)
    with pytest.raises(ClosedError, match="went away"):
        ask(session)
    assert session.is_closed


def test_response_stream_that_has_ended() -> None:
    """The loss of the archive during a request is detected before the timeout."""
    streams = ScriptedStreams()
    streams.is_connected = False
    session = session_over(streams, timeout_ns=3_600_000_000_000)
    with pytest.raises(ClosedError, match="response stream has ended"):
        ask(session)
    with pytest.raises(ClosedError, match=r"cannot ask: the archive .* went away"):
        ask(session)


def test_descriptors_in_any_grouping() -> None:
    """A listing returns its own descriptors only, up to the count or the end of the list."""

    def reply(request: Any) -> list[Message]:
        of_another = descriptor(666, request)
        of_another.correlation_id -= 1
        end = refusal(request.correlation_id, 3, "")
        end.code = codecs.ControlResponseCode.RECORDING_UNKNOWN
        return [descriptor(1, request), of_another, descriptor(2, request), end]

    session = session_over(ScriptedStreams(reply))
    assert list_ids(session, 5) == [1, 2]
    assert list_ids(session, 2) == [1, 2]


def test_listing_after_an_interrupted_one() -> None:
    """A listing waits until the archive has completed an abandoned one."""
    is_through = threading.Event()

    def reply(request: Any) -> list[Message]:
        if len(streams.requests) > 1:
            assert is_through.is_set()
        return [descriptor(1, request)]

    streams = ScriptedStreams(reply)
    session = session_over(streams)
    with pytest.raises(AeronTimeoutError):
        list_ids(session, 2)
    first = streams.requests[0]

    def end_the_first() -> None:
        is_through.set()
        streams.push(descriptor(666, first))

    timer = threading.Timer(0.02, end_the_first)
    timer.start()
    assert list_ids(session, 1) == [1]
    timer.join()
    assert list_ids(session, 1) == [1]
    assert session.take_errors() == []


def test_close_sends_one_request() -> None:
    """Closing twice sends one CloseSessionRequest and closes both streams."""
    streams = ScriptedStreams()
    session = session_over(streams)
    session.close()
    session.close()
    assert streams.requests == [codecs.CloseSessionRequest(control_session_id=SESSION)]
    assert streams.is_closed
