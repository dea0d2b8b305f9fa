"""A control session over scripted streams: a function supplies the archive's responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from aerotape.client.session.client_session import ClientSession
from aerotape.client.session.exchange import exchange, list_items
from aerotape.client.session.request import Call, Listing, relevant_id
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.runtime import Message
from aerotape.waiting import run

SESSION = 77
Reply = Callable[[Any], Iterable[Message | bytes]]


class ScriptedStreams:
    """Both streams of a session and the Aeron client; `reply` returns the responses."""

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


def session_over(streams: ScriptedStreams, timeout_ns: int = 50_000_000) -> ClientSession:
    """Return an open session over the streams."""
    fake: Any = streams
    session = ClientSession(fake, fake, fake, timeout_ns)
    session.control_session_id = SESSION
    return session


def ok(request: Any, relevant_id: int = 0, session: int = SESSION) -> codecs.ControlResponse:
    """Return an OK response to a request."""
    return codecs.ControlResponse(
        control_session_id=session, correlation_id=request.correlation_id, relevant_id=relevant_id
    )


def refusal(correlation_id: int, code: int, text: str) -> codecs.ControlResponse:
    """Return an error response."""
    return codecs.ControlResponse(
        control_session_id=SESSION,
        correlation_id=correlation_id,
        relevant_id=code,
        code=codecs.ControlResponseCode.ERROR,
        error_message=text,
    )


def descriptor(recording_id: int, request: Any) -> codecs.RecordingDescriptor:
    """Return an item of a listing."""
    return codecs.RecordingDescriptor(
        control_session_id=SESSION,
        correlation_id=request.correlation_id,
        recording_id=recording_id,
    )


def ask(session: ClientSession) -> int:
    """Perform a request with the text "ask"; return the relevant id of its response."""
    request = codecs.StopPositionRequest(recording_id=3)
    return run(exchange(session, Call(request, "ask", relevant_id)))


def list_ids(session: ClientSession, count: int) -> list[int]:
    """Perform a listing of recordings; return their ids."""
    found = run(list_items(session, Listing(codecs.ListRecordingsRequest(), "list", count)))
    return [each.recording_id for each in found if isinstance(each, codecs.RecordingDescriptor)]
