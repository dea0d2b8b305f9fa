"""Authentication and authorisation by plug-ins: the same guard has the same effect in both
archives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.authenticator import READS
from support.daemon.control_rig import RawClient, await_true, control_session_counters
from support.jvm.java import JavaArchiveException, JavaClient, free_port

import aerotape
from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.protocol import ErrorCode

AUTHENTICATOR = "aeron.archive.authenticator.supplier"
AUTHORISATION = "aeron.archive.authorisation.service.supplier"
SUPPLIERS = {
    "aerotape": {
        AUTHENTICATOR: "support.daemon.authenticator:Guard",
        AUTHORISATION: "support.daemon.authenticator:Actions",
    },
    "java": {AUTHENTICATOR: "harness.Guard", AUTHORISATION: "harness.Guard$Actions"},
}
# One test waits for the timeout; for the others it must be long enough on a busy machine.
CONNECT_TIMEOUT = {"aeron.archive.connect.timeout": "3s"}
_streams = itertools.count(900)


@pytest.fixture(scope="module", params=KINDS)
def guarded(request: pytest.FixtureRequest, run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Each archive, with the guard."""
    with run_archive(request.param, {**SUPPLIERS[request.param], **CONNECT_TIMEOUT}) as archive:
        yield archive


@pytest.fixture(scope="module")
def own_guarded(run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Our archive with the guard."""
    with run_archive("aerotape", {**SUPPLIERS["aerotape"], **CONNECT_TIMEOUT}) as archive:
        yield archive


@pytest.fixture(scope="module")
def java(guarded: Any) -> Iterator[JavaClient]:
    """A Java client on the driver of the guarded archive."""
    with JavaClient(guarded.aeron_dir) as client:
        yield client


@pytest.fixture
def aeron(guarded: Any) -> Iterator[_native.AeronClient]:
    """An Aeron client for raw ones."""
    client = _native.AeronClient(str(guarded.aeron_dir))
    yield client
    client.close()


def raw_client(aeron: _native.AeronClient) -> RawClient:
    """A raw client, not connected yet."""
    return RawClient(aeron, "aeron:ipc?term-length=64k", response_stream_id=next(_streams))


@pytest.mark.jvm
def test_java_client_connects(guarded: Any, java: JavaClient) -> None:
    """By its credentials, or by its response to a challenge; its requests are served."""
    for name in ("open:alice", "ask:bob"):
        java.connect(guarded.control_channel, credentials=name, challengeAnswer="it is bob")
        assert java.call("listRecordings", 0, 10) == []


@pytest.mark.jvm
def test_java_client_connects_by_its_credentials(guarded: Any, java: JavaClient) -> None:
    """The credentials of the connect request are accepted, and the client's requests are served."""
    java.connect(guarded.control_channel, credentials="open:alice")
    assert java.call("listRecordings", 0, 10) == []


@pytest.mark.jvm
def test_java_client_connects_by_its_response(guarded: Any, java: JavaClient) -> None:
    """The challenge is sent to the client, and its response to the authenticator."""
    java.connect(guarded.control_channel, credentials="ask:bob", challengeAnswer="it is bob")
    assert java.call("listRecordings", 0, 10) == []


@pytest.mark.jvm
@pytest.mark.parametrize(
    "credentials",
    [
        {"credentials": "open sesame"},
        {"credentials": "ask:bob", "challengeAnswer": "it is alice"},
        {"credentials": "ask:bob", "challengeAnswer": "%s"},
        {"credentials": ""},
    ],
)
def test_java_client_is_refused(
    guarded: Any, java: JavaClient, credentials: dict[str, Any]
) -> None:
    """Wrong credentials, a wrong response and no response raise AUTHENTICATION_REJECTED."""
    with pytest.raises(JavaArchiveException) as caught:
        java.connect(guarded.control_channel, **credentials)
    assert caught.value.error_code == ErrorCode.AUTHENTICATION_REJECTED


@pytest.mark.jvm
def test_requests_of_a_java_client_are_authorised(guarded: Any, java: JavaClient) -> None:
    """Each request is authorised; the session continues after a refused one."""
    java.connect(guarded.control_channel, credentials="open:reader")
    for method, *args in (
        ("startRecording", "aeron:ipc", 77, "LOCAL"),
        ("stopRecording", "aeron:ipc", 77),
        ("startReplay", 0, 0, -1, "aeron:ipc", 78),
        ("truncateRecording", 0, 0),
        ("purgeRecording", 0),
        ("getRecordingPosition", 0),
        ("replicate", 0, -1, 10, "aeron:udp?endpoint=localhost:9", None),
    ):
        with pytest.raises(JavaArchiveException) as caught:
            java.call(method, *args)
        assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION, method
        assert "unauthorised action" in caught.value.message
    assert java.call("listRecordings", 0, 10) == []
    with pytest.raises(JavaArchiveException) as caught:
        java.call("getStopPosition", 0)
    assert caught.value.error_code == ErrorCode.UNKNOWN_RECORDING


@pytest.mark.jvm
def test_java_client_without_rights_cannot_connect(guarded: Any, java: JavaClient) -> None:
    """A connect needs the right to request the archive's id."""
    with pytest.raises(JavaArchiveException) as caught:
        java.connect(guarded.control_channel, credentials="open:nobody")
    assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION


def test_our_client_is_accepted_and_refused(guarded: Any) -> None:
    """Credentials and responses to challenges of our client, with either archive."""
    with guarded.connect(credentials=b"open:alice") as client:
        assert list(client.list_recordings()) == []
    with guarded.connect(credentials=b"ask:bob", on_challenge=lambda _: b"it is bob") as client:
        assert list(client.list_recordings()) == []
    asked: list[bytes] = []

    def wrong(challenge: bytes) -> bytes:
        asked.append(challenge)
        return b"it is me"

    with pytest.raises(aerotape.ArchiveError) as caught:
        guarded.connect(credentials=b"ask:bob", on_challenge=wrong)
    assert caught.value.error_code == ErrorCode.AUTHENTICATION_REJECTED
    assert asked == [b"who is bob?"]
    with guarded.connect(credentials=b"open:reader") as client:
        with pytest.raises(aerotape.ArchiveError) as caught:
            client.start_recording("aeron:ipc", 77)
        assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION
        assert list(client.list_recordings()) == []


def test_every_request_is_authorised(guarded: Any, aeron: _native.AeronClient) -> None:
    """Of all requests of both archives, a reader may send those of the guard's list."""
    raw = raw_client(aeron)
    raw.connect(encoded_credentials=b"open:reader")
    assert raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
    refused = set()
    for kind in _requests():
        channels = {
            name: "aeron:ipc"
            for name in ("channel", "replay_channel", "src_control_channel")
            if name in kind.__match_args__
        }
        answer = raw.call(kind, **channels)
        assert (answer.code, answer.relevant_id) == (
            ControlResponseCode.ERROR,
            ErrorCode.UNAUTHORISED_ACTION,
        ), kind
        refused.add(kind)
    assert len(refused) > 30
    assert raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK


def _requests() -> list[Any]:
    return [
        kind
        for kind in codecs.MESSAGES.values()
        if "Request" in kind.__name__
        and kind.TEMPLATE_ID not in READS
        and kind not in (codecs.AuthConnectRequest, codecs.CloseSessionRequest)
    ]


def test_a_challenged_client_times_out(guarded: Any, aeron: _native.AeronClient) -> None:
    """Sessions without a response or without a decision end at the connect timeout."""
    silent, hanging = raw_client(aeron), raw_client(aeron)
    silent.send(_connect(silent, b"ask:carol"))
    challenge = silent.await_message(codecs.Challenge)
    assert challenge.encoded_challenge == b"who is carol?"
    assert challenge.control_session_id in control_session_counters(aeron)
    hanging.send(_connect(hanging, b"hang"))
    await_true(lambda: control_session_counters(aeron) == [])
    hanging.poll()
    assert hanging.received == []


def test_requests_before_the_decision_are_ignored(guarded: Any, aeron: _native.AeronClient) -> None:
    """Before the response to the challenge requests are ignored, afterwards they are served."""
    raw = raw_client(aeron)
    raw.send(_connect(raw, b"ask:dave"))
    challenge = raw.await_message(codecs.Challenge)
    raw.control_session_id = challenge.control_session_id
    early = raw.request(codecs.ListRecordingsRequest, from_recording_id=0, record_count=1)
    answer = raw.client.next_correlation_id()
    raw.send(
        codecs.ChallengeResponse(
            control_session_id=challenge.control_session_id,
            correlation_id=answer,
            encoded_credentials=b"it is dave",
        )
    )
    response = raw.response(answer)
    assert (response.code, response.relevant_id) == (
        ControlResponseCode.OK,
        challenge.control_session_id,
    )
    assert raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
    assert [each for each in raw.received if each.correlation_id == early] == []


def test_a_response_from_another_stream_is_ignored(own_guarded: Any) -> None:
    """A guessed session id does not suffice to respond to its challenge (in the reference it
    does)."""
    aeron = _native.AeronClient(str(own_guarded.aeron_dir))
    victim, thief = raw_client(aeron), raw_client(aeron)
    thief.connect(encoded_credentials=b"open:alice")
    victim.send(_connect(victim, b"ask:erin"))
    challenge = victim.await_message(codecs.Challenge)
    for sender, answer in ((thief, b"wrong"), (victim, b"it is erin")):
        correlation_id = aeron.next_correlation_id()
        sender.send(
            codecs.ChallengeResponse(
                control_session_id=challenge.control_session_id,
                correlation_id=correlation_id,
                encoded_credentials=answer,
            )
        )
        # The thief's message is handled before its next request.
        assert thief.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK
    assert victim.response(correlation_id).code is ControlResponseCode.OK
    aeron.close()


@pytest.mark.parametrize("step", ["request", "connected", "response", "challenged"])
def test_an_authenticator_that_raises_refuses(own_guarded: Any, step: str) -> None:
    """On any exception, even SystemExit, the client is refused and the archive continues."""
    with pytest.raises(aerotape.ArchiveError) as caught:
        own_guarded.connect(credentials=f"fail:{step}".encode(), on_challenge=lambda _: b"here")
    assert caught.value.error_code == ErrorCode.AUTHENTICATION_REJECTED
    with own_guarded.connect(credentials=b"open:alice") as client:
        assert list(client.list_recordings()) == []
    own_guarded.await_log("authenticator failed")


def test_an_authorisation_service_that_raises_refuses(own_guarded: Any) -> None:
    """The request gets UNAUTHORISED_ACTION, the cause is logged, the session continues."""
    with own_guarded.connect(credentials=b"open:trouble") as client:
        with pytest.raises(aerotape.ArchiveError) as caught:
            client.start_recording("aeron:ipc", 77)
        assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION
        assert list(client.list_recordings()) == []
    own_guarded.await_log("the authorisation service fails")


def test_a_replay_token_has_the_rights_of_its_session(own_guarded: Any) -> None:
    """A request with a token is authorised as the session that requested the token."""
    channel = f"aeron:udp?control-mode=response|control=localhost:{free_port()}"
    with own_guarded.connect(credentials=b"open:asker") as client:
        subscription = client.aeron.add_subscription(channel, 91)
        with pytest.raises(aerotape.ArchiveError) as caught:
            client.start_replay(0, channel, 91, subscription_id=subscription.registration_id)
        assert caught.value.error_code == ErrorCode.UNAUTHORISED_ACTION
        assert "unauthorised action: replay" in str(caught.value)
        subscription.close()


def _connect(raw: RawClient, credentials: bytes) -> codecs.AuthConnectRequest:
    return codecs.AuthConnectRequest(
        correlation_id=raw.client.next_correlation_id(),
        response_stream_id=raw.response_stream_id,
        version=1 << 16,
        response_channel=raw.response_channel,
        encoded_credentials=credentials,
    )
