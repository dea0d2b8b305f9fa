"""Kills between any two steps of a segment request: both archives open the directory."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.recorded_responses import Client
from support.daemon.segment_parts import SegmentParts
from support.jvm.java import JavaArchive, JavaClient

from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery.refresh import refresh
from aerotape.replay.offline.directory import open_directory

pytestmark = pytest.mark.crash

TERM = 65_536
SEGMENT = 131_072
BEFORE, AFTER = 0, 1


class Killed(BaseException):
    """Stands for the death of the process."""


@contextmanager
def killed_before(monkeypatch: pytest.MonkeyPatch, step: int) -> Iterator[list[str]]:
    """Count the changes of the directory; raise Killed from number `step` on."""
    steps: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if len(steps) >= step:
                raise Killed
            steps.append(name)
            return real(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("link", "unlink", "rename", "pwrite", "posix_fallocate", "fsync"):
            patch.setattr(os, name, counted(name, getattr(os, name)))
        for name in ("set_start_position", "set_stop_position"):
            patch.setattr(Catalog, name, counted(name, getattr(Catalog, name)))
        yield steps


def two_recordings(archive_dir: Path) -> dict[int, bytes]:
    """Record one stream as two recordings that meet at a segment boundary; return messages by
    position."""
    archive_dir.mkdir()
    first = SegmentBuilder()
    while first.position < 3 * SEGMENT:
        first.message(b"%d" % first.position * 900)
        if first.position % TERM > 60_000:
            first.pad_term()
    second = SegmentBuilder(start_position=3 * SEGMENT)
    while second.position < 5 * SEGMENT + 4096:
        second.message(b"%d" % second.position * 900)
    for builder in (first, second):
        add_recording(archive_dir, builder)
    (archive_dir / f"{BEFORE}-{3 * SEGMENT}.rec").unlink(missing_ok=True)
    messages = (*first.messages, *second.messages)
    return {message.position: message.payload for message in messages}


def migrate_forward(catalog: Catalog, parts: SegmentParts, client: Any) -> None:
    parts.migrate(client, 1, BEFORE, AFTER)


def migrate_back(catalog: Catalog, parts: SegmentParts, client: Any) -> None:
    parts.migrate(client, 1, AFTER, BEFORE)


def purge(catalog: Catalog, parts: SegmentParts, client: Any) -> None:
    parts.respond(client, 1, parts.moves.purge(BEFORE, 2 * SEGMENT).begun())


def attach(catalog: Catalog, parts: SegmentParts, client: Any) -> None:
    catalog.set_start_position(BEFORE, 2 * SEGMENT)
    parts.attach(client, 1, BEFORE)


def update_channel(catalog: Catalog, parts: SegmentParts, client: Any) -> None:
    longer = "aeron:ipc?alias=" + "x" * 500
    catalog.replace_channel(BEFORE, stripped_channel=longer, original_channel=longer)
    client.send_ok(1)


def run(archive_dir: Path, request: Callable[..., None]) -> list[tuple[Any, ...]]:
    """Run a request as the conductor does; return the responses and signals."""
    client = Client()
    woken = threading.Event()
    with Catalog.open(archive_dir) as catalog:
        parts = SegmentParts(archive_dir, catalog, wake=woken.set, sync=True)
        try:
            request(catalog, parts, client)
            # A migration has three segments: its OK precedes the DELETE signal.
            while not client.received or client.received == [("ok", 1, 3)]:
                assert woken.wait(10), client.received
                woken.clear()
                parts.do_work()
        finally:
            parts.close()
    return client.received


def readable(archive_dir: Path) -> dict[int, bytes]:
    """Return the messages of all recordings with complete files."""
    found: dict[int, bytes] = {}
    for recording in open_directory(archive_dir).recordings():
        names = {path.name for path in archive_dir.iterdir()}
        start, stop = recording.start_position, recording.recorded_position
        bases = range(start - start % TERM, stop, SEGMENT)
        if all(f"{recording.recording_id}-{base}.rec" in names for base in bases):
            found |= {message.position: message.payload for message in recording.messages()}
    return found


@pytest.mark.parametrize("request_", [migrate_forward, migrate_back, attach, update_channel])
def test_no_position_is_lost_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: Callable[..., None]
) -> None:
    """Every message is in one of the recordings with complete files, and a second try succeeds
    if the first had no visible effect."""
    pristine = tmp_path / "pristine"
    messages = two_recordings(pristine)
    for step in itertools.count():
        archive_dir = tmp_path / f"{step}"
        shutil.copytree(pristine, archive_dir)
        with killed_before(monkeypatch, step) as steps:
            try:
                run(archive_dir, request_)
            except Killed:
                pass
            else:
                break
        if request_ is not attach:
            assert readable(archive_dir).keys() == messages.keys(), steps
            assert readable(archive_dir) == messages
        with Catalog.open(archive_dir) as catalog:
            refresh(catalog, archive_dir, now_ms=1)
            before = [catalog.descriptor(each) for each in (BEFORE, AFTER)]
        if before[AFTER].start_position == before[BEFORE].stop_position == 3 * SEGMENT:
            assert run(archive_dir, request_)[0][0] == "ok"
            assert readable(archive_dir) == messages
    assert step > 3 or request_ is attach
    assert readable(archive_dir) == messages


@pytest.mark.jvm
@pytest.mark.parametrize("request_", [migrate_forward, migrate_back, purge, update_channel])
def test_java_opens_the_directory_after_a_kill(
    tmp_path: Path, aeron_dir: Path, monkeypatch: pytest.MonkeyPatch, request_: Callable[..., None]
) -> None:
    """After a kill, the Java archive starts, lists both recordings and replays them."""
    pristine = tmp_path / "pristine"
    two_recordings(pristine)
    for step in itertools.count(1, 3):
        archive_dir = tmp_path / f"{step}"
        shutil.copytree(pristine, archive_dir)
        killed = False
        with killed_before(monkeypatch, step):
            try:
                run(archive_dir, request_)
            except Killed:
                killed = True
        with (
            JavaArchive(archive_dir, aeron_dir) as archive,
            JavaClient(archive.aeron_dir) as client,
        ):
            client.connect(archive.control_channel)
            rows = client.call("listRecordings", 0, 10)
            assert [row["recordingId"] for row in rows] == [BEFORE, AFTER]
            expected = open_directory(archive_dir).recordings()
            for row, recording in zip(rows, expected, strict=True):
                assert row["startPosition"] == recording.start_position
                assert row["stopPosition"] == recording.recorded_position
                assert row["originalChannel"] == recording.descriptor.original_channel
            [whole] = rows[-1:]
            if f"{AFTER}-{5 * SEGMENT}.rec" in {path.name for path in archive_dir.iterdir()}:
                length = whole["stopPosition"] - whole["startPosition"]
                replay = client.call(
                    "replay", AFTER, whole["startPosition"], length, "aeron:ipc", 9
                )
                count = sum(1 for _ in expected[AFTER].messages())
                assert client.poll(replay, count + 1)["count"] == count
                client.close_resource(replay)
        if not killed:
            break
    assert step > 1
