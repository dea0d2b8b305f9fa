"""The control session by itself, with an archive that misbehaves: a script instead of a peer."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import pytest

from aerotape import errors
from aerotape.archive.client.executors.blocking import BlockingRequests, run_pauses
from aerotape.archive.client.executors.polling import PollingExecutor
from aerotape.archive.client.requests.replays import start_replay_for_reader
from aerotape.archive.client.requests.request import Call, Listing, Steps, relevant_id
from aerotape.archive.client.session import handshake
from aerotape.archive.client.session.control_session import ControlSession
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.runtime import HEADER, Message
from aerotape.errors import AeronTimeoutError, ArchiveError, ClosedError
from aerotape.protocol import PROTOCOL_VERSION, ErrorCode, semantic_version

SESSION = 77
Reply = Callable[[Any], Iterable[Message | bytes]]


class ScriptedStreams:
    """Both streams of a session and the Aeron client; `reply` says what a request brings."""

    channel = "aeron:ipc"
    stream_id = 10
    session_id = 5
    is_closed = False
    request_channel = ""

    def __init__(self, reply: Reply = lambda request: ()) -> None:
        self.reply = reply
        self.requests: list[Any] = []
        self.responses: list[bytes] = []
        self.is_connected = True
        self.offer_result = 64
        self._last_correlation_id = 100

    def next_correlation_id(self) -> int:
        self._last_correlation_id += 1
        return self._last_correlation_id

    def offer(self, data: bytes, reserved_value: int = 0) -> int:
        if self.offer_result > 0:
            self.requests.append(codecs.decode(data))
            if not isinstance(self.requests[-1], codecs.CloseSessionRequest):
                self.push(*self.reply(self.requests[-1]))
        return self.offer_result

    def offer_within(self, data: bytes, timeout_ns: int, reserved_value: int = 0) -> int:
        return self.offer(data)

    def push(self, *messages: Message | bytes) -> None:
        self.responses += [m if isinstance(m, bytes) else m.encode() for m in messages]

    def poll(self, fragment_limit: int, timeout_ns: int) -> list[tuple[bytes]]:
        taken, self.responses = self.responses, []
        return [(payload,) for payload in taken]

    def async_add_subscription(self, channel: str, stream_id: int) -> Added:
        self.channel = channel
        return Added(self)

    def async_add_exclusive_publication(self, channel: str, stream_id: int) -> Added:
        self.request_channel = channel
        return Added(self)

    def close(self) -> None:
        self.is_closed = True


class Added(NamedTuple):
    """An add that the driver has performed."""

    streams: ScriptedStreams

    def poll(self) -> ScriptedStreams:
        return self.streams


def _session(streams: ScriptedStreams, timeout_ns: int = 50_000_000) -> ControlSession:
    fake: Any = streams
    session = ControlSession(fake, fake, fake, timeout_ns)
    session.control_session_id = SESSION
    return session


def _ok(request: Any, relevant_id: int = 0, session: int = SESSION) -> codecs.ControlResponse:
    return codecs.ControlResponse(
        control_session_id=session, correlation_id=request.correlation_id, relevant_id=relevant_id
    )


def _error(correlation_id: int, code: int, text: str) -> codecs.ControlResponse:
    return codecs.ControlResponse(
        control_session_id=SESSION,
        correlation_id=correlation_id,
        relevant_id=code,
        code=codecs.ControlResponseCode.ERROR,
        error_message=text,
    )


def _ask(session: ControlSession) -> int:
    request = codecs.StopPositionRequest(recording_id=3)
    return BlockingRequests(session)._perform(Call(request, "ask", relevant_id))


def _list(session: ControlSession, count: int) -> list[int]:
    found = BlockingRequests(session)._list(Listing(codecs.ListRecordingsRequest(), "list", count))
    return [each.recording_id for each in found if isinstance(each, codecs.RecordingDescriptor)]


def test_request_carries_the_session() -> None:
    """The session id and a fresh correlation id are put into each request."""
    streams = ScriptedStreams(lambda request: [_ok(request, request.correlation_id * 2)])
    session = _session(streams)
    assert (_ask(session), _ask(session)) == (202, 204)
    assert [(r.control_session_id, r.correlation_id, r.recording_id) for r in streams.requests] == [
        (SESSION, 101, 3),
        (SESSION, 102, 3),
    ]


def test_other_answers_are_not_taken() -> None:
    """Answers to other requests and of other sessions do not answer this one."""
    streams = ScriptedStreams(
        lambda request: [
            codecs.Ping(control_session_id=SESSION),
            codecs.ControlResponse(control_session_id=SESSION, correlation_id=1, relevant_id=666),
            _ok(request, 667, session=SESSION + 1),
            _ok(request, 5),
        ]
    )
    assert _ask(_session(streams)) == 5


def test_late_answer_is_dropped() -> None:
    """After a timeout, the answer that comes at last is not taken for that of the next request."""
    streams = ScriptedStreams()
    session = _session(streams)
    with pytest.raises(
        AeronTimeoutError, match=r"cannot ask: no response .* within 0.05 s"
    ) as late:
        _ask(session)
    assert "correlation id 101" in str(late.value)
    streams.push(_ok(streams.requests[0], 666))
    streams.reply = lambda request: [_ok(request, 5)]
    assert _ask(session) == 5


def test_error_answer() -> None:
    """An error raises ArchiveError with code and id; an unknown code is no obstacle."""
    streams = ScriptedStreams(lambda request: [_error(request.correlation_id, 5, "no such")])
    with pytest.raises(ArchiveError, match=r"cannot ask: no such \(error code 5 UNKNOWN_REC") as e:
        _ask(_session(streams))
    assert (e.value.error_code, e.value.correlation_id) == (5, 101)
    streams.reply = lambda request: [_error(request.correlation_id, 99, "new")]
    with pytest.raises(ArchiveError, match="error code 99 unknown"):
        _ask(_session(streams))


CLASSES = {
    ErrorCode.GENERIC: errors.ArchiveError,
    ErrorCode.ACTIVE_LISTING: errors.ActiveListingError,
    ErrorCode.ACTIVE_RECORDING: errors.ActiveRecordingError,
    ErrorCode.ACTIVE_SUBSCRIPTION: errors.ActiveSubscriptionError,
    ErrorCode.UNKNOWN_SUBSCRIPTION: errors.UnknownSubscriptionError,
    ErrorCode.UNKNOWN_RECORDING: errors.UnknownRecordingError,
    ErrorCode.UNKNOWN_REPLAY: errors.UnknownReplayError,
    ErrorCode.MAX_REPLAYS: errors.LimitError,
    ErrorCode.MAX_RECORDINGS: errors.LimitError,
    ErrorCode.INVALID_EXTENSION: errors.InvalidExtensionError,
    ErrorCode.AUTHENTICATION_REJECTED: errors.AuthenticationError,
    ErrorCode.STORAGE_SPACE: errors.StorageSpaceError,
    ErrorCode.UNKNOWN_REPLICATION: errors.UnknownReplicationError,
    ErrorCode.UNAUTHORISED_ACTION: errors.UnauthorisedError,
    ErrorCode.REPLICATION_CONNECTION_FAILURE: errors.ReplicationConnectionError,
    ErrorCode.EMPTY_RECORDING: errors.EmptyRecordingError,
    ErrorCode.INVALID_POSITION: errors.InvalidPositionError,
}


@pytest.mark.parametrize("code", ErrorCode)
def test_each_code_has_its_class(code: ErrorCode) -> None:
    """The class of an error tells the code, and the code is there too."""
    streams = ScriptedStreams(lambda request: [_error(request.correlation_id, code, "no")])
    with pytest.raises(ArchiveError, match=f"cannot ask: no .error code {code:d} {code.name}") as e:
        _ask(_session(streams))
    assert type(e.value) is CLASSES[code]
    assert (e.value.error_code, e.value.correlation_id) == (code, 101)
    if isinstance(e.value, errors.UnknownRecordingError):
        assert e.value.recording_id == 3


def test_requests_are_under_way_together() -> None:
    """A request that is not answered does not keep another thread's from being."""
    streams = ScriptedStreams()
    session = _session(streams, timeout_ns=20_000_000_000)
    answers: list[int] = []
    first = threading.Thread(target=lambda: answers.append(_ask(session)))
    first.start()
    while not streams.requests:
        first.join(0.001)
    streams.reply = lambda request: [_ok(request, 2)]
    assert _ask(session) == 2
    assert first.is_alive()
    streams.push(_ok(streams.requests[0], 1))
    first.join(10.0)
    assert answers == [1]


def test_interrupted_replay_request_is_taken_back() -> None:
    """When the answer to an abandoned request comes, what it has begun is ended."""
    streams = ScriptedStreams()
    session = _session(streams)
    start = start_replay_for_reader(codecs.ReplayRequest(), 3, "aeron:ipc", 40)
    with pytest.raises(AeronTimeoutError):
        BlockingRequests(session)._perform(start)
    streams.push(_ok(streams.requests[0], 4711))
    session.service()
    assert isinstance(streams.requests[1], codecs.StopReplayRequest)
    assert streams.requests[1].replay_session_id == 4711
    streams.push(_error(streams.requests[1].correlation_id, 6, "unknown replay"))
    session.service()
    assert session.take_errors() == []


def test_error_of_an_earlier_request_is_kept() -> None:
    """An error for another request does not fail this one, and can be had by its id, once."""
    streams = ScriptedStreams(lambda request: [_error(55, 0, "replay failed"), _ok(request, 1)])
    session = _session(streams)
    assert _ask(session) == 1
    assert session.take_error(56) is None
    error = session.take_error(55)
    assert error is not None
    assert "replay failed" in str(error)
    assert session.take_error(55) is None
    assert session.take_errors() == []


def test_unknown_messages_are_skipped() -> None:
    """What a newer archive may send does not disturb."""
    unknown = HEADER.pack(8, 999, codecs.SCHEMA_ID, 99) + bytes(8)
    session = _session(ScriptedStreams(lambda request: [unknown, _ok(request, 1)]))
    assert _ask(session) == 1
    assert session.take_errors() == []


@pytest.mark.parametrize(
    "garbage", [b"", b"short", HEADER.pack(8, 1, 4711, 1) + bytes(8), HEADER.pack(32, 1, 101, 14)]
)
def test_unreadable_messages_are_reported(garbage: bytes) -> None:
    """What is no message of the archive's schema is an error to be polled, not the end."""
    session = _session(ScriptedStreams(lambda request: [garbage, _ok(request, 1)]))
    assert _ask(session) == 1
    (error,) = session.take_errors()
    assert "invalid message" in str(error)


def test_unexpected_code() -> None:
    """A code that does not belong to the request is an error that names it."""
    response = codecs.ControlResponse(
        control_session_id=SESSION,
        correlation_id=101,
        code=codecs.ControlResponseCode.SUBSCRIPTION_UNKNOWN,
    )
    with pytest.raises(ArchiveError, match="SUBSCRIPTION_UNKNOWN"):
        _ask(_session(ScriptedStreams(lambda request: [response])))


def test_archive_that_does_not_read() -> None:
    """Back pressure for the whole timeout is a timeout, and the session stays usable."""
    streams = ScriptedStreams(lambda request: [_ok(request)])
    streams.offer_result = -2
    session = _session(streams)
    with pytest.raises(AeronTimeoutError, match="back pressure"):
        _ask(session)
    with pytest.raises(AeronTimeoutError, match="back pressure"):
        _list(session, 1)
    assert session.unfinished_listing is None
    assert not session.has_pending
    streams.offer_result = 64
    assert _ask(session) == 0


@pytest.mark.parametrize("result", [-1, -4, -5])
def test_request_stream_that_has_ended(result: int) -> None:
    """A request stream without subscriber, closed or used up closes the session."""
    streams = ScriptedStreams()
    streams.offer_result = result
    session = _session(streams)
    with pytest.raises(ClosedError, match="went away"):
        _ask(session)
    assert session.is_closed


def test_response_stream_that_has_ended() -> None:
    """An archive that goes away during a request is noticed before the timeout."""
    streams = ScriptedStreams()
    streams.is_connected = False
    session = _session(streams, timeout_ns=3_600_000_000_000)
    with pytest.raises(ClosedError, match="response stream has ended"):
        _ask(session)
    with pytest.raises(ClosedError, match=r"cannot ask: the archive .* went away"):
        _ask(session)


def test_descriptors_in_any_grouping() -> None:
    """A listing takes its own descriptors only, up to the count or to the end of the list."""

    def reply(request: Any) -> list[Message]:
        def descriptor(recording_id: int, correlation_id: int) -> codecs.RecordingDescriptor:
            return codecs.RecordingDescriptor(
                control_session_id=SESSION,
                correlation_id=correlation_id,
                recording_id=recording_id,
            )

        return [
            descriptor(1, request.correlation_id),
            descriptor(666, request.correlation_id - 1),
            descriptor(2, request.correlation_id),
            codecs.ControlResponse(
                control_session_id=SESSION,
                correlation_id=request.correlation_id,
                relevant_id=3,
                code=codecs.ControlResponseCode.RECORDING_UNKNOWN,
            ),
        ]

    session = _session(ScriptedStreams(reply))
    assert _list(session, 5) == [1, 2]
    assert _list(session, 2) == [1, 2]


def test_listing_after_an_interrupted_one() -> None:
    """A listing waits until the archive is through with one that was given up."""
    is_through = threading.Event()

    def reply(request: Any) -> list[Message]:
        if len(streams.requests) > 1:
            assert is_through.is_set()
        return [_descriptor(1, request)]

    streams = ScriptedStreams(reply)
    session = _session(streams)
    with pytest.raises(AeronTimeoutError):
        _list(session, 2)
    first = streams.requests[0]

    def end_the_first() -> None:
        is_through.set()
        streams.push(_descriptor(666, first))

    timer = threading.Timer(0.02, end_the_first)
    timer.start()
    assert _list(session, 1) == [1]
    timer.join()
    assert _list(session, 1) == [1]
    assert session.take_errors() == []


def _descriptor(recording_id: int, request: Any) -> codecs.RecordingDescriptor:
    return codecs.RecordingDescriptor(
        control_session_id=SESSION,
        correlation_id=request.correlation_id,
        recording_id=recording_id,
    )


class Interrupt(BaseException):
    """What a signal's handler raises."""


def _interrupted(call: Callable[[], object], line: int, *functions: str) -> bool:
    """Interrupt a call before a line of these functions, counted as run; whether it was.

    It is called by a generator: what is raised where an `except` clause ends leaves the interpreter
    handling that clause's exception, and of a generator only until it is left. Else every later
    error of this thread, in whatever test, would have that exception as its context.
    """
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name not in functions:
            return None
        if event == "line" and next(lines) == line:
            raise Interrupt
        return trace

    def traced_call() -> Iterator[bool]:
        was_interrupted = False
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except Interrupt:
            was_interrupted = True
        finally:
            sys.settrace(before)
        yield was_interrupted

    was_interrupted = next(traced_call())
    assert sys.exc_info() == (None, None, None)
    return was_interrupted


def test_an_interrupt_at_any_moment_costs_no_answer() -> None:
    """What has been read is sorted by who reads next: each answer reaches its request, once."""
    for line in itertools.count(1):
        streams = ScriptedStreams()
        session = _session(streams)
        listing, _ = session.begin(codecs.ListRecordingsRequest(), "list", 3)
        asked, _ = session.begin(codecs.StopPositionRequest(), "ask")
        answer = _ok(asked, 5)
        descriptors = [_descriptor(each, listing) for each in range(3)]
        streams.push(descriptors[0], b"garbage", answer, *descriptors[1:])
        was_interrupted = _interrupted(
            lambda session=session: session.read(0),  # type: ignore[misc]
            line,
            "take",
            "_sort_arrived",
            "_sort",
            "_decode",
        )
        session.read(0)
        assert [each.recording_id for each in listing.items] == [0, 1, 2], line  # type: ignore[union-attr]
        assert listing.is_done
        assert asked.response() == answer
        assert not session.has_pending
        # What could not be read may be told twice, but is told.
        assert len({str(each) for each in session.take_errors()}) == 1
        if not was_interrupted:
            break
    assert line > 40


def test_an_interrupted_reader_leaves_the_stream_to_others() -> None:
    """Whoever reads next need not wait for it."""
    streams = ScriptedStreams()
    session = _session(streams, 60_000_000_000)
    asked, _ = session.begin(codecs.StopPositionRequest(), "ask")
    streams.push(_ok(asked, 5))
    assert _interrupted(lambda: session.read(0), 1, "_sort_arrived")
    other = threading.Thread(target=session.read, args=(60_000_000_000,))
    other.start()
    other.join(30)
    assert not other.is_alive()
    assert asked.is_done


def test_listing_that_is_refused() -> None:
    """An error ends a listing at once."""
    streams = ScriptedStreams(lambda request: [_error(request.correlation_id, 1, "busy")])
    with pytest.raises(ArchiveError, match="busy"):
        _list(_session(streams), 5)


def test_signals_are_kept_between_requests() -> None:
    """Signals that come while something else is awaited wait to be taken."""
    signal = codecs.RecordingSignalEvent(
        control_session_id=SESSION, recording_id=4, signal=codecs.RecordingSignal.STOP
    )
    of_another = codecs.RecordingSignalEvent(control_session_id=SESSION + 1)
    session = _session(ScriptedStreams(lambda request: [signal, of_another, _ok(request)]))
    _ask(session)
    (taken,) = session.signals.take_all()
    assert (taken.recording_id, taken.signal) == (4, codecs.RecordingSignal.STOP)
    assert session.signals.take_all() == []


def test_service_leaves_a_busy_session_alone() -> None:
    """Nobody reads the response stream while a request waits in another thread."""
    streams = ScriptedStreams()
    session = _session(streams, timeout_ns=200_000_000)
    is_waiting = threading.Event()
    streams.reply = lambda request: is_waiting.set() or ()  # type: ignore[func-returns-value]
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            _ask(session)
        except AeronTimeoutError as error:
            failures.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    assert is_waiting.wait(5.0)
    session.service()
    asker.join()
    assert len(failures) == 1


def test_close_says_goodbye_once() -> None:
    """Closing tells the archive which session ends and closes both streams."""
    streams = ScriptedStreams()
    session = _session(streams)
    session.close()
    session.close()
    assert streams.requests == [codecs.CloseSessionRequest(control_session_id=SESSION)]
    assert streams.is_closed


# ---- the handshake -----------------------------------------------------------------------------


Opening = Steps[tuple[ControlSession, int]]
Perform = Callable[[Opening], tuple[ControlSession, int]]


def _poll(opening: Opening) -> tuple[ControlSession, int]:
    executor = PollingExecutor(opening)
    while not executor.is_done:
        executor.advance()
    return executor.result


def _open(
    reply: Reply,
    on_challenge: Callable[[bytes], bytes] | None = None,
    perform: Perform = run_pauses,
) -> tuple[ScriptedStreams, ControlSession, int]:
    streams = ScriptedStreams(reply)
    fake: Any = streams
    opening = handshake.open_session(
        fake,
        request_channel="aeron:ipc",
        request_stream_id=10,
        response_channel="aeron:ipc",
        response_stream_id=20,
        timeout_ns=50_000_000,
        credentials=b"open",
        on_challenge=on_challenge,
        client_name="tester",
    )
    session, archive_id = perform(opening)
    return streams, session, archive_id


def _granted(request: Any, version: int = PROTOCOL_VERSION) -> list[Message]:
    if isinstance(request, codecs.AuthConnectRequest | codecs.ChallengeResponse):
        return [
            codecs.ControlResponse(
                control_session_id=SESSION,
                correlation_id=request.correlation_id,
                relevant_id=SESSION,
                version=version,
            )
        ]
    return [_ok(request, 4242)] if isinstance(request, codecs.ArchiveIdRequest) else []


@pytest.mark.parametrize("perform", [run_pauses, _poll])
def test_handshake(perform: Perform) -> None:
    """The connect request has version, response channel and name; then the id is requested."""
    streams, session, archive_id = _open(_granted, perform=perform)
    assert archive_id == 4242
    assert session.control_session_id == SESSION
    connect, ask_id = streams.requests
    assert connect.version == PROTOCOL_VERSION
    assert connect.response_stream_id == 20
    assert connect.response_channel.startswith("aeron:ipc?")
    assert "|session-id=" in connect.response_channel
    assert connect.response_channel == streams.request_channel
    assert connect.encoded_credentials == b"open"
    assert connect.client_info.startswith("name=tester version=")
    assert ask_id.control_session_id == SESSION


def test_archive_without_an_id() -> None:
    """An archive too old to have an id is sent a keep-alive instead of the question."""
    streams, _, archive_id = _open(lambda r: _granted(r, semantic_version(1, 10, 0)))
    assert archive_id == -1
    assert isinstance(streams.requests[1], codecs.KeepAliveRequest)
    assert streams.requests[1].control_session_id == SESSION


def test_archive_of_another_protocol() -> None:
    """Another major version is refused, naming both."""
    with pytest.raises(ArchiveError, match=r"protocol version 2\.0\.0, this client 1\.x"):
        _open(lambda r: _granted(r, semantic_version(2, 0, 0)))


def test_connect_refused() -> None:
    """The archive's reason for refusing a connection comes out."""
    with pytest.raises(ArchiveError, match="cannot connect: wrong password") as caught:
        _open(lambda request: [_error(request.correlation_id, 10, "wrong password")])
    assert caught.value.error_code == 10


def test_connect_unanswered() -> None:
    """An archive that takes the connect request and does not answer it is a timeout."""
    with pytest.raises(AeronTimeoutError, match="cannot connect: no response"):
        _open(lambda request: [])


def _challenging(request: Any) -> list[Message]:
    if isinstance(request, codecs.AuthConnectRequest):
        return [
            codecs.Challenge(
                control_session_id=SESSION,
                correlation_id=request.correlation_id,
                encoded_challenge=b"who?",
            )
        ]
    return _granted(request)


def test_challenge() -> None:
    """A challenge is answered with what the caller's function makes of it."""
    streams, session, archive_id = _open(_challenging, lambda challenge: b"me, " + challenge)
    assert archive_id == 4242
    assert session.control_session_id == SESSION
    answer = streams.requests[1]
    assert isinstance(answer, codecs.ChallengeResponse)
    assert (answer.control_session_id, answer.encoded_credentials) == (SESSION, b"me, who?")


def test_challenge_without_an_answer() -> None:
    """Without a function for it, a challenge is an error that says what to give."""
    with pytest.raises(ArchiveError, match="on_challenge"):
        _open(_challenging)
