"""Response channels: responses and replays go to the sender of the request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import RawClient, await_true
from support.jvm import java
from support.jvm.java import JavaClient

from aerotape import _native
from aerotape.codecs.generated import archive as codecs

IPC = "aeron:ipc?term-length=64k"
RESPONSE_STREAM_ID = 21


def response_channel() -> str:
    """A response channel, on which an archive sends to the client of one request stream."""
    return f"aeron:udp?control-mode=response|control=localhost:{java.free_port()}"


@pytest.fixture(scope="module")
def client(either: Any) -> Iterator[JavaClient]:
    """A Java client with a response channel, of one archive or the other."""
    with JavaClient(either.aeron_dir) as connected:
        connected.connect(
            either.control_channel,
            response_channel=response_channel(),
            response_stream_id=RESPONSE_STREAM_ID,
        )
        yield connected


@pytest.fixture(scope="module")
def recording(client: JavaClient) -> dict[str, Any]:
    """A stopped recording: its id, its end and the offered messages."""
    subscription_id = client.call("startRecording", IPC, 3001, "LOCAL")
    publication = client.add_exclusive_publication(IPC, 3001)
    counter = client.recording_counter(publication["sessionId"])
    offered = client.offer(publication, seed=3001, count=200, max_length=4000)
    assert client.await_counter(counter["counterId"], offered["position"]) == offered["position"]
    client.call("stopRecording", subscription_id)
    recording_id = counter["recordingId"]
    await_true(lambda: client.call("getStopPosition", recording_id) == offered["position"])
    client.close_resource(publication)
    return {"id": recording_id, **offered}


@pytest.mark.jvm
@pytest.mark.parametrize("is_bounded", [False, True])
def test_replay_over_a_response_channel(
    client: JavaClient, recording: dict[str, Any], is_bounded: bool
) -> None:
    """The client requests a token, then the replay on a separate stream."""
    params = {"position": 0, "length": -1, "fileIoMaxLength": 1 << 16}
    if is_bounded:
        bound = client.call("addCounter", 10_001, "bound")
        client.call("setCounter", bound["handle"], recording["position"])
        params |= {"length": recording["position"], "boundingLimitCounterId": bound["counterId"]}
    replay = client.call("replay", recording["id"], response_channel(), 3002, params)
    received = client.poll(replay, recording["count"])
    assert (received["count"], received["digest"]) == (recording["count"], recording["digest"])
    client.close_resource(replay)


@pytest.mark.jvm
def test_start_replay_to_a_subscription(client: JavaClient, recording: dict[str, Any]) -> None:
    """startReplay replays to a subscription; the id it returns contains the stream's session id."""
    channel = response_channel()
    subscription = client.add_subscription(channel, 3004)
    params = {
        "position": 0,
        "length": -1,
        "subscriptionRegistrationId": subscription["registrationId"],
    }
    client.call("startReplay", recording["id"], channel, 3004, params)
    received = client.poll(subscription, recording["count"])
    assert received["digest"] == recording["digest"]
    client.close_resource(subscription)


class Rig:
    """A client whose messages the tests encode, with a separate stream for token requests."""

    def __init__(self, either: Any, native: _native.AeronClient) -> None:
        self.raw = RawClient(native, either.control_channel, response_stream_id=3050)
        self.raw.connect()
        self.native = native
        self.control_channel = either.control_channel

    def token(self, recording_id: int) -> int:
        response = self.raw.call(codecs.ReplayTokenRequest, recording_id=recording_id)
        assert response.code is codecs.ControlResponseCode.OK
        return int(response.relevant_id)

    def ask(self, recording_id: int, token: int | None, stream_id: int) -> tuple[int, Any]:
        """Request a replay on a separate stream; return correlation id and subscription.

        Without a token one is requested once the stream is connected, so that it has not expired.
        """
        channel = response_channel()
        subscription = self.native.add_subscription(channel, stream_id)
        requests = self.native.add_exclusive_publication(
            f"{self.control_channel}|response-correlation-id={subscription.registration_id}"
            "|term-length=64k",
            10,
        )
        await_true(lambda: requests.is_connected and requests.position_limit > 0)
        if token is None:
            token = self.token(recording_id)
        correlation_id = self.native.next_correlation_id()
        message = codecs.ReplayRequest(
            # No session id: the token identifies the session.
            control_session_id=-1,
            correlation_id=correlation_id,
            recording_id=recording_id,
            position=0,
            length=-1,
            replay_stream_id=stream_id,
            file_io_max_length=-1,
            replay_token=token,
            replay_channel=channel,
        )
        assert requests.offer_within(message.encode(), 5_000_000_000) > 0
        return correlation_id, subscription


def answers(raw: RawClient) -> list[codecs.ControlResponse]:
    """Return the responses that no call has consumed."""
    raw.poll()
    return [each for each in raw.received if isinstance(each, codecs.ControlResponse)]


@pytest.fixture(scope="module")
def rig(either: Any) -> Iterator[Rig]:
    """A raw client on the same driver as the Java client."""
    native = _native.AeronClient(str(either.aeron_dir))
    try:
        made = Rig(either, native)
        yield made
        made.raw.close()
    finally:
        native.close()


@pytest.mark.jvm
def test_tokens_are_for_one_recording(rig: Rig, recording: dict[str, Any]) -> None:
    """An unknown token, or one for another recording, does not start a replay."""
    token = rig.token(recording["id"])
    assert token != -1
    refused = [
        rig.ask(recording["id"], token ^ 1, 3005)[0],
        rig.ask(recording["id"] + 1, token, 3006)[0],
    ]
    correlation_id, subscription = rig.ask(recording["id"], token, 3007)
    answer = rig.raw.response(correlation_id)
    assert answer.code is codecs.ControlResponseCode.OK
    assert answer.control_session_id == rig.raw.control_session_id
    await_true(lambda: subscription.is_connected)
    # A refused request gets no response: its session is unknown.
    assert not {message.correlation_id for message in answers(rig.raw)} & set(refused)
    subscription.close()


@pytest.mark.jvm
def test_a_token_may_be_used_again(rig: Rig, recording: dict[str, Any]) -> None:
    """Until it times out, a token is valid for any number of replays."""
    token = rig.token(recording["id"])
    for stream_id in (3008, 3009):
        correlation_id, subscription = rig.ask(recording["id"], token, stream_id)
        assert rig.raw.response(correlation_id).code is codecs.ControlResponseCode.OK
        subscription.close()


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_expire(run_archive: Any, kind: str) -> None:
    """A token is invalid after the connect timeout, or when its session has ended."""
    with run_archive(kind, {"aeron.archive.connect.timeout": "1s"}) as archive:
        native = _native.AeronClient(str(archive.aeron_dir))
        try:
            rig = Rig(archive, native)
            token = rig.token(10_000)
            time.sleep(1.1)
            too_late, _ = rig.ask(10_000, token, 3011)
            # A later response shows that the first was ignored: the recording does not exist.
            in_time, _ = rig.ask(10_000, None, 3012)
            rig.raw.response(in_time)
            assert too_late not in [message.correlation_id for message in answers(rig.raw)]

            other = RawClient(native, archive.control_channel, response_stream_id=3051)
            other.connect()
            correlation_id = other.request(codecs.ReplayTokenRequest, recording_id=10_000)
            orphan = other.response(correlation_id).relevant_id
            other.send(codecs.CloseSessionRequest(control_session_id=other.control_session_id))
            await_true(lambda: not other.subscription.is_connected)
            refused, _ = rig.ask(10_000, orphan, 3013)
            last, _ = rig.ask(10_000, None, 3014)
            rig.raw.response(last)
            assert refused not in [message.correlation_id for message in answers(rig.raw)]
        finally:
            native.close()
