"""Handlers of truncate and purge, and refusals during them, on a real catalog."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.builders.built_archive import add_entry
from support.builders.segment_builder import SegmentBuilder
from support.daemon.segment_parts import SegmentParts

from aerotape.archive.control.control_session_adapter import respond
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.extension import clear_stale_tail, refuse_request
from aerotape.archive.recording.truncation import cut_back
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.segment_files import list_files_to_delete, list_segment_files
from aerotape.codecs.generated import archive as codecs
from aerotape.protocol import ErrorCode

START = 65_536 + 4_096
SEGMENT = 131_072


class Session:
    """Stores ("OK", number), (error code, text) or the name of a signal."""

    session_id = 5

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        self.sent.append(("OK", relevant_id))

    def send_error(self, correlation_id: int, error_code: int, message: str) -> None:
        self.sent.append((int(error_code), message))

    def send_signal(
        self, _correlation_id: int, _id: int, _subscription: int, _position: int, signal: Any
    ) -> None:
        self.sent.append(signal.name)


class Replays:
    """Replays that last until the test ends them."""

    def __init__(self) -> None:
        self.is_running = False

    def end_all(self, recording_id: int) -> Callable[[], bool]:
        return lambda: not self.is_running

    def is_replayed(self, recording_id: int) -> bool:
        return self.is_running


class Recordings:
    """Recordings in progress: none, or the named ones."""

    def __init__(self) -> None:
        self.active: set[int] = set()

    def session(self, recording_id: int) -> int | None:
        return recording_id if recording_id in self.active else None


class Replications:
    """Replications in progress: none, or to the named recordings."""

    def __init__(self) -> None:
        self.destinations: set[int] = set()

    def recording_ids(self) -> set[int]:
        return self.destinations


class Conductor:
    """The part of a conductor that the handlers use, with a recording of five segments."""

    def __init__(self, archive_dir: Path) -> None:
        self.archive_dir = archive_dir
        self.errors = ErrorLog()
        self.catalog = Catalog.open(archive_dir, create=True)
        self.replays = Replays()
        self.recordings = Recordings()
        self.replications = Replications()
        self.parts = SegmentParts(archive_dir, self.catalog, self.errors)
        self.deletions, self.locks = self.parts.deletions, self.parts.locks
        self.services = self.parts.services(
            self.catalog, self.recordings, self.replays, self.replications, errors=self.errors
        )
        self.session = Session()
        self.built = SegmentBuilder(start_position=START)
        numbers = random.Random(4)
        while self.built.position < START + 4 * SEGMENT:
            self.built.message(numbers.randbytes(numbers.randrange(100, 9_000)))
        self.built.write(archive_dir)
        self.recording_id = self.add(stop_position=self.built.position)

    def add(self, **changes: Any) -> int:
        return add_entry(self.catalog, self.built, **changes)

    @property
    def descriptor(self) -> RecordingDescriptor:
        return self.catalog.descriptor(self.recording_id)

    @property
    def bases(self) -> list[int]:
        return [
            each.base_position for each in list_segment_files(self.archive_dir, self.recording_id)
        ]

    def ask(self, request: Any) -> list[Any]:
        """Handle a request; return what was sent immediately."""
        self.session.sent.clear()
        session: Any = self.session
        respond(self.services, session, request)
        return list(self.session.sent)

    def truncate(self, position: int) -> list[Any]:
        return self.ask(
            codecs.TruncateRecordingRequest(recording_id=self.recording_id, position=position)
        )

    def purge(self) -> list[Any]:
        return self.ask(codecs.PurgeRecordingRequest(recording_id=self.recording_id))

    def finish(self) -> list[Any]:
        """Work until all is sent; return it."""
        deadline_s = time.monotonic() + 60
        while "DELETE" not in self.session.sent:
            assert time.monotonic() < deadline_s, self.session.sent
            self.parts.do_work()
        return list(self.session.sent)


@pytest.fixture
def conductor(tmp_path: Path) -> Iterator[Conductor]:
    made = Conductor(tmp_path)
    yield made
    made.parts.close()
    made.catalog.close()


def test_conflicting_requests_are_refused(conductor: Conductor) -> None:
    """While replays end or files are deleted, a recording is not truncated, purged or extended."""
    other = conductor.add(stop_position=START + 64)
    conductor.replays.is_running = True
    middle = conductor.built.messages[100].position
    assert conductor.truncate(middle) == []
    [(code, text)] = conductor.truncate(middle)
    assert code == 0 and "DELETE signal" in text
    conductor.replays.is_running = False
    [(code, text)] = conductor.purge()
    assert code == 0 and "DELETE signal" in text
    refusal = refuse_request(
        conductor.catalog,
        conductor.recording_id,
        1001,
        is_recorded=False,
        deleted_to=conductor.locks.deleted_to(conductor.recording_id),
    )
    assert refusal is not None and refusal[0] == 0 and "DELETE signal" in refusal[1]
    conductor.locks.check_free({other})
    conductor.session.sent.clear()
    assert conductor.finish()[-1] == "DELETE"
    assert conductor.descriptor.stop_position == middle
    assert conductor.truncate(START) == []
    assert conductor.finish()[-1] == "DELETE"
    assert conductor.bases == []


def test_deleting_first_segments_permits_extending(conductor: Conductor) -> None:
    """Only the deletion of its last segments prevents an extension."""
    conductor.session.sent.clear()
    conductor.deletions.delete(
        conductor.recording_id,
        list,
        is_ready=lambda: False,
        end_position=65_536,
    )
    deleted_to = conductor.locks.deleted_to(conductor.recording_id)
    arguments: Any = (conductor.catalog, conductor.recording_id, 1001)
    assert refuse_request(*arguments, is_recorded=False, deleted_to=deleted_to) is None
    refusal = refuse_request(*arguments, is_recorded=True, deleted_to=None)
    assert refusal is not None and refusal[0] == 2


def test_the_catalog_is_written_first(conductor: Conductor) -> None:
    """The new stop position is written before any file is changed."""
    files = conductor.bases
    conductor.replays.is_running = True
    conductor.truncate(files[2])
    assert conductor.descriptor.stop_position == files[2]
    assert conductor.bases == files
    conductor.replays.is_running = False
    assert conductor.finish() == [("OK", len(files) - 2), "DELETE"]
    assert conductor.bases == files[:2]


@pytest.mark.parametrize("offset", [32, -32])
def test_a_position_within_a_frame_changes_nothing(conductor: Conductor, offset: int) -> None:
    """The position is refused; with a missing segment file the error names the file."""
    message = conductor.built.messages[100]
    before = conductor.descriptor
    [(code, text)] = conductor.truncate(message.position + offset)
    assert code == 0 and f"position={message.position + offset}" in text
    assert conductor.descriptor == before
    path = conductor.built.segment_path(conductor.archive_dir, message.position)
    path.unlink()
    [(code, text)] = conductor.truncate(message.position)
    assert code == 0 and str(path) in text
    assert conductor.descriptor == before
    assert conductor.locks.deleted_to(conductor.recording_id) is None


@pytest.mark.parametrize("deleted", range(5))
@pytest.mark.parametrize("is_cleared", [False, True])
def test_an_interrupted_truncation_can_be_completed(
    conductor: Conductor, deleted: int, is_cleared: bool
) -> None:
    """After truncating again or extending, only data below the position remains."""
    position = conductor.built.messages[60].position
    descriptor = conductor.descriptor
    path = conductor.built.segment_path(conductor.archive_dir, position)
    offset = position - conductor.built.segment_base(position)
    original = path.read_bytes()
    conductor.catalog.set_stop_position(conductor.recording_id, position)
    if is_cleared:
        for file in cut_back(conductor.archive_dir, descriptor, position)[:deleted]:
            file.unlink()
    retained = [base for base in conductor.bases if base <= conductor.built.segment_base(position)]
    if deleted % 2:
        conductor.truncate(position)
        conductor.finish()
    else:
        clear_stale_tail(conductor.archive_dir, conductor.descriptor, 1)
    assert conductor.bases == retained
    assert path.read_bytes() == original[:offset].ljust(SEGMENT, b"\0")
    conductor.purge()
    conductor.finish()
    assert list_files_to_delete(conductor.archive_dir, conductor.recording_id) == []


def test_damaged_recordings(conductor: Conductor) -> None:
    """One with an invalid descriptor is not truncated; one without an end can be purged."""
    endless = conductor.add()
    impossible = conductor.add(term_buffer_length=100, stop_position=START + 64)
    [(code, text)] = conductor.ask(
        codecs.TruncateRecordingRequest(recording_id=impossible, position=START)
    )
    assert code == 0 and "damaged" in text
    [(code, _)] = conductor.ask(
        codecs.TruncateRecordingRequest(recording_id=endless, position=START)
    )
    assert code == 2
    conductor.recordings.active.add(endless)
    [(code, _)] = conductor.ask(codecs.PurgeRecordingRequest(recording_id=endless))
    assert code == 2
    conductor.recordings.active.clear()
    for recording_id in (endless, impossible):
        conductor.ask(codecs.PurgeRecordingRequest(recording_id=recording_id))
        assert conductor.finish() == [("OK", 0), "DELETE"]
        assert not conductor.catalog.has_recording(recording_id)


def test_a_recording_is_not_purged_while_it_is_replicated_to(conductor: Conductor) -> None:
    """The recording is stopped while the source is queried, and will be extended."""
    conductor.replications.destinations = {conductor.recording_id}
    [(code, text)] = conductor.purge()
    assert code == ErrorCode.ACTIVE_RECORDING
    assert "replicated to" in text
    assert conductor.catalog.has_recording(conductor.recording_id)
    conductor.replications.destinations = {conductor.recording_id + 1}
    conductor.purge()
    assert conductor.finish()[0][0] == "OK"


def test_a_purge_deletes_the_marks_of_a_recording(conductor: Conductor) -> None:
    """Quarantined data of the recording is deleted too."""
    mark = conductor.archive_dir / f"aerotape-{conductor.recording_id}.suspect"
    mark.write_bytes(b"x")
    quarantine = conductor.archive_dir / f"aerotape-quarantine/{conductor.recording_id}-64"
    quarantine.mkdir(parents=True)
    conductor.purge()
    assert conductor.finish()[-1] == "DELETE"
    assert not mark.exists() and not quarantine.exists()


def test_a_purge_retains_files_with_frames_of_other_positions(conductor: Conductor) -> None:
    """Misnamed files are reported and remain, although the recording is purged.

    The next start of an archive does not delete them either.
    """
    other = SegmentBuilder(recording_id=conductor.add(stream_id=7), stream_id=7)
    other.message(b"not to be lost" * 100)
    other.write(conductor.archive_dir)
    [path] = list_segment_files(conductor.archive_dir, other.recording_id)
    mistaken = conductor.archive_dir / f"{conductor.recording_id}-{40 * SEGMENT}.rec"
    path.path.rename(mistaken)
    before, count = mistaken.read_bytes(), len(conductor.bases)
    conductor.purge()
    ok, (code, text), signal = conductor.finish()
    assert (ok, code, signal) == (("OK", count - 1), ErrorCode.GENERIC, "DELETE")
    assert text.startswith(f"left {mistaken}: its first frame has stream id 7")
    assert mistaken.read_bytes() == before
    assert conductor.bases == [40 * SEGMENT]
    assert not conductor.catalog.has_recording(conductor.recording_id)
