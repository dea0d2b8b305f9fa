"""A running archive, for `power_cut`: a separate process whose changes are recorded.

    python -m support.power_cut.run ROOT AERON_DIR SEED NAME=VALUE...

Starts an archive in ROOT/a/archive, with more properties, and does everything that changes files:
recordings are started, stopped, extended, truncated and purged, their segments are purged, or their
channel becomes longer. Reports to clients are noted as JSON, each note a list:

* `["made", id, stream id]`: the recording exists;
* `["recorded", id, position]`: the position counter has reached this position;
* `["counter", id, index]`: a position counter that is watched; index -1, no longer;
* `["entered", id]`: the catalog has it, as far as its sync level guarantees;
* `["publishing", id]`: data will be published;
* `["stopped", id, position]`, `["channel", id, channel]`, `["purged", id]`: it is done;
* `["cut", id, position]`, `["purge", id]`, `["extend", id]`, `["start", id, position]`,
  `["new channel", id, channel]`: it will be requested.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aerotape
from aerotape.archive.archive import Archive
from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.mark.mark_file import MarkFile
from aerotape.cnc import CncFile, CounterRecord
from support.daemon.recording import wait_until
from support.jvm.java import FAST_ARCHIVE, FAST_DRIVER, free_port
from support.model.placed_messages import offer_placed
from support.power_cut.places import say_places

SEGMENT_LENGTH = 65_536
RECORDING_POSITION_TYPE_ID = 100
STEP_S = 30.0
"""How long a step may take."""
RUN_S = 120.0
"""How long all of it may take: then it ends, telling where its threads are."""
_SHIM = ctypes.CDLL(None)


def note(*what: Any) -> None:
    """Note a report to clients."""
    _SHIM.power_cut_note(json.dumps(what).encode())


class _SeenStruct:
    """A `Struct` whose stores into mapped memory are recorded one by one."""

    def __init__(self, struct: Any) -> None:
        self._struct = struct

    def pack_into(self, *arguments: Any) -> None:
        _SHIM.power_cut_look()
        self._struct.pack_into(*arguments)
        _SHIM.power_cut_look()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._struct, name)


def note_entries() -> None:
    """Add a note whenever a recording was added to the catalog."""
    plain = Catalog.add_recording

    def add_recording(self: Catalog, **described: Any) -> int:
        recording_id = plain(self, **described)
        note("entered", recording_id)
        return recording_id

    Catalog.add_recording = add_recording  # type: ignore[method-assign]


class _Counters:
    """The driver's counters, for the shim to read."""

    def __init__(self, aeron_dir: Path) -> None:
        self._file = CncFile(aeron_dir)
        with self._file.path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.count = 0

    def watch(self, session_id: int) -> int:
        """Watch the position counter of a recording; return its recording's id."""
        what = f"the recording of session {session_id}"
        wait_until(lambda: bool(self._of(session_id)), what, STEP_S)
        counter = self._of(session_id)[0]
        recording_id = int.from_bytes(counter.key[:8], "little")
        offset = self._file._values + counter.counter_id * 128
        note("counter", recording_id, self.count)
        _SHIM.power_cut_watch(ctypes.c_void_p(self._base + offset))
        self.count += 1
        return recording_id

    def _of(self, session_id: int) -> list[CounterRecord]:
        found = self._file.counters(RECORDING_POSITION_TYPE_ID)
        return [
            each
            for each in found
            if each.key[8:12] == session_id.to_bytes(4, "little", signed=True)
        ]


class Stream:
    """A stream that is being recorded."""

    def __init__(self, run: Run, stream_id: int, channel: str, recording_id: int = -1) -> None:
        self.run, self.stream_id = run, stream_id
        client = run.client
        if recording_id < 0:
            self.subscription_id = client.start_recording(channel, stream_id)
        else:
            descriptor = client.list_recording(recording_id)
            assert descriptor is not None
            # The driver may still know the previous publication.
            channel = f"{channel}?session-id={1000 + run.counters.count}"
            channel = aerotape.extension_channel(descriptor, channel)
            note("extend", recording_id)
            self.subscription_id = client.extend_recording(recording_id, channel, stream_id)
        self.publication = client.aeron.add_exclusive_publication(channel, stream_id)
        self.recording_id = run.counters.watch(self.publication.session_id)
        if recording_id < 0:
            note("channel", self.recording_id, channel)
            note("made", self.recording_id, stream_id)

    def send(self, length: int) -> None:
        """Publish at least so many bytes, in bursts that are recorded one after the other."""
        note("publishing", self.recording_id)
        end = self.publication.position + length
        while self.publication.position < end:
            for _ in range(self.run.draw.randint(1, 8)):
                # Publishing is not possible any more when the recording has failed.
                what = f"the publication behind {self.publication.position} of recording"
                wait_until(self._offer, f"{what} {self.recording_id}", STEP_S)
            if self.run.draw.random() < 0.5:
                self.await_recorded()

    def _offer(self) -> bool:
        return offer_placed(self.publication, self.stream_id)

    def await_recorded(self) -> int:
        position = self.publication.position
        client, recording_id = self.run.client, self.recording_id
        wait_until(lambda: client.recording_position(recording_id) == position, "recording", STEP_S)
        note("recorded", recording_id, position)
        return position

    def stop(self) -> int:
        """Stop the recording and return its stop position."""
        position = self.await_recorded()
        note("counter", self.recording_id, -1)
        client = self.run.client
        client.stop_recording_subscription(self.subscription_id)
        wait_until(lambda: client.stop_position(self.recording_id) == position, "the end", STEP_S)
        note("stopped", self.recording_id, position)
        self.publication.close()
        return position


class Run:
    """An archive, a client of it, and the requests that are sent."""

    def __init__(self, root: Path, aeron_dir: Path, seed: int, properties: dict[str, str]) -> None:
        self.draw = random.Random(seed)
        control_channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        self.archive = Archive.launch(
            dir=root / "a" / "archive",
            aeron_dir=aeron_dir,
            properties={
                **FAST_DRIVER,
                **FAST_ARCHIVE,
                "aeron.archive.control.channel": control_channel,
                "aeron.archive.low.storage.space.threshold": "0",
                "aeron.archive.catalog.capacity": "1024",
                **properties,
            },
        )
        note("serving")
        self.client = aerotape.connect(aeron_dir=aeron_dir, control_request_channel=control_channel)
        self.counters = _Counters(aeron_dir)

    def go(self) -> None:
        """Send all requests."""
        client = self.client
        # Entries that are longer than a sector.
        first = Stream(self, 7, f"aeron:ipc?alias={'the-first-name-' * 20}")
        first.send(SEGMENT_LENGTH * 5 // 4)
        second = Stream(self, 8, f"aeron:ipc?mtu=8k|alias={'a-long-name-' * 20}")
        first.send(SEGMENT_LENGTH // 2)
        second.send(SEGMENT_LENGTH // 8)
        first.stop()
        second.send(SEGMENT_LENGTH // 8)
        first = Stream(self, 7, "aeron:ipc", first.recording_id)
        first.send(SEGMENT_LENGTH)
        end = first.stop()
        id_ = first.recording_id
        self.await_signal(lambda position: self.cut(id_, position), end - SEGMENT_LENGTH * 3 // 2)
        first = Stream(self, 7, "aeron:ipc", id_)
        first.send(SEGMENT_LENGTH)
        note("start", id_, SEGMENT_LENGTH)
        client.purge_segments(id_, SEGMENT_LENGTH)
        second.stop()
        self.await_sign_of_life()
        # Its entry is too small for the first of these, and then large enough for the other.
        for name in ("another-name-" * 30, "yet-another-name-" * 20):
            channel = f"aeron:ipc?alias={name}"
            note("new channel", second.recording_id, channel)
            client.update_channel(second.recording_id, channel)
            note("channel", second.recording_id, channel)
        third = Stream(self, 9, "aeron:ipc")
        third.send(SEGMENT_LENGTH // 4)
        note("purge", second.recording_id)
        client.purge_recording(second.recording_id)
        note("purged", second.recording_id)
        third.await_recorded()
        first.await_recorded()

    def cut(self, recording_id: int, position: int) -> int:
        """Request a truncation at the first message after a position."""
        from aerotape.replay.offline.directory import open_directory

        recording = open_directory(self.archive.archive_dir).recording(recording_id)
        found = next(m for m in recording.messages() if m.position >= position)
        note("cut", recording_id, found.position)
        return self.client.truncate_recording(recording_id, found.position)

    def await_signal(self, ask: Callable[[int], int], position: int) -> None:
        """Truncate and wait until the files are deleted."""
        before = self.count_files()
        assert ask(position) > 0
        wait_until(lambda: self.count_files() < before, "the deletion", STEP_S)
        time.sleep(0.05)

    def await_sign_of_life(self) -> None:
        """Wait until the mark file has changed, which happens once a second."""
        directory = self.archive.archive_dir

        def last() -> int:
            return MarkFile.read(directory).header.activity_timestamp_ms

        before = last()
        wait_until(lambda: last() != before, "a sign of life", STEP_S)

    def count_files(self) -> int:
        return len(list(self.archive.archive_dir.glob("*.rec")))


def main(arguments: list[str]) -> None:
    root, aeron_dir, seed, *properties = arguments
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    for name in ("INT", "LONG"):
        setattr(layout, name, _SeenStruct(getattr(layout, name)))
    say_places()
    note_entries()
    run = Run(Path(root), Path(aeron_dir), int(seed), dict(p.split("=", 1) for p in properties))
    run.go()
    # In the middle of it.
    import os

    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
