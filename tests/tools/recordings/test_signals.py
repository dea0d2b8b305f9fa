"""`aerotape signals`: each change is printed once, from a signal or from a listing."""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Callable
from typing import Any

from support.daemon.archives import serve
from support.daemon.command_line import CommandLine
from support.daemon.recording import new_stream_id, wait_until

import aerotape
from aerotape import RecordingSignal
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.client.session.signals import RecordingSignalEvent
from aerotape.errors import AeronTimeoutError
from aerotape.tools.recordings.signals import RecordingChange, Watch, changes


def watch_a_recording(cli: CommandLine, client: aerotape.ArchiveClient, *options: object) -> None:
    """Check the lines of `signals` while another client starts, stops and purges a recording."""
    stream_id = new_stream_id()
    watcher = cli.start("signals", "--json", "--stream-id", stream_id, *options, text=True)
    try:
        assert watcher.stdout is not None and watcher.stderr is not None
        assert "watching" in watcher.stderr.readline()
        subscription_id = client.start_recording("aeron:ipc", stream_id)
        with client.aeron.add_publication("aeron:ipc", stream_id) as publication:
            end = publication.send(b"hello")
            started = json.loads(watcher.stdout.readline())
            recording_id = started["recording_id"]
            wait_until(lambda: client.recording_position(recording_id) == end, "the recording")
            client.stop_recording_subscription(subscription_id)
        stopped = json.loads(watcher.stdout.readline())
        client.purge_recording(recording_id)
        deleted = json.loads(watcher.stdout.readline())
        if "--count" not in options:
            watcher.send_signal(signal.SIGINT)
        assert watcher.wait(20) == (0 if "--count" in options else 130)
    finally:
        watcher.kill()
        watcher.communicate()
    changes = (started, stopped, deleted)
    assert [(each["signal"], each["position"]) for each in changes] == [
        ("start", 0),
        ("stop", end),
        ("delete", -1),
    ]
    assert {each["recording_id"] for each in changes} == {recording_id}
    assert {each["stream_id"] for each in changes} == {stream_id}


def test_changes_are_found_by_listings(cli: CommandLine, client: aerotape.ArchiveClient) -> None:
    """For either archive; the Java archive signals only to the client that requested a
    recording."""
    watch_a_recording(cli, client, "--interval", "20ms")


def test_an_archive_that_signals_to_all_needs_no_listings() -> None:
    """With an hour between two listings, the changes come by signals; --count ends the command."""
    signalling = serve("aerotape", {"aerotape.recording.signals": "all"})
    with signalling as served, served.connect() as client:
        watch_a_recording(CommandLine(served), client, "--interval", "3600s", "--count", 3)


class Client:
    """A client of an archive whose recordings and signals are set by the test."""

    def __init__(self) -> None:
        self.recordings: dict[int, RecordingDescriptor] = {}
        # Few, as a client buffers only the last signals.
        self.events: deque[RecordingSignalEvent] = deque(maxlen=3)
        self.coming: list[RecordingSignalEvent] = []
        self.listings = 0

    def signals(self, *, timeout_ns: int) -> Any:
        return self

    def __next__(self) -> RecordingSignalEvent:
        if not self.events:
            raise AeronTimeoutError("none")
        return self.events.popleft()

    def poll(self) -> list[RecordingSignalEvent]:
        taken = list(self.events)
        self.events.clear()
        return taken

    def list_recordings(self) -> list[RecordingDescriptor]:
        self.listings += 1
        return list(self.recordings.values())

    def list_recording(self, recording_id: int) -> RecordingDescriptor | None:
        for _ in self.coming[:2]:  # they precede the response
            self.events.append(self.coming.pop(0))
        return self.recordings.get(recording_id)


def descriptor(recording_id: int, stop_position: int = -1, stream_id: int = 6) -> Any:
    return RecordingDescriptor(
        recording_id=recording_id,
        start_timestamp_ms=1,
        stop_timestamp_ms=1,
        start_position=64,
        stop_position=stop_position,
        initial_term_id=0,
        segment_file_length=65536,
        term_buffer_length=65536,
        mtu_length=1408,
        session_id=5,
        stream_id=stream_id,
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )


def event(signal: RecordingSignal, recording_id: int, position: int) -> RecordingSignalEvent:
    return RecordingSignalEvent(signal, recording_id, 9, position, 77)


IsWanted = Callable[[int, RecordingDescriptor | None], bool]


def is_of_stream_6(_recording_id: int, found: RecordingDescriptor | None) -> bool:
    return found is not None and found.stream_id == 6


class Rig:
    """A watch over a client of a simulated archive."""

    def __init__(self, is_wanted: IsWanted = is_of_stream_6) -> None:
        self.client = Client()
        client: Any = self.client
        self.watch = Watch(client, is_wanted, 1)
        self.client.recordings[1] = descriptor(1, 128)
        assert self.watch.begin() == 1

    def signalled(self, signal: RecordingSignal, recording_id: int, position: int) -> None:
        self.client.events.append(event(signal, recording_id, position))

    def changes(self) -> list[tuple[str, int, int]]:
        return [(each.signal, each.recording_id, each.position) for each in self.watch.wait()]


def test_a_listed_change_that_is_signalled_later_is_reported_once() -> None:
    """A listing may precede the first signal; after it there are no more listings."""
    rig = Rig()
    rig.client.recordings[2] = descriptor(2)
    assert rig.changes() == [("start", 2, 64)]
    rig.signalled(RecordingSignal.START, 2, 64)
    assert rig.changes() == []
    rig.client.recordings[2] = descriptor(2, 256)
    assert rig.changes() == []
    rig.signalled(RecordingSignal.STOP, 2, 256)
    assert rig.changes() == [("stop", 2, 256)]
    # From the same position again: another change.
    rig.signalled(RecordingSignal.EXTEND, 2, 256)
    rig.signalled(RecordingSignal.STOP, 2, 256)
    assert (rig.changes(), rig.changes()) == ([("extend", 2, 256)], [("stop", 2, 256)])
    assert rig.client.listings == 2


def test_signals_of_other_streams_and_deleted_recordings() -> None:
    """Other streams are ignored; a deleted recording is known from earlier listings."""
    rig = Rig()
    rig.client.recordings[3] = descriptor(3, stream_id=7)
    rig.signalled(RecordingSignal.START, 3, 64)
    assert rig.changes() == []
    del rig.client.recordings[1]
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert rig.changes() == [("delete", 1, -1)]
    rig.signalled(RecordingSignal.REPLICATE_END, -1, -1)
    assert rig.changes() == []
    rig.signalled(RecordingSignal.START, 8, 0)
    assert rig.changes() == []


def test_a_recording_purged_before_it_is_requested_is_reported() -> None:
    """Its signals may be read late; each is reported once, without a stream."""
    rig = Rig(lambda _recording_id, found: True)
    for kind, position, reported in (
        (RecordingSignal.START, 0, [RecordingChange("start", 8, 0)]),
        (RecordingSignal.STOP, 96, [RecordingChange("stop", 8, 96)]),
        (RecordingSignal.DELETE, -1, [RecordingChange("delete", 8, -1)]),
        (RecordingSignal.DELETE, -1, []),
    ):
        rig.signalled(kind, 8, position)
        assert rig.watch.wait() == reported


def test_a_deletion_of_segment_files_is_not_one_of_the_recording() -> None:
    """DELETE is also signalled for a truncation and for purged segments; the recording remains."""
    rig = Rig()
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert rig.changes() == []
    del rig.client.recordings[1]
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert (rig.changes(), rig.changes()) == ([("delete", 1, -1)], [])


def test_no_signal_of_a_burst_is_lost() -> None:
    """More arrive during the requests than a client buffers."""
    rig = Rig()
    positions = list(range(256, 256 + 64 * 20, 64))
    rig.signalled(RecordingSignal.EXTEND, 1, positions[0])
    rig.signalled(RecordingSignal.EXTEND, 1, positions[1])
    rig.client.coming = [event(RecordingSignal.EXTEND, 1, each) for each in positions[2:]]
    assert [rig.changes() for _ in positions] == [[("extend", 1, each)] for each in positions]


def test_changes_between_two_listings_are_reported() -> None:
    """Every difference between two listings is reported, in the order of recording ids."""

    def reported(known: dict[int, int], now: dict[int, int]) -> list[tuple[str, int, int]]:
        before = {each: descriptor(each, end) for each, end in known.items()}
        after = {each: descriptor(each, end) for each, end in now.items()}
        return [(e.signal, e.recording_id, e.position) for e in changes(before, after)]

    assert reported({}, {}) == []
    assert reported({1: -1}, {1: -1}) == []
    assert reported({}, {3: -1}) == [("start", 3, 64)]
    assert reported({}, {3: 128}) == [("start", 3, 64), ("stop", 3, 128)]
    assert reported({3: -1}, {3: 128}) == [("stop", 3, 128)]
    assert reported({3: 128}, {3: -1}) == [("extend", 3, 128)]
    assert reported({3: 128}, {3: 256}) == [("extend", 3, 128), ("stop", 3, 256)]
    assert reported({3: 128}, {3: 64}) == []
    assert reported({2: 128, 4: -1}, {5: -1}) == [
        ("delete", 2, -1),
        ("delete", 4, -1),
        ("start", 5, 64),
    ]
