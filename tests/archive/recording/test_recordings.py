"""Recordings that end before they have a position counter, with fakes of the driver's objects."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.daemon.recorded_responses import Client
from support.daemon.segment_parts import SegmentParts
from support.model.log_buffer import write_log_buffer

from aerotape.archive.control.requests.recording import ClientObserver
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.recordings import Recordings
from aerotape.archive.replication.replication_session import ReplicationSession
from aerotape.archive.replication.request import ReplicationRequest
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.forcing import force_segments
from aerotape.codecs.generated.archive import RecordingSignal, SourceLocation
from aerotape.counter_keys import CounterType
from aerotape.durability import Durability
from aerotape.errors import AeronError, ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION
from aerotape.worker_arguments import RecordArguments

CHANNEL, STREAM_ID = "aeron:ipc", 10
LEDGER = Durability("vd", bytes(range(16)))


class Counter:
    """A counter without a driver."""

    def __init__(self) -> None:
        self.value = 0
        self.is_closed = False

    def add(self, delta: int) -> None:
        self.value += delta

    def set(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        return self.value

    def close(self) -> None:
        self.is_closed = True


class Pending:
    """A response of the driver, available once `answer` is set."""

    registration_id = 77

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.is_cancelled = False

    def poll(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel(self) -> None:
        self.is_cancelled = True


class Image:
    """An image of the subscription."""

    subscription_registration_id = Pending.registration_id
    session_id = 3
    initial_term_id = 7
    join_position = 0
    term_buffer_length = 65_536
    mtu_length = 1_408
    source_identity = "aeron:ipc"
    correlation_id = 55
    stream_id = STREAM_ID

    def release(self) -> None:
        """Nothing is held."""


class Recorder:
    """Stores the ids of the recordings started, synced and stopped."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.arguments = RecordArguments(-1, 0, 0)

    def record(self, _image: Any, _counter: Any, arguments: RecordArguments) -> None:
        self.calls.append(("record", arguments.recording_id))
        self.arguments = arguments

    def request_sync(self, recording_id: int) -> None:
        self.calls.append(("sync", recording_id))

    def stop_recording(self, recording_id: int, position: int, timeout_ns: int) -> None:
        self.calls.append(("stop", recording_id))
        self.stopped_at = position, timeout_ns

    def discard(self, image: Any) -> None:
        self.calls.append(("discard", image.session_id))


class Rig:
    """Recordings on a real catalog, with a new image."""

    def __init__(
        self, directory: Path, durability: Durability | None = None, *, is_announced: bool = True
    ) -> None:
        self.directory = directory
        self.requester, self.recorder, self.image = Client(), Recorder(), Image()
        self.accept(0)
        session: Any = self.requester
        self.observer = ClientObserver(session, 1)
        self.position, self.confirmed = Pending(), Pending()
        self.labels: list[str] = []
        self.sessions = Counter()
        errors = ErrorLog()
        subscription = SimpleNamespace(close=lambda: None)
        client: Any = SimpleNamespace(
            aeron_dir=str(directory),
            counters=lambda: SimpleNamespace(rows=self.counters),
            async_add_subscription=lambda *_, **__: Pending(subscription),
            async_add_counter=self.add_counter,
        )
        config: Any = SimpleNamespace(
            max_concurrent_recordings=20,
            connect_timeout_ns=5_000_000_000,
            message_timeout_ns=7_000_000_000,
            segment_file_length=131_072,
            file_sync_level=0,
            recording_events_enabled=False,
            time_index_interval_ns=0,
        )
        storage: Any = SimpleNamespace(refuse=lambda: None, watch=lambda: None)
        changes: Any = SimpleNamespace(
            does_disk_respond=lambda: True, run_when_disk_responds=lambda change: change()
        )
        sessions: Any = self.sessions
        recorder: Any = self.recorder
        mailbox: Any = None
        self.catalog = Catalog.open(directory, create=True)
        self.parts = SegmentParts(directory, self.catalog, errors)
        self.recordings = Recordings(
            config=config,
            archive_id=1,
            archive_dir=directory,
            client=client,
            mailbox=mailbox,
            catalog=self.catalog,
            recorder=recorder,
            storage=storage,
            changes=changes,
            locks=self.parts.locks,
            files=self.parts.files,
            session_counter=sessions,
            errors=errors,
        )
        image: Any = self.image
        self.durability = durability
        self.start()
        if is_announced:
            self.recordings.on_image(image)
        assert self.requester.kinds == ["OK"]

    def add_counter(self, type_id: int, key: bytes, label: str) -> Pending:
        assert int.from_bytes(key[:8], "little") in (0, 1)
        self.labels.append(label)
        return self.position if type_id == CounterType.RECORDING_POSITION else self.confirmed

    def start(self, *, auto_stop: bool = False, extends: int | None = None) -> None:
        self.recordings.start(
            self.observer,
            stream_id=STREAM_ID,
            channel=CHANNEL,
            source_location=SourceLocation.LOCAL,
            auto_stop=auto_stop,
            extends=extends,
            durability=self.durability,
        )
        self.recordings.do_work()

    def counters(self, type_id: int) -> list[Any]:
        """The driver has an image for the subscription, of a publication over IPC."""
        key = struct.pack("<qii", Pending.registration_id, Image.session_id, STREAM_ID)
        row = (0, type_id, key, "", 0, 0, Image.correlation_id, 0)
        return [row] if type_id == 4 else []

    def accept(self, position: int) -> None:
        """Let the publication have accepted messages up to a position."""
        image = self.image
        write_log_buffer(
            self.directory, image.correlation_id, image.initial_term_id, 65_536, position
        )

    def stop_channel(self) -> None:
        assert self.recordings.stop_channel(STREAM_ID, CHANNEL)

    def stop_identity(self) -> None:
        assert self.recordings.stop_identity(0)

    def close(self) -> None:
        self.recordings.close()

    def end(self) -> None:
        self.parts.close()
        self.catalog.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.end()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Rig]:
    """A recording with a durability."""
    made = Rig(tmp_path, LEDGER)
    yield made
    made.end()


@pytest.mark.parametrize("stop", [Rig.stop_channel, Rig.stop_identity])
def test_a_stop_before_the_counter_exists(rig: Rig, stop: Callable[[Rig], None]) -> None:
    """START precedes the response to the stop. The recorder receives the image with the position
    that the publication has at the stop, then STOP follows, and all is released.
    """
    rig.recordings.do_work()
    rig.accept(640)
    stop(rig)
    rig.requester.send_ok(2)
    rig.accept(960)
    rig.recordings.do_work()
    assert rig.requester.kinds == ["OK", "START", "OK"]
    assert rig.recorder.calls == []
    rig.position.answer = counter = Counter()
    rig.recordings.do_work()
    assert rig.recorder.calls == [("record", 0), ("stop", 0)]
    assert rig.recorder.stopped_at == (640, 7_000_000_000)
    assert not rig.recordings.is_idle
    rig.recordings.on_stopped(0, 640)
    assert rig.requester.kinds == ["OK", "START", "OK", "STOP"]
    assert counter.is_closed
    assert (list(rig.recordings), rig.sessions.value) == ([], 0)
    assert rig.recordings.is_idle
    assert rig.catalog.stop_position(0) == 640


def test_a_second_stop(rig: Rig) -> None:
    """The position of the first one counts; START is sent once."""
    rig.position.answer = Counter()
    rig.recordings.do_work()
    rig.accept(64)
    rig.stop_channel()
    rig.accept(96)
    assert not rig.recordings.stop_identity(0)
    rig.recordings.stop_all()
    rig.recordings.do_work()
    assert rig.recorder.calls == [("record", 0), ("stop", 0)]
    assert rig.recorder.stopped_at[0] == 64
    rig.recordings.on_stopped(0, 96, 0, None)
    assert rig.requester.kinds == ["OK", RecordingSignal.START.name, RecordingSignal.STOP.name]


def test_a_stop_before_the_image_is_announced(tmp_path: Path) -> None:
    """It is recorded, as the driver has connected its publication; one that came later is not."""
    rig = Rig(tmp_path, is_announced=False)
    rig.accept(128)
    rig.stop_channel()
    assert not rig.recordings.is_idle
    later: Any = SimpleNamespace(
        subscription_registration_id=Pending.registration_id, correlation_id=56, session_id=4
    )
    rig.recordings.on_image(later)
    assert rig.recorder.calls == [("discard", 4)]
    rig.position.answer = Counter()
    rig.recordings.on_image(rig.image)  # type: ignore[arg-type]
    rig.recordings.do_work()
    assert rig.recorder.calls[1:] == [("record", 0), ("stop", 0)]
    assert rig.recorder.stopped_at[0] == 128
    rig.recordings.on_stopped(0, 128)
    assert rig.requester.kinds == ["OK", "START", "STOP"]
    assert rig.recordings.is_idle
    rig.end()


def test_a_stop_of_a_stream_without_a_message(tmp_path: Path) -> None:
    """An image whose recording has not begun is not recorded."""
    rig = Rig(tmp_path, is_announced=False)
    rig.stop_channel()
    rig.recordings.on_image(rig.image)  # type: ignore[arg-type]
    assert rig.recorder.calls == [("discard", 3)]
    assert rig.requester.kinds == ["OK"]
    assert not rig.catalog.has_recording(0)
    rig.end()


@pytest.mark.parametrize("join_position", [0, 32, 96])
def test_the_former_publication_is_no_extension(rig: Rig, join_position: int) -> None:
    """The driver has connected it while it was being closed, where a subscriber was before."""
    rig.position.answer = Counter()
    rig.recordings.do_work()
    rig.accept(64)
    rig.stop_channel()
    rig.recordings.do_work()
    rig.recordings.on_stopped(0, 64, 0, None)
    rig.start(auto_stop=True, extends=0)
    [extension] = rig.recordings.subscriptions.listed()
    rig.image.join_position = join_position
    write_log_buffer(rig.directory, Image.correlation_id, 7, 65_536, 96, is_ended=True)
    rig.recordings.on_image(rig.image)  # type: ignore[arg-type]
    assert rig.requester.kinds == ["OK", "START", "STOP", "OK"]
    assert rig.recorder.calls[-1] == ("discard", Image.session_id)
    assert rig.recordings.subscriptions.listed() == [extension]
    other: Any = Image()
    other.session_id, other.correlation_id = 4, 56
    rig.recordings.on_image(other)
    assert rig.requester.kinds[-1] == "ERROR"


def test_a_refused_image_is_discarded(rig: Rig) -> None:
    """The recorder reads it, so that its publisher does not wait; the first one is recorded."""
    rig.recordings.config.max_concurrent_recordings = 1
    second: Any = SimpleNamespace(
        subscription_registration_id=Pending.registration_id, correlation_id=56, session_id=4
    )
    rig.recordings.on_image(second)
    assert rig.recorder.calls == [("discard", 4)]
    assert rig.requester.kinds == ["OK", "ERROR"]


def test_a_channel_of_which_a_part_is_recorded(rig: Rig) -> None:
    """Another start is refused with advice; once nothing is recorded it replaces the first."""
    test_a_refused_image_is_discarded(rig)
    rig.recordings.config.max_concurrent_recordings = 20
    rig.position.answer = Counter()
    rig.recordings.do_work()
    with pytest.raises(ArchiveError, match=r"recording exists .*: stop it, then record again"):
        rig.start()
    rig.recordings.on_stopped(0, 0)
    before = rig.recordings.subscriptions.listed()
    rig.start()
    assert rig.recordings.subscriptions.listed() != before
    assert rig.requester.kinds[-2:] == ["STOP", "OK"]


def test_the_archive_ends_while_an_image_waits_for_the_disk(rig: Rig) -> None:
    """Also of a subscription that a stop by id has unlisted: it is recorded to its position."""
    rig.stop_identity()
    waiting: list[Callable[[], None]] = []
    changes: Any = rig.recordings.changes
    changes.run_when_disk_responds = waiting.append
    rig.image.correlation_id = 56
    rig.accept(96)
    rig.recordings.on_image(rig.image)  # type: ignore[arg-type]
    rig.recordings.stop_all()
    rig.accept(128)
    [begin] = waiting
    begin()
    rig.position.answer = Counter()
    rig.recordings.do_work()
    assert rig.recorder.calls == [("record", 0), ("record", 1), ("stop", 0), ("stop", 1)]
    assert rig.recorder.stopped_at[0] == 96
    for recording_id in (0, 1):
        rig.recordings.on_stopped(recording_id, 96)
    assert rig.recordings.is_idle


def test_the_counter_is_refused(rig: Rig) -> None:
    """A recording that fails before it begins still sends START."""
    rig.position.answer = AeronError("no counters left", 11)
    rig.recordings.do_work()
    assert rig.requester.kinds == ["OK", "START", "ERROR", "STOP"]
    assert rig.recorder.calls == [("discard", 3)]
    assert rig.sessions.value == 0


def test_the_archive_closes_before_the_counter_exists(rig: Rig) -> None:
    """The client receives a STOP for each START."""
    rig.close()
    assert rig.requester.kinds == ["OK", "START", "STOP"]
    assert rig.position.is_cancelled


def test_a_replication_is_refused_while_files_are_deleted(rig: Rig) -> None:
    """It could otherwise extend the recording, whose new files a truncation would delete."""
    rig.close()
    before = rig.catalog.descriptor(0)
    source = replace(before, start_position=65_536, stop_position=NULL_POSITION)
    aeron: Any = None
    opening: Any = None
    replication = ReplicationSession(
        9,
        ReplicationRequest(1, "aeron:ipc", 10, "aeron:ipc", dst_recording_id=0),
        rig.observer,
        opening,
        aeron=aeron,
        catalog=rig.catalog,
        recordings=rig.recordings,
    )
    rig.parts.deletions.delete(0, list, is_ready=lambda: False)
    with pytest.raises(ArchiveError, match="being deleted or moved"):
        replication._prepare(source)
    assert rig.catalog.descriptor(0) == before
    rig.parts.close()
    assert replication._prepare(source) == 65_536


# ---- durability -----------------------------------------------------------------------------


def test_a_plain_recording_has_one_counter_and_is_not_synced_on_request(rig: Rig) -> None:
    """At sync level 0 the request is refused."""
    rig.position.answer = Counter()
    rig.recordings.do_work()
    assert len(rig.labels) == 1
    arguments = rig.recorder.arguments
    assert (arguments.durability, arguments.confirmed_counter) == (None, None)
    assert not rig.recordings.request_sync(0, lambda *_: None)
    assert not rig.recordings.request_sync(1, lambda *_: None)


def test_a_ledger_begins_with_both_counters(ledger: Rig) -> None:
    """The recorder receives durability and confirmed counter, once the driver has added both."""
    confirmed, _ = sorted(ledger.labels)
    assert confirmed == "confirmed-pos: 000102030405060708090a0b0c0d0e0f 0 - archiveId=1"
    ledger.position.answer = Counter()
    ledger.recordings.do_work()
    assert ledger.recorder.calls == []
    ledger.confirmed.answer = counter = Counter()
    ledger.recordings.do_work()
    assert ledger.recorder.calls == [("record", 0)]
    assert ledger.recorder.arguments.durability == "vd"
    arguments: Any = ledger.recorder.arguments
    assert arguments.confirmed_counter is counter
    session = ledger.recordings.session(0)
    assert session is not None
    counter.set(96)
    assert (session.position, session.confirmed_position) == (0, 96)
    ledger.recordings.on_stopped(0, 96)
    assert counter.is_closed


@pytest.mark.parametrize(("durability", "count"), [(None, 0), (LEDGER, 1)])
def test_the_entry_of_a_ledger_is_forced_to_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability | None, count: int
) -> None:
    """Also at sync level 0 of the catalog; that of a plain recording is not."""
    forced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", forced.append)
    Rig(tmp_path, durability).end()
    assert len(forced) == count


def test_a_ledger_is_stopped_between_its_counters(ledger: Rig) -> None:
    """It is recorded once the driver has added both; when the archive ends before, one is closed,
    and the other request is cancelled.
    """
    ledger.position.answer = counter = Counter()
    ledger.recordings.do_work()
    done: list[tuple[int, str | None]] = []
    assert ledger.recordings.request_sync(0, lambda *end: done.append(end))
    assert done == [(0, None)]
    ledger.stop_channel()
    ledger.recordings.do_work()
    assert ledger.recorder.calls == []
    ledger.close()
    assert counter.is_closed
    assert ledger.confirmed.is_cancelled
    assert ledger.recorder.calls == [("discard", 3)]


def test_a_sync_request_is_answered_from_its_position_on(ledger: Rig) -> None:
    """Its caller gets the durable position, or at the end that and the failure."""
    ledger.position.answer, ledger.confirmed.answer = counter, _ = Counter(), Counter()
    ledger.recordings.do_work()
    done: list[tuple[str, int, str | None]] = []
    for name, position in (("first", 64), ("second", 128), ("third", 192)):
        counter.set(position)
        request = partial(lambda name, *end: done.append((name, *end)), name)
        assert ledger.recordings.request_sync(0, request)
    assert ledger.recorder.calls == [("record", 0)] + [("sync", 0)] * 3
    ledger.recordings.on_synced(0, 32)
    assert done == []
    ledger.recordings.on_synced(0, 160)
    assert done == [("first", 160, None), ("second", 160, None)]
    ledger.recordings.on_stopped(0, 160, 0, "cannot sync")
    assert done[2:] == [("third", 160, "cannot sync")]
    ledger.recordings.on_synced(0, 192)
    assert len(done) == 3


def test_what_an_extended_ledger_has_is_forced_to_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its segment files, and no others, and then their names; an error is reported."""
    forced: list[str] = []

    def fsync(descriptor: int) -> None:
        forced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("3-0.rec", "3-65536.rec", "4-0.rec"):
        (tmp_path / name).write_bytes(bytes(64))
    force_segments(tmp_path, 3)
    assert sorted(forced[:2]) == ["3-0.rec", "3-65536.rec"]
    assert forced[2:] == [tmp_path.name]

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"cannot sync segment file .*3-.*Input/output error"):
        force_segments(tmp_path, 3)
