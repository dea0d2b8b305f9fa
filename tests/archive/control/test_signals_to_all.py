"""Recording signals: to the requesting session, as in the reference, or to every session."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.daemon.authenticator import Guard
from support.daemon.control_rig import RawClient, await_true, control_session_counters
from support.jvm.java import FAST_ARCHIVE, JavaClient, free_port
from support.jvm.java_streams import (
    IPC,
    SEGMENT_LENGTH,
    Recorded,
    Signals,
    channel_at,
    descriptor,
    new_stream_id,
    record,
)

import aerotape
from aerotape import RecordingSignal, _native
from aerotape.codecs.generated import archive as codecs
from aerotape.codecs.generated.archive import SourceLocation

# One test waits for the timeout; for the others it must be long enough on a slow machine.
TO_ALL = {"aerotape.recording.signals": "all", "aeron.archive.connect.timeout": "3s"}
LOCAL = "aeron:ipc?term-length=64k"
_streams = itertools.count(800)


@pytest.fixture(scope="module")
def broadcasting(run_archive: Callable[..., Any]) -> Iterator[Any]:
    """Our daemon, which sends signals to every session."""
    with run_archive("aerotape", TO_ALL) as archive:
        yield archive


def java_clients(archive: Any) -> Iterator[tuple[JavaClient, JavaClient]]:
    with JavaClient(archive.aeron_dir) as asking, JavaClient(archive.aeron_dir) as listening:
        for each in (asking, listening):
            each.session_id = each.connect(archive.control_channel)[  # type: ignore[attr-defined]
                "controlSessionId"
            ]
        yield asking, listening


@pytest.fixture(scope="module")
def pair(broadcasting: Any) -> Iterator[tuple[JavaClient, JavaClient]]:
    """Two Java clients of our daemon: one that sends requests, one that does not."""
    yield from java_clients(broadcasting)


@pytest.fixture(scope="module")
def pair_of_either(either: Any) -> Iterator[tuple[JavaClient, JavaClient]]:
    """Two Java clients of an archive with default settings, ours and Java's."""
    yield from java_clients(either)


def extended(client: JavaClient, made: Recorded) -> None:
    """Extend a recording from its stop position, and stop it again."""
    row = descriptor(client, made.recording_id)
    channel, stream_id = channel_at(row, made.position), row["streamId"]
    client.call("extendRecording", made.recording_id, IPC, stream_id, "LOCAL")
    publication = client.add_exclusive_publication(channel, stream_id)
    client.recording_counter(publication["sessionId"])
    client.call("stopRecording", IPC, stream_id)
    client.close_resource(publication)


def replicated(client: JavaClient, control_channel: str, made: Recorded) -> None:
    client.call("replicate", made.recording_id, 10, control_channel, {})


def names(signals: Signals) -> list[str]:
    signals.of(-1)
    return [each["signal"] for each in signals.taken]


@pytest.mark.jvm
def test_other_sessions_receive_the_same_signals(
    broadcasting: Any, pair: tuple[JavaClient, JavaClient]
) -> None:
    """Every kind of signal is sent in the same order, with the receiver's control session id."""
    asking, listening = pair
    asked, heard = Signals(asking), Signals(listening)
    made = record(asking, count=100)
    extended(asking, made)
    replicated(asking, broadcasting.control_channel, made)
    await_true(lambda: "REPLICATE_END" in names(asked))
    # Each but the first is refused until the files of the previous one are deleted.
    asking.call("truncateRecording", made.recording_id, SEGMENT_LENGTH)
    await_true(lambda: names(asked).count("DELETE") == 1)
    asking.call("purgeSegments", made.recording_id, SEGMENT_LENGTH)
    await_true(lambda: names(asked).count("DELETE") == 2)
    asking.call("purgeRecording", made.recording_id)
    await_true(lambda: names(asked).count("DELETE") == 3)
    assert names(asked)[:4] == ["START", "STOP", "EXTEND", "STOP"]
    assert set(names(asked)) == {
        *("START", "STOP", "EXTEND", "DELETE"),
        *("REPLICATE", "SYNC", "REPLICATE_END"),
    }
    await_true(lambda: len(names(heard)) >= len(asked.taken))
    for signals in (asked, heard):
        ids = {each.pop("controlSessionId") for each in signals.taken}
        assert ids == {signals.client.session_id}  # type: ignore[attr-defined]
    assert heard.taken == asked.taken


@pytest.mark.jvm
def test_by_default_only_the_requester_receives_signals(
    either: Any, pair_of_either: tuple[JavaClient, JavaClient]
) -> None:
    """Other sessions receive no signals, from our archive and the Java archive alike."""
    asking, listening = pair_of_either
    asked, heard = Signals(asking), Signals(listening)
    made = record(asking, count=20)
    asking.call("purgeRecording", made.recording_id)
    await_true(lambda: names(asked) == ["START", "STOP", "DELETE"])
    # Signals sent before this response would precede it.
    listening.call("archiveId")
    assert names(heard) == []


@pytest.mark.jvm
def test_a_java_archive_replicates_between_signals_of_others(
    run_archive: Callable[..., Any], pair: tuple[JavaClient, JavaClient], broadcasting: Any
) -> None:
    """An archive that replicates from ours does not mistake a signal for a response."""
    asking, _ = pair
    made, detached = record(asking, count=300), record(asking, count=20)
    with run_archive("java") as java, JavaClient(java.aeron_dir) as client:
        client.connect(java.control_channel)
        heard = Signals(client)
        replicated(client, broadcasting.control_channel, made)
        deadline = time.monotonic() + 60
        while "REPLICATE_END" not in names(heard):
            # Sends DELETE without deleting files.
            asking.call("deleteDetachedSegments", detached.recording_id)
            Signals(asking).await_of(detached.recording_id, 1)
            assert time.monotonic() < deadline, heard.taken
        [copy] = client.call("listRecordings", 0, 10)
        assert copy["stopPosition"] == made.position
        assert "SYNC" in names(heard)


# ---- our client ---------------------------------------------------------------------------------


@pytest.fixture
def aeron(broadcasting: Any) -> Iterator[_native.AeronClient]:
    client = _native.AeronClient(str(broadcasting.aeron_dir))
    yield client
    client.close()


@pytest.fixture
def raw(aeron: _native.AeronClient) -> RawClient:
    """A raw client of our daemon that has made a request."""
    client = RawClient(aeron, LOCAL, response_stream_id=next(_streams))
    client.connect()
    client.call(codecs.ArchiveIdRequest)
    return client


def test_our_client_distinguishes_signals_from_responses(broadcasting: Any, raw: RawClient) -> None:
    """A signal of another client's request with the same correlation id is not a response."""
    stream_id = new_stream_id()
    with broadcasting.connect() as client:
        correlation_id = raw.client.next_correlation_id() + 500
        raw.send(
            codecs.StartRecordingRequest(
                control_session_id=raw.control_session_id,
                correlation_id=correlation_id,
                stream_id=stream_id,
                source_location=SourceLocation.LOCAL,
                channel=IPC,
            )
        )
        raw.response(correlation_id)
        with client.aeron.add_publication(IPC, stream_id) as publication:
            started = raw.await_message(codecs.RecordingSignalEvent)
            assert started.correlation_id == correlation_id
            end = publication.send(b"hello")
            while raw.client.next_correlation_id() < correlation_id - 1:
                pass
            # This request has the same correlation id.
            assert client.start_position(started.recording_id) == 0
            await_true(lambda: client.recording_position(started.recording_id) == end)
            [heard] = client.poll_for_recording_signals()
            assert (heard.signal, heard.correlation_id) == (RecordingSignal.START, correlation_id)
            client.stop_recording(IPC, stream_id)
        stopped = client.await_signal(correlation_id=correlation_id)
        assert (stopped.signal, stopped.position) == (RecordingSignal.STOP, end)
        assert raw.await_message(codecs.RecordingSignalEvent).signal is (RecordingSignal.STOP)


def test_no_signals_before_the_first_request(broadcasting: Any, aeron: _native.AeronClient) -> None:
    """Before its first request a client may not know its session id."""
    quiet = RawClient(aeron, LOCAL, response_stream_id=next(_streams))
    quiet.connect()
    with broadcasting.connect() as client:
        client.start_recording(IPC, stream_id := new_stream_id())
        with client.aeron.add_publication(IPC, stream_id):
            made = client.await_signal(RecordingSignal.START)
        client.await_signal(RecordingSignal.STOP, recording_id=made.recording_id)
    quiet.call(codecs.ArchiveIdRequest)
    assert not [m for m in quiet.received if isinstance(m, codecs.RecordingSignalEvent)]


def test_a_session_that_does_not_read_is_ended(broadcasting: Any, raw: RawClient) -> None:
    """It ends when the signals exceed its response stream; other sessions receive all of them."""
    count = 600
    with broadcasting.connect() as client, broadcasting.connect() as listening:
        client.start_recording(IPC, stream_id := new_stream_id())
        with client.aeron.add_publication(IPC, stream_id):
            recording_id = client.await_signal(RecordingSignal.START).recording_id
        client.await_signal(RecordingSignal.STOP, recording_id=recording_id)
        with listening.signals(RecordingSignal.DELETE, recording_id=recording_id) as deletions:
            for _ in range(count):
                assert client.delete_detached_segments(recording_id) == 0
                client.await_signal(RecordingSignal.DELETE)
            heard = [next(deletions) for _ in range(count)]
        assert len({each.correlation_id for each in heard}) == count
        # The archive ends the session: the signals fill its stream.
        slow = raw.control_session_id
        await_true(lambda: slow not in control_session_counters(raw.client))
        assert client.list_recording(recording_id) is not None
        raw.poll()


def test_signals_of_a_closed_session_reach_the_others(
    broadcasting: Any, aeron: _native.AeronClient
) -> None:
    """The stop of a recording is sent after the session that began it has ended."""
    stream_id = new_stream_id()
    with broadcasting.connect() as listening:
        with broadcasting.connect() as asking:
            asking.start_recording(IPC, stream_id)
            publication = listening.aeron.add_publication(IPC, stream_id)
            started = listening.await_signal(RecordingSignal.START)
            gone = asking.control_session_id
        await_true(lambda: gone not in control_session_counters(aeron))
        publication.close()
        stopped = listening.await_signal(RecordingSignal.STOP)
        assert stopped.recording_id == started.recording_id
        assert stopped.correlation_id == started.correlation_id


# ---- permitted receivers ------------------------------------------------------------------------


class NotListing:
    """Permits all requests but listings, and these to `lister` only."""

    def is_authorised(
        self, _protocol_id: int, action_id: int, _type: object, principal: bytes, /
    ) -> bool:
        return action_id != codecs.ListRecordingsRequest.TEMPLATE_ID or principal == b"lister"


def test_without_the_right_to_list_only_own_signals(tmp_path: Path, aeron_dir: Path) -> None:
    """The authorisation service decides per receiver; the requester always receives signals."""
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    connect = partial(aerotape.connect, aeron_dir=aeron_dir, control_request_channel=channel)
    properties = {
        **FAST_ARCHIVE,
        "aeron.archive.control.channel": channel,
        "aeron.threading.mode": "SHARED",
        "aeron.term.buffer.sparse.file": "true",
        "aerotape.recording.signals": "all",
    }
    with (
        aerotape.Archive.launch(
            tmp_path / "archive",
            aeron_dir,
            properties=properties,
            authenticator=Guard(),
            authorisation_service=NotListing(),
        ),
        connect(credentials=b"open:asker") as asking,
        connect(credentials=b"open:lister") as allowed,
        connect(credentials=b"open:other") as refused,
    ):
        asking.start_recording(IPC, 1001)
        with asking.aeron.add_publication(IPC, 1001):
            started = asking.await_signal(RecordingSignal.START)
        assert allowed.await_signal(RecordingSignal.START) == started
        assert refused.archive_id == allowed.archive_id
        refused.start_position(started.recording_id)
        assert refused.poll_for_recording_signals() == []
