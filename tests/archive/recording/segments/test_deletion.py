"""Deletions of segment files: responses, their order, and refusals during a deletion."""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry, fill
from support.builders.segment_builder import SegmentBuilder
from support.daemon.recorded_responses import Client
from support.daemon.segment_parts import SegmentParts

from aerotape.catalog.file import lookup
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, EntryPlace, read_entry
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.segment_files import list_files_to_delete
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import ErrorCode


class Rig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = Client()
        self.is_ready = False
        self.woken = threading.Event()
        self.parts = SegmentParts(directory, wake=self.woken.set)
        self.deletions, self.locks = self.parts.deletions, self.parts.locks

    def delete(
        self,
        correlation_id: int,
        recording_id: int,
        prepare: list[Path] | Callable[[], list[Path]],
        **options: Any,
    ) -> None:
        """Delete files for a request of the client."""
        paths = prepare if callable(prepare) else lambda: prepare
        deletion = self.deletions.delete(recording_id, paths, **options)
        client: Any = self.client
        self.parts.respond(client, correlation_id, deletion.begun())

    def allows(self, recording_id: int) -> bool:
        """Whether a deletion may begin."""
        try:
            self.locks.check_free({recording_id})
        except ArchiveError as error:
            self.refusal = str(error)
            return False
        return True

    def files(self, *names: str) -> list[Path]:
        for name in names:
            (self.directory / name).write_bytes(b"data")
        return [self.directory / name for name in names]

    def work_until(self, condition: Callable[[], bool]) -> None:
        """Call `do_work` whenever woken, as the conductor does."""
        deadline_s = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline_s, self.client.received
            if self.woken.wait(0.05):
                self.woken.clear()
            self.parts.do_work()

    def is_deleted(self) -> bool:
        return bool(self.client.received) and self.client.received[-1][0] == "DELETE"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.parts.close()


def test_the_signal_follows_the_deletion(rig: Rig) -> None:
    """OK has the number of files; DELETE follows when the files are deleted."""
    paths = rig.files("3-0.rec", "3-65536.rec")
    retained = rig.files("33-0.rec", "4-0.rec")
    rig.delete(7, 3, paths)
    rig.work_until(rig.is_deleted)
    assert rig.client.received == [("ok", 7, 2), ("DELETE", 7, 3, -1, -1)]
    assert [path.exists() for path in paths + retained] == [False, False, True, True]


def test_a_request_without_files(rig: Rig) -> None:
    """DELETE is sent after an OK."""
    rig.delete(7, 3, [])
    rig.work_until(rig.is_deleted)
    assert rig.client.received == [("ok", 7, 0), ("DELETE", 7, 3, -1, -1)]
    assert rig.allows(3)


def test_one_deletion_at_a_time_per_recording(rig: Rig) -> None:
    """A second deletion of a recording is refused until the first is done."""
    rig.delete(7, 3, rig.files("3-0.rec"), is_ready=lambda: rig.is_ready, end_position=65536)
    assert rig.locks.deleted_to(3) == 65536
    assert not rig.allows(3)
    assert "in progress for recording id: 3: wait" in rig.refusal
    assert rig.allows(4)
    rig.is_ready = True
    rig.work_until(rig.is_deleted)
    assert rig.allows(3)
    assert rig.locks.deleted_to(3) is None


def test_a_deletion_waits_until_it_is_ready(rig: Rig) -> None:
    """Until then nothing is prepared or deleted, and the conductor's next call is due soon."""
    prepared: list[bool] = []
    [path] = rig.files("3-0.rec")

    def prepare() -> list[Path]:
        prepared.append(True)
        return [path]

    rig.delete(7, 3, prepare, is_ready=lambda: rig.is_ready)
    for _ in range(3):
        rig.parts.do_work()
        assert rig.parts.tasks.wants_within_ns
    assert rig.client.received == [] and path.exists() and not prepared
    rig.is_ready = True
    rig.work_until(rig.is_deleted)
    assert rig.client.received[0] == ("ok", 7, 1)
    assert prepared and not path.exists()
    assert rig.parts.tasks.wants_within_ns is None


def test_a_failed_preparation_is_the_response(rig: Rig) -> None:
    """No signal is sent."""

    def fail() -> list[Path]:
        raise StorageError("disk on fire", rig.directory)

    rig.delete(7, 3, fail)
    rig.work_until(lambda: bool(rig.client.received))
    assert rig.client.received == [("error", 7, ErrorCode.GENERIC, "disk on fire")]
    assert rig.allows(3)


def test_a_file_that_cannot_be_deleted_is_reported_before_the_signal(rig: Rig) -> None:
    """The others are deleted; a missing one counts as deleted."""
    stubborn = rig.directory / "3-0.rec"
    stubborn.mkdir()
    [other] = rig.files("3-131072.rec")
    rig.delete(7, 3, [stubborn, rig.directory / "3-65536.rec", other])
    rig.work_until(rig.is_deleted)
    ok, error, signal = rig.client.received
    assert ok == ("ok", 7, 3)
    assert error[:3] == ("error", 7, ErrorCode.GENERIC) and str(stubborn) in error[3]
    assert signal[0] == "DELETE"
    assert stubborn.exists() and not other.exists()


def test_the_finish_follows_the_files(rig: Rig) -> None:
    """The finish precedes the signal; its failure is reported to the client."""
    [path] = rig.files("3-0.rec")

    def finish() -> None:
        assert not path.exists()
        raise StorageError("no marks", path)

    rig.delete(7, 3, [path], finish=finish)
    rig.work_until(rig.is_deleted)
    assert [each[0] for each in rig.client.received] == ["ok", "error", "DELETE"]
    assert rig.client.received[1] == ("error", 7, ErrorCode.GENERIC, "no marks")


def test_files_renamed_for_deletion_are_found(rig: Rig) -> None:
    """A killed archive leaves such files; other names are ignored."""
    rig.files("3-0.rec", "3-65536.rec.del", "3-x.rec", "3-0.rec.del.bak", "33-0.rec", "3-1.txt")
    names = [each.path.name for each in list_files_to_delete(rig.directory, 3)]
    assert names == ["3-0.rec", "3-65536.rec.del"]


def test_a_granted_deletion_is_completed_before_the_archive_closes(rig: Rig) -> None:
    """The files of a deletion without an OK remain."""
    granted = rig.files("3-196608.rec", "3-131072.rec")
    retained = rig.files("3-0.rec", "5-0.rec")
    rig.delete(7, 3, granted)
    rig.delete(8, 5, retained[1:], is_ready=lambda: False)
    rig.work_until(lambda: ("ok", 7, 2) in rig.client.received)
    rig.parts.close()
    assert {path.name for path in rig.directory.iterdir()} == {path.name for path in retained}


def purge(directory: Path, recording_id: int, count: int) -> None:
    """Add `count` recordings, all but the first of them purged, and write the files of one."""
    stream = fill(SegmentBuilder(recording_id=recording_id), 60)
    stream.write(directory)
    with Catalog.open(directory, create=True) as catalog:
        for number in range(count):
            add_entry(catalog, stream, stop_position=stream.position)
            if number:
                catalog.change_state(number, RecordingState.DELETED)


def delete_left_over(rig: Rig) -> None:
    """Delete left-over files, as at the start of an archive."""
    with Catalog.open(rig.directory) as catalog:
        rig.deletions.delete_left_over(rig.directory, catalog.purged_ids())
    assert rig.woken.wait(10)
    rig.parts.do_work()


def test_files_of_purged_recordings_are_deleted_at_a_start(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only entries of recordings with files are read; files of other recordings remain."""
    purge(rig.directory, 3, 40)
    rig.files("3-0.rec.del", "aerotape-3.time-index")
    retained = rig.files("0-0.rec", "41-0.rec", "3-x.rec", "aerotape-41.time-index")
    read: list[int] = []

    def note(data: mmap.mmap, place: EntryPlace) -> CatalogEntry:
        read.append(place.recording_id)
        return read_entry(data, place)

    monkeypatch.setattr(lookup, "read_entry", note)
    delete_left_over(rig)
    left = {path.name for path in rig.directory.iterdir()}
    assert left == {path.name for path in retained} | {"archive.catalog"}
    assert read == [3]
