"""`aerotape signals`: each change is printed once, from a signal or from a listing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon.archives import ServedArchive, serve
from support.daemon.recording import recorded

from aerotape import RecordingSignal
from aerotape.archive.client.replay.signals import RecordingSignalEvent
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.errors import AeronTimeoutError
from aerotape.tools.signals import RecordingChange, Watch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def telling() -> Iterator[ServedArchive]:
    """Our archive, which signals to everybody."""
    with serve("aerotape", {"aerotape.recording.signals": "all"}) as served:
        yield served


def test_an_archive_that_tells_everybody_is_believed(telling: ServedArchive) -> None:
    """With an hour between two looks, what others do comes by their signals."""
    arguments = ["signals", "--json", "--interval", "3600s", "--count", "3"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AERON_DIR": str(telling.aeron_dir),
        "AERON_ARCHIVE_CONTROL_CHANNEL": telling.control_channel,
    }
    watcher = subprocess.Popen(
        [sys.executable, "-m", "aerotape", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    try:
        assert watcher.stderr is not None
        assert "watching" in watcher.stderr.readline()
        with telling.connect() as client:
            made = recorded(client, 3)
            # A purged recording's stream is not known any more: the watcher must have seen it.
            assert watcher.stdout is not None
            lines = watcher.stdout.readline() + watcher.stdout.readline()
            client.purge_recording(made.recording_id)
        lines += watcher.communicate(timeout=30)[0]
    finally:
        watcher.kill()
        watcher.wait()
    happened = [json.loads(line) for line in lines.splitlines()]
    assert [(each["signal"], each["position"]) for each in happened] == [
        ("start", 0),
        ("stop", made.end),
        ("delete", -1),
    ]
    assert {each["recording_id"] for each in happened} == {made.recording_id}
    assert {each["stream_id"] for each in happened} == {made.stream_id}


class Client:
    """A client of an archive whose recordings and signals the test sets."""

    def __init__(self) -> None:
        self.recordings: dict[int, RecordingDescriptor] = {}
        # Few, as a client keeps of its signals the last ones.
        self.events: deque[RecordingSignalEvent] = deque(maxlen=3)
        self.coming: list[RecordingSignalEvent] = []
        self.looks = 0

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
        self.looks += 1
        return list(self.recordings.values())

    def list_recording(self, recording_id: int) -> RecordingDescriptor | None:
        for _ in self.coming[:2]:  # they come before the answer
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
    """A watch over a client whose archive the test plays."""

    def __init__(self, is_wanted: IsWanted = is_of_stream_6) -> None:
        self.client = Client()
        client: Any = self.client
        self.watch = Watch(client, is_wanted, 1)
        self.client.recordings[1] = descriptor(1, 128)
        assert self.watch.begin() == 1

    def signalled(self, signal: RecordingSignal, recording_id: int, position: int) -> None:
        self.client.events.append(event(signal, recording_id, position))

    def told(self) -> list[tuple[str, int, int]]:
        return [(each.signal, each.recording_id, each.position) for each in self.watch.wait()]


def test_without_signals_it_looks() -> None:
    """Each time that nothing has come for the interval."""
    rig = Rig()
    assert rig.told() == []
    rig.client.recordings[2] = descriptor(2)
    assert rig.told() == [("start", 2, 64)]
    rig.client.recordings[2] = descriptor(2, 256)
    assert rig.told() == [("stop", 2, 256)]
    del rig.client.recordings[1]
    assert rig.told() == [("delete", 1, -1)]
    assert rig.client.looks == 5


def test_a_listed_change_that_is_signalled_later_is_reported_once() -> None:
    """A listing may precede the first signal; after it there are no more listings."""
    rig = Rig()
    rig.client.recordings[2] = descriptor(2)
    assert rig.told() == [("start", 2, 64)]
    rig.signalled(RecordingSignal.START, 2, 64)
    assert rig.told() == []
    rig.client.recordings[2] = descriptor(2, 256)
    assert rig.told() == []
    rig.signalled(RecordingSignal.STOP, 2, 256)
    assert rig.told() == [("stop", 2, 256)]
    # Again from the same place: that is another one.
    rig.signalled(RecordingSignal.EXTEND, 2, 256)
    rig.signalled(RecordingSignal.STOP, 2, 256)
    assert (rig.told(), rig.told()) == ([("extend", 2, 256)], [("stop", 2, 256)])
    assert rig.client.looks == 2


def test_signals_of_what_is_not_wanted_or_gone() -> None:
    """Other streams are left out; one that has been deleted is known from before."""
    rig = Rig()
    rig.client.recordings[3] = descriptor(3, stream_id=7)
    rig.signalled(RecordingSignal.START, 3, 64)
    assert rig.told() == []
    del rig.client.recordings[1]
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert rig.told() == [("delete", 1, -1)]
    rig.signalled(RecordingSignal.REPLICATE_END, -1, -1)
    assert rig.told() == []
    rig.signalled(RecordingSignal.START, 8, 0)
    assert rig.told() == []


def test_a_recording_purged_before_it_is_requested_is_reported() -> None:
    """Its signals may be read late; they are reported without a stream, and each of them once."""
    rig = Rig(lambda _recording_id, found: True)
    for signal, position, reported in (
        (RecordingSignal.START, 0, [RecordingChange("start", 8, 0)]),
        (RecordingSignal.STOP, 96, [RecordingChange("stop", 8, 96)]),
        (RecordingSignal.DELETE, -1, [RecordingChange("delete", 8, -1)]),
        (RecordingSignal.DELETE, -1, []),
    ):
        rig.signalled(signal, 8, position)
        assert rig.watch.wait() == reported


def test_segment_files_that_go_are_no_deletion_of_the_recording() -> None:
    """DELETE is also signalled of a truncation and of purged segments; the recording lives on."""
    rig = Rig()
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert rig.told() == []
    del rig.client.recordings[1]
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    rig.signalled(RecordingSignal.DELETE, 1, -1)
    assert (rig.told(), rig.told()) == ([("delete", 1, -1)], [])


def test_of_a_burst_no_signal_is_lost() -> None:
    """More come while the archive is asked about each than a client keeps."""
    rig = Rig()
    positions = list(range(256, 256 + 64 * 20, 64))
    rig.signalled(RecordingSignal.EXTEND, 1, positions[0])
    rig.signalled(RecordingSignal.EXTEND, 1, positions[1])
    rig.client.coming = [event(RecordingSignal.EXTEND, 1, each) for each in positions[2:]]
    assert [rig.told() for _ in positions] == [[("extend", 1, each)] for each in positions]
