"""Segment requests during other requests, with damage, and while the archive closes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_recording
from support.builders.segment_builder import SegmentBuilder
from support.daemon.recorded_responses import Client
from support.daemon.segment_parts import SegmentParts

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.segments.deletion import Deletion
from aerotape.catalog import layout
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.recovery import suspect_marks
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import ErrorCode
from aerotape.waiting import Pause, Task

SEGMENT = 131_072
EARLIER, LATER = 0, 1


class Rig:
    """Two recordings that meet at a segment boundary, and the components that change them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = Client()
        self.errors = ErrorLog()
        for start in (0, 4):
            builder = SegmentBuilder(start_position=start * SEGMENT)
            while builder.position < (start + 4) * SEGMENT:
                builder.message(b"message")
                builder.pad_term()
            add_recording(directory, builder)
        self.catalog = Catalog.open(directory)
        self.parts = SegmentParts(directory, self.catalog, self.errors)
        self.moves, self.locks = self.parts.moves, self.parts.locks

    def occupy(self) -> threading.Event:
        """Block the thread for work on files until the returned event is set."""
        free = threading.Event()
        self.parts.files.submit(lambda: free.wait(10))
        return free

    def respond(self, delete: Callable[[], Deletion]) -> None:
        """Respond to the request for a deletion as the handler of requests does."""
        try:
            self.parts.respond(self.client, 7, delete().begun())
        except ArchiveError as error:
            self.client.send_error(7, error.error_code, str(error))

    def work_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, self.client.received
            self.parts.do_work()

    def answers(self, count: int = 1) -> list[tuple[Any, ...]]:
        """Wait for a number of responses and signals."""
        self.work_until(lambda: len(self.client.received) >= count)
        return self.client.received

    def name_of(self, copy: Path) -> str:
        return copy.relative_to(self.directory).as_posix()

    def files(self) -> set[str]:
        return {path.name for path in self.directory.glob("*.rec")}


class LimitedChanges:
    """A disk that responds for a number of changes."""

    def __init__(self) -> None:
        self.count = 0

    def await_disk(self) -> Task[None]:
        while not self.count:
            yield Pause()
        self.count -= 1


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.parts.close()
    made.catalog.close()


def attach(rig: Rig) -> None:
    rig.parts.attach(rig.client, 7, EARLIER)


def migrate(rig: Rig) -> None:
    rig.parts.migrate(rig.client, 7, EARLIER, LATER)


def delete_detached(rig: Rig) -> None:
    rig.respond(lambda: rig.moves.delete_detached(EARLIER))


def purge(rig: Rig) -> None:
    rig.respond(lambda: rig.moves.purge(EARLIER, SEGMENT))


REQUESTS = [attach, migrate, delete_detached, purge]


@pytest.mark.parametrize("request_", REQUESTS)
def test_nothing_is_moved_while_segments_are_deleted(
    rig: Rig, request_: Callable[[Rig], None]
) -> None:
    """The client receives an error, and the recording is unchanged."""
    rig.parts.deletions.delete(EARLIER, list, is_ready=lambda: False)
    request_(rig)
    [(kind, correlation_id, code, message)] = rig.client.received
    assert (kind, correlation_id, code) == ("error", 7, ErrorCode.GENERIC)
    assert message == (
        "another delete operation in progress for recording id: 0: wait for the DELETE signal"
    )
    assert rig.catalog.start_position(EARLIER) == 0


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("under_way", [attach, migrate])
def test_nothing_is_moved_while_segments_are_moved(
    rig: Rig, under_way: Callable[[Rig], None], request_: Callable[[Rig], None]
) -> None:
    """The second request is refused at once; the first one is not affected."""
    free = rig.occupy()
    under_way(rig)
    request_(rig)
    [(kind, correlation_id, code, message)] = rig.client.received
    assert (kind, correlation_id, code) == ("error", 7, ErrorCode.GENERIC)
    assert message.startswith("segment files of recording 0 are being attached, migrated or")
    assert rig.locks.is_locked(EARLIER)
    free.set()
    answer = rig.answers(2)[1]
    assert answer == ("ok", 7, 4 if under_way is migrate else 0)
    rig.work_until(lambda: not rig.locks.is_locked(EARLIER))


def test_both_recordings_of_a_migration_are_locked(rig: Rig) -> None:
    free = rig.occupy()
    migrate(rig)
    rig.parts.attach(rig.client, 8, LATER)
    assert rig.client.received[0][:2] == ("error", 8)
    free.set()
    assert rig.answers(3)[1:] == [("ok", 7, 4), ("DELETE", 7, EARLIER, -1, -1)]
    assert rig.files() == {f"1-{base}.rec" for base in range(0, 8 * SEGMENT, SEGMENT)}
    assert rig.catalog.start_position(LATER) == 0
    assert rig.catalog.stop_position(EARLIER) == 0


@pytest.mark.parametrize(
    ("source", "stop"),
    [(EARLIER, 2 * SEGMENT), (LATER, 6 * SEGMENT), (LATER, 6 * SEGMENT - 64)],
)
def test_all_files_past_a_lowered_stop_position_are_quarantined(
    rig: Rig, source: int, stop: int
) -> None:
    """At a segment boundary or within a segment: the empty recording's files are purged."""
    rig.catalog.set_stop_position(source, stop)
    if source == EARLIER:
        rig.catalog.set_start_position(LATER, stop)
    first = (4 * source + 2) * SEGMENT
    names = [f"{source}-{base}.rec" for base in (first, first + SEGMENT)]
    frames = [(rig.directory / name).read_bytes() for name in names]
    others = rig.files() - set(names)
    target = 1 - source
    rig.parts.migrate(rig.client, 7, source, target)
    rig.answers(2)
    rig.work_until(lambda: not rig.locks.is_locked(source))
    copies = sorted(rig.directory.glob("aerotape-quarantine/*/*.rec*"))
    assert [each.read_bytes() for each in copies] == frames
    notes = suspect_marks.read_marks(rig.directory)[target]
    assert {note.quarantine for note in notes} == {rig.name_of(each) for each in copies}
    assert sorted(note.position for note in notes) == [first, first + SEGMENT]
    renamed = {name.replace(f"{source}-", f"{target}-", 1) for name in others}
    assert rig.files() == {n for n in renamed | others if n.startswith(f"{target}-")}
    assert not list(rig.directory.glob(f"{source}-*.rec"))


def test_a_migration_that_cannot_quarantine_changes_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the mark cannot be written, the files have their old names again."""
    past_stop = rig.directory / f"{EARLIER}-{4 * SEGMENT}.rec"
    past_stop.write_bytes((rig.directory / f"{LATER}-{4 * SEGMENT}.rec").read_bytes())
    before = {path.name: path.read_bytes() for path in rig.directory.glob("*.rec")}

    def fail(*_: Any) -> None:
        raise StorageError("no space", rig.directory)

    monkeypatch.setattr(suspect_marks, "add_notes", fail)
    migrate(rig)
    [(kind, _, _, message)] = rig.answers()
    assert (kind, message) == ("error", "no space")
    assert {path.name: path.read_bytes() for path in rig.directory.glob("*.rec")} == before
    assert rig.catalog.stop_position(EARLIER) == rig.catalog.start_position(LATER)


@pytest.mark.parametrize("recording_id", [EARLIER, LATER])
def test_nothing_is_detached_while_segments_migrate(rig: Rig, recording_id: int) -> None:
    """A detach during a migration is refused: it could move the source's start past its end."""
    free = rig.occupy()
    migrate(rig)
    with pytest.raises(ArchiveError, match="being moved"):
        rig.moves.detach(recording_id, (4 * recording_id + 1) * SEGMENT)
    free.set()
    assert rig.answers(2) == [("ok", 7, 4), ("DELETE", 7, EARLIER, -1, -1)]
    source, target = (rig.catalog.descriptor(each) for each in (EARLIER, LATER))
    assert (source.start_position, source.stop_position) == (0, 0)
    assert (target.start_position, target.stop_position) == (0, 8 * SEGMENT)


def test_a_start_that_moves_during_an_attach(rig: Rig) -> None:
    """A detach by another client during an attach is not undone."""
    rig.catalog.set_start_position(EARLIER, SEGMENT)
    free = rig.occupy()
    attach(rig)
    rig.catalog.set_start_position(EARLIER, 3 * SEGMENT)
    free.set()
    [(kind, _, code, message)] = rig.answers()
    assert (kind, code) == ("error", ErrorCode.GENERIC)
    assert "try again" in message
    assert rig.catalog.start_position(EARLIER) == 3 * SEGMENT


def test_each_change_of_the_catalog_waits_for_the_disk(rig: Rig) -> None:
    """The requests have begun, and the disk stands still when the catalog is changed."""

    def work(count: int) -> tuple[int, int, int, int]:
        """Let a number of changes pass; return the positions of both recordings."""
        changes.count = count
        looked = rig.parts.files.submit(lambda: None)
        rig.work_until(looked.done)
        for _ in range(3):
            rig.parts.do_work()
        assert changes.count == 0
        first, second = (rig.catalog.descriptor(each) for each in (EARLIER, LATER))
        return (
            *(first.start_position, first.stop_position),
            *(second.start_position, second.stop_position),
        )

    changes: Any = LimitedChanges()
    rig.moves.changes = changes
    rig.catalog.set_start_position(EARLIER, SEGMENT)
    attach(rig)
    assert work(0) == (SEGMENT, 4 * SEGMENT, 4 * SEGMENT, 8 * SEGMENT)
    assert work(1) == (0, 4 * SEGMENT, 4 * SEGMENT, 8 * SEGMENT)
    assert rig.client.received == [("ok", 7, 1)]
    migrate(rig)
    assert work(0) == (0, 4 * SEGMENT, 4 * SEGMENT, 8 * SEGMENT)
    assert work(1) == (0, 4 * SEGMENT, 0, 8 * SEGMENT)
    assert work(0) == (0, 4 * SEGMENT, 0, 8 * SEGMENT)
    assert work(1) == (0, 0, 0, 8 * SEGMENT)
    assert rig.answers(3)[1:] == [("ok", 7, 4), ("DELETE", 7, EARLIER, -1, -1)]


def test_a_recording_with_a_damaged_descriptor_is_refused(rig: Rig) -> None:
    """It is refused before any file is read or created."""
    entry = rig.catalog.entry(EARLIER)
    begin = entry.offset + layout.DESCRIPTOR_HEADER_LENGTH
    rig.catalog._file.store(begin + layout.SEGMENT_FILE_LENGTH_OFFSET, layout.INT.pack(12))
    for request in REQUESTS:
        request(rig)
        (kind, _, _, message) = rig.client.received.pop()
        assert kind == "error" and "damaged descriptor" in message
    assert not rig.locks.is_locked(EARLIER)


def test_too_many_segments_are_not_deleted(rig: Rig) -> None:
    """A damaged position, which means billions of file names, is refused."""
    with pytest.raises(StorageError, match="cannot have"):
        rig.moves.purge(EARLIER, SEGMENT << 21)
    assert rig.catalog.start_position(EARLIER) == 0


def test_an_internal_error_is_reported_and_logged(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in the work on files ends the request, not the conductor."""

    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("aerotape.archive.recording.segments.operations.find_detached", fail)
    attach(rig)
    [(kind, _, code, message)] = rig.answers()
    assert (kind, code) == ("error", ErrorCode.GENERIC)
    assert "a bug" in message
    assert caplog.records[0].exc_info is not None
    assert not rig.locks.is_locked(EARLIER)


def test_closing_the_archive_during_a_migration(rig: Rig) -> None:
    """The migration is cancelled; the changed files do no harm."""
    free = rig.occupy()
    migrate(rig)
    free.set()
    rig.parts.files.close()
    rig.parts.deletions.close()
    rig.parts.do_work()
    assert rig.client.received == [] or rig.client.received[0][0] == "error"
    assert rig.catalog.start_position(LATER) in (0, 4 * SEGMENT)
    assert {f"0-{base}.rec" for base in range(0, 4 * SEGMENT, SEGMENT)} <= rig.files()
