"""Retention in an archive: its passes, its requests, and the recordings in use."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders.held_recordings import SEGMENT_LENGTH, add_recording, segment, segments
from support.daemon.segment_parts import SegmentParts

from aerotape.archive.error_log import ErrorLog
from aerotape.archive.retention.retention import Retention
from aerotape.catalog.file.catalog import Catalog
from aerotape.codecs.generated.archive import decode

NOW_NS = 1_700_000_000 * 10**9
INTERVAL_NS = 60 * 10**9
WEEK = '[[rule]]\nname = "week"\nmax_age = "7d"\n'


class Count:
    def __init__(self) -> None:
        self.value = 0

    def add(self, delta: int) -> int:
        self.value += delta
        return self.value


class FakeRecordings:
    """Recordings without a live one."""

    def __init__(self) -> None:
        self.extended: list[int] = []
        self.subscriptions = SimpleNamespace(
            listed=lambda: [SimpleNamespace(extends=each) for each in self.extended]
        )

    def session(self, recording_id: int) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class FakeReplays:
    """The replays in progress: their positions by recording."""

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}

    def lowest_positions(self) -> dict[int, int]:
        return dict(self.positions)

    def lowest(self, recording_id: int) -> Any:
        if recording_id not in self.positions:
            return None
        return SimpleNamespace(
            position=self.positions[recording_id],
            request=SimpleNamespace(stream_id=1),
            channel="aeron:ipc",
            session_id=2,
            state="REPLAY",
        )

    def is_replayed(self, recording_id: int) -> bool:
        return recording_id in self.positions


class Removed:
    """Removals, and the recordings that they were called for."""

    def __init__(self, removals: Any) -> None:
        self.removals = removals
        self.recording_ids: list[int] = []

    def purge(self, recording_id: int) -> Any:
        self.recording_ids.append(recording_id)
        return self.removals.purge(recording_id)

    def purge_segments(self, recording_id: int, position: int) -> Any:
        self.recording_ids.append(recording_id)
        return self.removals.purge_segments(recording_id, position)


class Rig:
    """Retention with real handlers, catalog and deletions, and a test clock."""

    def __init__(self, directory: Path, policy: str) -> None:
        self.directory = directory
        self.policy_file = directory.with_name("retention.toml")
        self.policy_file.write_text(policy)
        self.woken = threading.Event()
        self.recordings, self.replays = FakeRecordings(), FakeReplays()
        self.replicated: set[int] = set()
        self.error_count, self.counters = Count(), (Count(), Count())
        error_count: Any = self.error_count
        self.errors = ErrorLog(error_count)
        self.catalog = Catalog.open(directory)
        self.parts = SegmentParts(directory, self.catalog, self.errors, self.woken.set)
        self.replications = SimpleNamespace(recording_ids=lambda: self.replicated)
        services = self.parts.services(
            self.catalog, self.recordings, self.replays, self.replications, errors=self.errors
        )
        self.removed = services.removals = Removed(services.removals)
        self.monotonic_ns = 5
        self.is_disk_well = True
        services.changes = SimpleNamespace(does_disk_respond=lambda: self.is_disk_well)
        self.signals: list[Any] = []
        self.retention = Retention(
            policy_file=self.policy_file,
            interval_ns=INTERVAL_NS,
            services=services,
            counters=self.counters,  # type: ignore[arg-type]
            wake=self.woken.set,
            audience=SimpleNamespace(broadcast=self.on_signal),  # type: ignore[arg-type]
            monotonic_ns=lambda: self.monotonic_ns,
            epoch_ns=lambda: NOW_NS,
        )

    def on_signal(self, asked_by: int, signal: bytes) -> None:
        assert asked_by == -1
        self.signals.append(decode(signal))

    def do_work(self) -> None:
        """Do one duty cycle of the conductor."""
        self.retention.do_work()
        self.parts.do_work()

    def run_pass(self, before: Callable[[], None] = lambda: None) -> None:
        """Let the interval pass and run the pass to its end.

        Args:
            before: called between the plan and the first request.
        """
        self.monotonic_ns += INTERVAL_NS
        self.do_work()
        assert self.retention.is_at_work
        self.retention._worker.submit(lambda: None).result()
        before()
        deadline_s = time.monotonic() + 60
        while self.retention.is_at_work:
            assert time.monotonic() < deadline_s
            if self.retention.wants_within_ns is None and self.woken.wait(0.05):
                self.woken.clear()
            self.do_work()

    def close(self) -> None:
        self.retention.close()
        self.parts.close()
        self.catalog.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def start(directory: Path) -> Iterator[Callable[[str], Rig]]:
    made: list[Rig] = []

    def start_rig(policy: str = WEEK) -> Rig:
        made.append(Rig(directory, policy))
        return made[-1]

    yield start_rig
    for rig in made:
        rig.close()


def test_a_pass_starts_at_each_interval(directory: Path, start: Callable[..., Rig]) -> None:
    add_recording(directory, [9, 1], now_ns=NOW_NS)
    rig = start()
    rig.monotonic_ns += INTERVAL_NS - 1
    rig.do_work()
    assert not rig.retention.is_at_work
    rig.monotonic_ns -= INTERVAL_NS - 1
    rig.run_pass()
    assert segments(directory, 0) == [1]
    add_recording(directory, [9, 9], now_ns=NOW_NS)
    rig.do_work()
    assert not rig.retention.is_at_work


def test_removals_are_counted_logged_and_signalled(
    directory: Path, start: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    add_recording(directory, [9, 8, 1], now_ns=NOW_NS)
    add_recording(directory, [9, 8], now_ns=NOW_NS)
    add_recording(directory, [1], now_ns=NOW_NS)
    taken = sum(
        path.stat().st_blocks * 512 for path in (segment(directory, 0, 0), segment(directory, 0, 1))
    ) + sum(segment(directory, 1, index).stat().st_blocks * 512 for index in (0, 1))
    rig = start()
    with caplog.at_level(logging.INFO, "aerotape.archive"):
        rig.run_pass()
    assert [segments(directory, number) for number in range(3)] == [[2], [], [0]]
    assert rig.catalog.start_position(0) == 2 * SEGMENT_LENGTH
    assert list(rig.catalog.recording_ids()) == [0, 2]
    assert [counter.value for counter in rig.counters] == [4, taken]
    assert rig.error_count.value == 0
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 2
    assert "recording 0: what is before position 262144" in logged[0]
    assert "recording 1: all of it" in logged[1]
    assert "older than 7d (rule week)" in logged[1]
    # The signals belong to no client's request.
    assert sorted((each.recording_id, each.signal.name) for each in rig.signals) == [
        (0, "DELETE"),
        (1, "DELETE"),
    ]
    assert {each.correlation_id for each in rig.signals} == {-1}
    # Nothing is left to delete.
    rig.run_pass()
    assert len(rig.removed.recording_ids) == 2


def test_removals_wait_for_the_disk(directory: Path, start: Callable[..., Rig]) -> None:
    """While the disk does not respond none is requested; the pass continues afterwards."""
    add_recording(directory, [9, 1], now_ns=NOW_NS)
    rig = start()

    def wait() -> None:
        rig.is_disk_well = False
        for _ in range(3):
            rig.do_work()
        assert not rig.removed.recording_ids
        rig.is_disk_well = True

    rig.run_pass(wait)
    assert segments(directory, 0) == [1]


@pytest.mark.parametrize("position", [0, 2 * SEGMENT_LENGTH])
def test_a_replay_that_starts_after_the_plan_is_detected(
    directory: Path, start: Callable[..., Rig], position: int
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    add_recording(directory, [9, 9, 1], now_ns=NOW_NS)
    rig = start()
    rig.run_pass(before=lambda: rig.replays.positions.update({0: position, 1: position}))
    assert segments(directory, 0) == [0, 1, 2]
    assert segments(directory, 1) == ([0, 1, 2] if position == 0 else [2])
    assert rig.error_count.value == 0


def test_a_recording_is_retained_when_an_extension_or_replication_starts(
    directory: Path, start: Callable[..., Rig]
) -> None:
    for _ in range(3):
        add_recording(directory, [9, 9], now_ns=NOW_NS)
    rig = start()
    rig.recordings.extended = [0]
    rig.replicated = {1}
    rig.run_pass()
    assert [segments(directory, number) for number in range(3)] == [[0, 1], [0, 1], []]
    rig.recordings.extended, rig.replicated = [], set()
    rig.run_pass(before=lambda: rig.replicated.add(1))
    assert [segments(directory, number) for number in range(2)] == [[], [0, 1]]


def test_a_recording_changed_since_the_plan_is_left_to_the_next(
    directory: Path, start: Callable[..., Rig]
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    rig = start()
    rig.run_pass(before=lambda: rig.catalog.set_stop_position(0, 64))
    assert rig.removed.recording_ids == []
    assert rig.catalog.has_recording(0)
    rig.parts.locks.hold({0})
    rig.run_pass()
    assert rig.removed.recording_ids == []


def test_a_file_that_cannot_be_deleted_is_an_error_and_the_rest_continues(
    directory: Path, start: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    add_recording(directory, [9, 9, 1], now_ns=NOW_NS)
    add_recording(directory, [9, 9], now_ns=NOW_NS)
    stuck = segment(directory, 0, 0)
    rig = start()

    def make_stuck() -> None:
        stuck.unlink()
        (stuck / "inside").mkdir(parents=True)

    rig.run_pass(before=make_stuck)
    assert rig.error_count.value == 1
    assert f"unable to delete segment file: {stuck}" in caplog.text
    assert segments(directory, 0) == [0, 2]
    assert segments(directory, 1) == []
    assert not rig.parts.locks.is_locked(0)
    rig.run_pass()


def test_an_invalid_policy_stops_retention_until_it_is_corrected(
    directory: Path, start: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    add_recording(directory, [9, 9], now_ns=NOW_NS)
    rig = start()
    rig.policy_file.write_text("[[rule]]\nmax_age = '1")
    rig.run_pass()
    assert (rig.error_count.value, segments(directory, 0)) == (1, [0, 1])
    assert f"retention policy {rig.policy_file} is not TOML" in caplog.text
    rig.policy_file.write_text(WEEK)
    rig.run_pass()
    assert segments(directory, 0) == []


def test_many_recordings_are_deleted_a_few_at_a_time(
    directory: Path, start: Callable[..., Rig]
) -> None:
    """One request per duty cycle; only a few deletions in progress."""
    for _ in range(30):
        add_recording(directory, [9], now_ns=NOW_NS)
    rig = start()
    most, asked = 0, 0
    do_work = rig.do_work

    def watched() -> None:
        nonlocal most, asked
        do_work()
        assert len(rig.removed.recording_ids) - asked <= 1
        asked = len(rig.removed.recording_ids)
        most = max(most, len(rig.retention._removals))

    rig.do_work = watched  # type: ignore[method-assign]
    rig.run_pass()
    assert list(rig.catalog.recording_ids()) == []
    assert list(directory.glob("*.rec")) == []
    assert 1 <= most <= 8


def test_damaged_and_incomplete_recordings_are_retained(
    directory: Path, start: Callable[..., Rig]
) -> None:
    for _ in range(3):
        add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    segment(directory, 1, 1).unlink()
    with Catalog.open(directory) as catalog:
        place = catalog.entry(2)
        begin = place.offset + 32 + 8 + 8 + 8 + 8 + 8 + 8
        # stop position: no frame ends there
        catalog._file.store(begin, (7).to_bytes(8, "little"))
    rig = start()
    rig.run_pass()
    assert [segments(directory, number) for number in range(3)] == [[], [0, 2], [0, 1, 2]]
    assert len(rig.removed.recording_ids) == 1


def test_closing_cancels_a_pass(directory: Path, start: Callable[..., Rig]) -> None:
    for _ in range(3):
        add_recording(directory, [9], now_ns=NOW_NS)
    rig = start()
    rig.monotonic_ns += INTERVAL_NS
    rig.do_work()
    rig.retention.close()
    assert not rig.retention.is_at_work
    assert rig.removed.recording_ids == []
