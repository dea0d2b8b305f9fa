"""The control protocol message by message: sessions come and go, bad messages do no harm."""

from __future__ import annotations

import itertools
import random
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from support.daemon.archives import KINDS
from support.daemon.control_rig import RawClient, await_true, control_session_counters
from support.jvm.java import JavaArchive, JavaClient

from aerotape import _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import ControlResponseCode
from aerotape.protocol import PROTOCOL_VERSION, ErrorCode, semantic_version

LOCAL = "aeron:ipc?term-length=64k"
# Streams are missed sooner than by default. Clients are not: one that is kept busy would be too.
# Nor is a connect that takes a busy machine a second or two.
IMPATIENT = {
    "aeron.image.liveness.timeout": "1s",
    "aeron.timer.interval": "100ms",
    "aeron.archive.connect.timeout": "3s",
    "aeron.archive.session.liveness.check.interval": "100ms",
}


_streams = itertools.count(700)


@pytest.fixture
def raw(either: Any) -> Iterator[RawClient]:
    """A raw client of one archive or the other, not connected yet."""
    aeron = _native.AeronClient(str(either.aeron_dir))
    yield RawClient(aeron, LOCAL, response_stream_id=next(_streams))
    aeron.close()


def is_alive(raw: RawClient) -> bool:
    """Whether the archive still answers on the session of `raw`."""
    return bool(raw.call(codecs.ArchiveIdRequest).code is ControlResponseCode.OK)


def has_response(raw: RawClient, correlation_id: int) -> bool:
    """Whether a message with this correlation id has been received and not taken."""
    return any(getattr(m, "correlation_id", None) == correlation_id for m in raw.received)


def test_connect_response(either: Any, raw: RawClient) -> None:
    """OK with the control session id, twice over, and a protocol version of the same major."""
    response = raw.connect(client_info="raw test")
    assert response.code is ControlResponseCode.OK
    assert response.relevant_id == response.control_session_id == raw.control_session_id
    assert response.version >> 16 == PROTOCOL_VERSION >> 16
    assert response.error_message == ""
    [row] = [row for row in raw.client.counters().rows(113) if row[7] == raw.control_session_id]
    assert struct.unpack_from("<qq", row[2])[1] == raw.control_session_id
    assert row[3].startswith("control-session: raw test sourceIdentity=")
    # The session's counter refers to the publication of its responses.
    limits = [struct.unpack_from("<qii", each[2]) for each in raw.client.counters().rows(1)]
    responses = [key[0] for key in limits if key[2] == raw.response_stream_id]
    assert responses == [row[6]]
    [sessions] = raw.client.counters().rows(102)
    assert sessions[7] == len(raw.client.counters().rows(113))


def test_another_major_version_is_refused(either: Any, raw: RawClient) -> None:
    """ERROR with both versions in the text, and no request of that session is answered."""
    response = raw.connect(version=semantic_version(0, 9, 3))
    assert response.code is ControlResponseCode.ERROR
    assert "invalid client version 0.9.3" in response.error_message
    correlation_id = raw.request(codecs.ArchiveIdRequest)
    raw.connect()
    assert is_alive(raw)
    assert not has_response(raw, correlation_id)


def test_close_session_ends_it(either: Any, raw: RawClient) -> None:
    """After a close request the session's counter and response stream are gone."""
    raw.connect()
    assert is_alive(raw)
    raw.send(codecs.CloseSessionRequest(control_session_id=raw.control_session_id))
    ended = raw.control_session_id
    await_true(lambda: ended not in control_session_counters(raw.client))
    await_true(lambda: not raw.subscription.is_connected)
    raw.connect()
    assert is_alive(raw)


def test_a_keep_alive_has_no_answer(either: Any, raw: RawClient) -> None:
    """It activates the session, and that is all."""
    raw.connect()
    correlation_id = raw.request(codecs.KeepAliveRequest)
    assert is_alive(raw)
    assert not has_response(raw, correlation_id)


def test_a_session_belongs_to_the_stream_that_made_it(start_daemon: Callable[..., Any]) -> None:
    """Nobody else can use or close it, even with the right control session id."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw, other = (RawClient(aeron, LOCAL, response_stream_id=stream) for stream in (701, 702))
    raw.connect()
    other.connect()
    own = other.control_session_id
    other.control_session_id = raw.control_session_id
    correlation_id = other.request(codecs.ArchiveIdRequest)
    other.send(codecs.CloseSessionRequest(control_session_id=raw.control_session_id))
    other.control_session_id = own
    for client in (raw, other):
        assert is_alive(client)
        assert not has_response(client, correlation_id)
    await_true(lambda: "does not own the control session" in daemon.log())
    aeron.close()


def test_a_second_listing_waits_its_turn(start_daemon: Callable[..., Any]) -> None:
    """While descriptors are still being sent another listing gets ACTIVE_LISTING."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=702)
    raw.connect()
    # Enough that the response stream's window is full before the first listing is through.
    publications = []
    for stream_id in range(100, 119):
        channel = f"aeron:ipc?term-length=64k|alias={'x' * 1200}{stream_id}"
        raw.call(codecs.StartRecordingRequest, stream_id=stream_id, channel=channel)
        publications.append(aeron.add_publication(channel, stream_id))
    await_true(lambda: len(aeron.counters().rows(100)) == 19)
    first = raw.request(codecs.ListRecordingsRequest, from_recording_id=0, record_count=1000)
    second = raw.request(codecs.ListRecordingsRequest, from_recording_id=0, record_count=5)
    others = [
        second,
        raw.request(codecs.ListRecordingRequest, recording_id=0),
        raw.request(codecs.ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=5),
        raw.request(codecs.UpdateChannelRequest, recording_id=0, channel="aeron:ipc"),
    ]
    messages: list[Any] = []

    def have_all() -> bool:
        raw.poll(0.1)
        messages.extend(raw.received)
        raw.received.clear()
        kinds = {getattr(m, "correlation_id", None) for m in messages}
        return {first, *others} <= kinds and any(
            isinstance(m, codecs.ControlResponse) and m.correlation_id == first for m in messages
        )

    await_true(have_all)
    listed = [m.recording_id for m in messages if isinstance(m, codecs.RecordingDescriptor)]
    assert listed == list(range(19))
    answers = {m.correlation_id: m for m in messages if isinstance(m, codecs.ControlResponse)}
    assert answers[first].code is ControlResponseCode.RECORDING_UNKNOWN
    assert answers[first].relevant_id == 19
    assert [answers[each].relevant_id for each in others] == [ErrorCode.ACTIVE_LISTING] * 4
    aeron.close()


def test_a_descriptor_too_long_for_the_client_is_said_to_be_so(
    start_daemon: Callable[..., Any],
) -> None:
    """The listing ends with an error that tells what to do; the session goes on."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=703)
    raw.connect()
    channel = f"aeron:ipc?alias={'x' * 4079}"
    assert raw.call(codecs.StartRecordingRequest, stream_id=1, channel=channel).relevant_id > 0
    publication = aeron.add_publication("aeron:ipc", 1)
    await_true(lambda: len(aeron.counters().rows(100)) == 1)
    publication.close()
    response = raw.call(codecs.ListRecordingsRequest, from_recording_id=0, record_count=5)
    assert response.code is ControlResponseCode.ERROR
    assert "term-length" in response.error_message
    raw.close()
    roomy = RawClient(
        aeron, LOCAL, response_channel="aeron:ipc?term-length=256k", response_stream_id=704
    )
    roomy.connect()
    correlation_id = roomy.request(codecs.ListRecordingRequest, recording_id=0)
    descriptor = roomy.await_message(lambda m: isinstance(m, codecs.RecordingDescriptor))
    assert (descriptor.correlation_id, descriptor.original_channel) == (correlation_id, channel)
    aeron.close()


def header(template_id: int, block_length: int = 16, schema_id: int = 101) -> bytes:
    return struct.pack("<HHHH", block_length, template_id, schema_id, 14)


def bad_messages(session_id: int) -> dict[str, bytes]:
    """One of each kind of damage."""
    listing = codecs.ListRecordingsForUriRequest(
        control_session_id=session_id, correlation_id=1, record_count=1, channel="aeron"
    ).encode()
    fixed = len(listing) - len("aeron") - 4
    return {
        "empty": b"",
        "shorter than a header": b"\x01\x02\x03",
        "header only": header(codecs.ArchiveIdRequest.TEMPLATE_ID),
        "truncated block": listing[: fixed - 5],
        "no variable data": listing[:fixed],
        "variable data longer than the message": listing[:fixed] + struct.pack("<I", 4_000_000),
        "negative variable data": listing[:fixed] + struct.pack("<i", -1) + b"aeron",
        "block longer than the message": header(8, block_length=0xFFFF) + listing[8:],
        "block shorter than its fields": header(8, block_length=3) + listing[8:],
        "unknown template": header(999) + bytes(64),
        "wrong schema": header(codecs.ArchiveIdRequest.TEMPLATE_ID, schema_id=1) + bytes(64),
        "a response": codecs.ControlResponse(control_session_id=session_id).encode(),
        "unknown session": codecs.ArchiveIdRequest(control_session_id=session_id + 1000).encode(),
        "close of an unknown session": codecs.CloseSessionRequest(control_session_id=-1).encode(),
        "zeros": bytes(1000),
        "ones": b"\xff" * 1000,
    }


def test_bad_messages_are_passed_over(either: Any, raw: RawClient) -> None:
    """Each kind of damage is ignored, as by the reference, and the session goes on."""
    raw.connect()
    assert is_alive(raw)
    for damage, message in bad_messages(raw.control_session_id).items():
        raw.send(message)
        assert is_alive(raw), damage
    if isinstance(either, JavaArchive):
        # It reads on beyond a message that is cut short, and answers some that way.
        return
    answers = [m for m in raw.received if isinstance(m, codecs.ControlResponse)]
    # The connect response may have come more than once; nothing else has.
    assert {m.relevant_id for m in answers} <= {raw.control_session_id}


def test_impossible_values_in_good_messages(start_daemon: Callable[..., Any]) -> None:
    """Extreme ids, positions, lengths and channels get an answer, whatever it is."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=704)
    raw.connect()
    low, high = -(1 << 63), (1 << 63) - 1
    error, unknown = ControlResponseCode.ERROR, ControlResponseCode.RECORDING_UNKNOWN
    for extreme in (low, high, -1):
        for kind in (
            codecs.StopPositionRequest,
            codecs.StopRecordingByIdentityRequest,
        ):
            assert raw.call(kind, recording_id=extreme).code is error
        assert raw.call(codecs.ListRecordingRequest, recording_id=extreme).code is unknown
        listing = raw.call(
            codecs.ListRecordingsRequest, from_recording_id=extreme, record_count=2**31 - 1
        )
        assert listing.code is unknown
        replay = raw.call(
            codecs.ReplayRequest, recording_id=extreme, position=extreme, length=extreme
        )
        assert replay.code is error
        assert raw.call(codecs.StopReplayRequest, replay_session_id=extreme).code is (
            ControlResponseCode.OK
        )
    for channel in ("", "\x7f", "aeron:udp?" + "|" * 100, "aeron:udp?endpoint=" + "9" * 4000):
        assert raw.call(codecs.StartRecordingRequest2, channel=channel).code is error
    assert is_alive(raw)
    aeron.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_requests_at_random(start_daemon: Callable[..., Any], seed: int) -> None:
    """Bytes of real requests changed, cut and joined at random: the daemon answers afterwards."""
    daemon = start_daemon()
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=705)
    raw.connect()
    dice = random.Random(seed)
    templates = [
        cast(Any, kind)(control_session_id=raw.control_session_id, correlation_id=5).encode()
        for kind in codecs.MESSAGES.values()
        if kind.__name__.endswith(("Request", "Request2"))
        and kind not in (codecs.AuthConnectRequest, codecs.CloseSessionRequest)
    ]
    for _ in range(400):
        message = bytearray(dice.choice(templates) + dice.randbytes(dice.randrange(40)))
        for _ in range(dice.randrange(6)):
            # The template id stays: closing the session would be a fair request.
            at = dice.choice([0, 1, *range(4, len(message))])
            message[at] = dice.randrange(256)
        raw.send(bytes(message[: dice.randrange(8, len(message) + 1)]))
        raw.poll()
        raw.received.clear()
    again = RawClient(aeron, LOCAL, response_stream_id=706)
    again.connect()
    assert is_alive(again)
    assert daemon.process.is_running
    assert "Traceback" not in daemon.log()
    aeron.close()


@pytest.mark.jvm
def test_many_clients_at_once(start_daemon: Callable[..., Any]) -> None:
    """Thirty sessions, connecting and asking from several threads, each get their own answers."""
    daemon = start_daemon(properties={"aeron.archive.max.concurrent.recordings": "50"})
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            aeron = _native.AeronClient(str(daemon.aeron_dir))
            clients = [
                RawClient(aeron, LOCAL, response_stream_id=1000 + number * 10 + index)
                for index in range(10)
            ]
            for client in clients:
                client.connect(client_info=f"client {number}")
            for client in clients:
                stream_id = 5000 + client.response_stream_id
                started = client.call(
                    codecs.StartRecordingRequest, stream_id=stream_id, channel="aeron:ipc"
                )
                assert started.code is ControlResponseCode.OK, started
                for recording_id in range(20):
                    asked = client.call(codecs.ListRecordingRequest, recording_id=recording_id)
                    assert asked.relevant_id == recording_id
                    assert asked.control_session_id == client.control_session_id
                stopped = client.call(
                    codecs.StopRecordingSubscriptionRequest, subscription_id=started.relevant_id
                )
                assert stopped.code is ControlResponseCode.OK, stopped
            assert len({client.control_session_id for client in clients}) == 10
            barrier.wait(60)
            assert set(control_session_counters(aeron)) >= {
                client.control_session_id for client in clients
            }
            barrier.wait(60)
            aeron.close()
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with JavaClient(daemon.aeron_dir) as observer:
        await_true(lambda: observer.call("counters", 113) == [])


def test_a_client_that_never_listens_is_timed_out(start_daemon: Callable[..., Any]) -> None:
    """Without a subscriber to its responses a session lasts as long as the connect timeout."""
    daemon = start_daemon(properties=IMPATIENT)
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    publication = aeron.add_exclusive_publication(LOCAL, 10)
    request = codecs.AuthConnectRequest(
        correlation_id=1,
        response_stream_id=99,
        version=PROTOCOL_VERSION,
        response_channel="aeron:ipc",
    ).encode()
    assert publication.offer_within(request, 5_000_000_000) > 0
    await_true(lambda: len(control_session_counters(aeron)) == 1)
    await_true(lambda: control_session_counters(aeron) == [])
    daemon.await_log(
        "failed to establish initial connection: state=CONNECTING connectTimeoutMs=3000"
    )
    aeron.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_sessions_request_stream_is_cut_off(
    run_archive: Callable[..., Any], kind: str
) -> None:
    """A client whose session has timed out finds its request publication disconnected."""
    with run_archive(kind, IMPATIENT) as archive:
        aeron = _native.AeronClient(str(archive.aeron_dir))
        deaf, well = (RawClient(aeron, LOCAL, response_stream_id=stream) for stream in (705, 706))
        well.connect()
        deaf.send(
            codecs.AuthConnectRequest(
                correlation_id=aeron.next_correlation_id(),
                response_stream_id=99,
                version=PROTOCOL_VERSION,
                response_channel="aeron:ipc?alias=nobody",
            )
        )
        assert deaf.publication.is_connected
        await_true(lambda: not deaf.publication.is_connected)
        assert is_alive(well)
        aeron.close()


def test_a_client_that_stops_reading_is_timed_out(start_daemon: Callable[..., Any]) -> None:
    """Pings that find no room for the connect timeout end the session."""
    daemon = start_daemon(properties=IMPATIENT)
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    raw = RawClient(aeron, LOCAL, response_stream_id=707)
    raw.connect()
    assert is_alive(raw)
    for _ in range(2_000):
        if control_session_counters(aeron) == []:
            break
        raw.request(codecs.StopPositionRequest, recording_id=0)
    await_true(lambda: control_session_counters(aeron) == [])
    daemon.await_log("failed to send response for more than connectTimeoutMs=")
    aeron.close()


@pytest.mark.jvm
def test_a_killed_client_leaves_nothing_behind(start_daemon: Callable[..., Any]) -> None:
    """Its session ends with its streams; what it was recording goes on until its stream ends."""
    daemon = start_daemon(properties=IMPATIENT)
    aeron = _native.AeronClient(str(daemon.aeron_dir))
    with JavaClient(daemon.aeron_dir) as victim:
        session = victim.connect(daemon.control_channel)
        victim.call("startRecording", "aeron:ipc", 5, "LOCAL")
        publication = aeron.add_exclusive_publication("aeron:ipc", 5)
        await_true(lambda: len(aeron.counters().rows(100)) == 1)
        assert control_session_counters(aeron) == [session["controlSessionId"]]
        victim.process.kill()
    await_true(lambda: control_session_counters(aeron) == [])
    end = publication.offer_within(b"still here", 5_000_000_000)
    assert end > 0
    await_true(lambda: aeron.counters().rows(100)[0][7] == end)
    raw = RawClient(aeron, LOCAL, response_stream_id=708)
    raw.connect()
    publication.close()
    await_true(lambda: raw.call(codecs.StopPositionRequest, recording_id=0).relevant_id == end)
    aeron.close()
