"""The handshake: connect request, version, archive id and challenge, against scripted responses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.daemon.scripted_session import SESSION, Reply, ScriptedStreams, ok, refusal

from aerotape.client.credentials import Login, UserSecret
from aerotape.client.session import handshake
from aerotape.client.session.client_session import ClientSession
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.runtime import Message
from aerotape.errors import AeronTimeoutError, ArchiveError
from aerotape.protocol import KNOWS_LEDGERS, PROTOCOL_VERSION, semantic_version
from aerotape.waiting import Running, Task, run

Opening = Task[ClientSession]
Perform = Callable[[Opening], ClientSession]


def _poll(opening: Opening) -> ClientSession:
    executor = Running(opening)
    while not executor.is_done:
        executor.advance()
    return executor.result


def _open(
    reply: Reply,
    on_challenge: Callable[[bytes], bytes] | None = None,
    perform: Perform = run,
) -> tuple[ScriptedStreams, ClientSession]:
    streams = ScriptedStreams(reply)
    return streams, perform(_opening(streams, on_challenge))


def _opening(
    streams: Any,
    on_challenge: Callable[[bytes], bytes] | None = None,
    timeout_ns: int = 50_000_000,
    login: Login | None = None,
) -> Opening:
    return handshake.open_session(
        streams,
        request_channel="aeron:ipc",
        request_stream_id=10,
        response_channel="aeron:ipc",
        response_stream_id=20,
        timeout_ns=timeout_ns,
        login=login or Login(b"open", on_challenge),
        client_name="tester",
    )


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
    return [ok(request, 4242)] if isinstance(request, codecs.ArchiveIdRequest) else []


@pytest.mark.parametrize("perform", [run, _poll])
def test_handshake(perform: Perform) -> None:
    """The connect request has version, response channel and name; then the id is requested."""
    streams, session = _open(_granted, perform=perform)
    assert session.archive_id == 4242
    assert session.control_session_id == SESSION
    connect, ask_id = streams.requests
    assert connect.version == PROTOCOL_VERSION | KNOWS_LEDGERS
    assert not session.knows_ledgers
    assert connect.response_stream_id == 20
    assert connect.response_channel.startswith("aeron:ipc?")
    assert "|session-id=" in connect.response_channel
    assert connect.response_channel == streams.request_channel
    assert connect.encoded_credentials == b"open"
    assert connect.client_info.startswith("name=tester version=")
    assert ask_id.control_session_id == SESSION


def test_archive_that_knows_ledgers() -> None:
    """An archive says so by a bit that is not one of its version."""
    _, session = _open(lambda r: _granted(r, PROTOCOL_VERSION | KNOWS_LEDGERS))
    assert session.knows_ledgers
    assert session.archive_version == PROTOCOL_VERSION
    assert session.archive_id == 4242


def test_archive_without_an_id() -> None:
    """An archive too old to have an id receives a keep-alive instead of the request for it."""
    streams, session = _open(lambda r: _granted(r, semantic_version(1, 10, 0)))
    assert session.archive_id == -1
    assert isinstance(streams.requests[1], codecs.KeepAliveRequest)
    assert streams.requests[1].control_session_id == SESSION


def test_archive_of_another_protocol_version() -> None:
    """Another major version is refused; the error names both versions."""
    with pytest.raises(ArchiveError, match=r"protocol version 2\.0\.0, this client 1\.x"):
        _open(lambda r: _granted(r, semantic_version(2, 0, 0)))


def test_connect_refused() -> None:
    """A refused connect raises the archive's reason and code."""
    with pytest.raises(ArchiveError, match="cannot connect: wrong password") as caught:
        _open(lambda request: [refusal(request.correlation_id, 10, "wrong password")])
    assert caught.value.error_code == 10


def test_connect_unanswered() -> None:
    """A connect request without a response times out."""
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
    """The response to a challenge is the result of the caller's function."""
    streams, session = _open(_challenging, lambda challenge: b"me, " + challenge)
    assert session.archive_id == 4242
    assert session.control_session_id == SESSION
    answer = streams.requests[1]
    assert isinstance(answer, codecs.ChallengeResponse)
    assert (answer.control_session_id, answer.encoded_credentials) == (SESSION, b"me, who?")


def test_a_challenge_is_answered_in_another_thread() -> None:
    """Whoever advances the handshake is not blocked by the function of the response."""
    may_answer, asked = threading.Event(), threading.Event()

    def answering(challenge: bytes) -> bytes:
        asked.set()
        may_answer.wait(20)
        return b"me, " + challenge

    streams = ScriptedStreams(_challenging)
    opening = Running(_opening(streams, answering, timeout_ns=20_000_000_000))
    while not asked.is_set():
        opening.advance()
    for _ in range(10):
        opening.advance()
    assert not opening.is_done and len(streams.requests) == 1
    may_answer.set()
    while not opening.is_done:
        opening.advance()
    assert streams.requests[1].encoded_credentials == b"me, who?"
    assert opening.result.control_session_id == SESSION


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_an_error_of_the_function_is_raised(error: type[BaseException]) -> None:
    """It ends the handshake, and the session is closed."""

    def failing(_: bytes) -> bytes:
        raise error("no secret")

    streams = ScriptedStreams(_challenging)
    with pytest.raises(error, match="no secret"):
        run(_opening(streams, failing))
    assert streams.is_closed


def test_a_function_that_does_not_return_is_not_awaited() -> None:
    """The handshake ends at its timeout."""
    forever = threading.Event()
    streams = ScriptedStreams(_challenging)
    with pytest.raises(AeronTimeoutError, match="credentials were not computed in time"):
        run(_opening(streams, lambda _: bytes(forever.wait(20))))
    forever.set()
    assert streams.is_closed


def test_a_host_name_that_is_not_resolved_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the channel, not the credentials."""
    forever = threading.Event()
    monkeypatch.setattr(handshake, "with_signed_address", lambda _: forever.wait(20))
    login = Login.of(UserSecret("me", b"secret"))
    with pytest.raises(AeronTimeoutError, match="endpoint of aeron:ipc was not resolved in time"):
        run(_opening(ScriptedStreams(_challenging), login=login))
    forever.set()


def test_challenge_without_a_function() -> None:
    """Without a function for it, a challenge is an error that names the argument."""
    with pytest.raises(ArchiveError, match="on_challenge"):
        _open(_challenging)
