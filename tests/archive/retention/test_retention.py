"""The archive's own retention: when it comes, what it asks for, and what holds it back."""

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

from aerotape.archive.control import requests
from aerotape.archive.error_log import ErrorLog
from aerotape.archive.recording.segment_deletion import SegmentDeletions
from aerotape.archive.recording.segment_requests import SegmentMoves
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
    """The recordings in progress: their positions by id."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.changing: set[int] = set()
        self.extended: list[int] = []
        self.subscriptions = SimpleNamespace(
            listed=lambda: [SimpleNamespace(extends=each) for each in self.extended]
        )

    def session(self, recording_id: int) -> Any:
        if recording_id not in self.live:
            return None
        return SimpleNamespace(recording_id=recording_id, position=self.live[recording_id])

    def __iter__(self) -> Iterator[Any]:
        return iter([self.session(recording_id) for recording_id in self.live])

    def are_segments_changing(self, recording_id: int) -> bool:
        return recording_id in self.changing


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


class Rig:
    """Retention with real handlers, catalog and deletions, and a clock that the test moves."""

    def __init__(self, directory: Path, policy: str) -> None:
        self.directory = directory
        self.policy_file = directory.with_name("retention.toml")
        self.policy_file.write_text(policy)
        self.woken = threading.Event()
        self.recordings, self.replays = FakeRecordings(), FakeReplays()
        self.replicated: set[int] = set()
        self.error_count, self.counters = Count(), (Count(), Count())
        self.errors = ErrorLog(self.error_count)
        self.catalog = Catalog.open(directory)
        self.deletions = SegmentDeletions(errors=self.errors, wake=self.woken.set)
        self.moves = SegmentMoves(
            archive_dir=directory,
            catalog=self.catalog,
            deletions=self.deletions,
            errors=self.errors,
            sync=False,
        )
        self.replications = SimpleNamespace(recording_ids=lambda: self.replicated)
        self.monotonic_ns = 5
        self.requests: list[Any] = []
        self.signals: list[Any] = []
        self.retention = Retention(
            policy_file=self.policy_file,
            interval_ns=INTERVAL_NS,
            archive_dir=directory,
            catalog=self.catalog,
            recordings=self.recordings,  # type: ignore[arg-type]
            replays=self.replays,  # type: ignore[arg-type]
            replications=self.replications,  # type: ignore[arg-type]
            ask=self.ask,
            counters=self.counters,  # type: ignore[arg-type]
            errors=self.errors,
            wake=self.woken.set,
            audience=SimpleNamespace(pass_on=self.hear),  # type: ignore[arg-type]
            monotonic_ns=lambda: self.monotonic_ns,
            epoch_ns=lambda: NOW_NS,
        )

    def ask(self, requester: Any, request: Any) -> None:
        self.requests.append(request)
        requests.handle(
            SimpleNamespace(  # type: ignore[arg-type]
                archive_dir=self.directory,
                catalog=self.catalog,
                deletions=self.deletions,
                segments=self.moves,
                recordings=self.recordings,
                replays=self.replays,
                replications=self.replications,
                errors=self.errors,
            ),
            requester,
            request,
        )

    def hear(self, asked_by: int, signal: bytes) -> None:
        assert asked_by == -1
        self.signals.append(decode(signal))

    def turn(self) -> None:
        """One turn of the conductor."""
        self.retention.do_work()
        self.deletions.do_work()

    def run_pass(self, before: Callable[[], None] = lambda: None) -> None:
        """Let the interval pass and all that follows be done.

        Args:
            before: called when the plan has been made and nothing has been asked for.
        """
        self.monotonic_ns += INTERVAL_NS
        self.turn()
        assert self.retention.is_at_work
        self.retention._worker.submit(lambda: None).result()
        before()
        deadline_s = time.monotonic() + 60
        while self.retention.is_at_work:
            assert time.monotonic() < deadline_s
            if not self.retention.wants_within_ns and self.woken.wait(0.05):
                self.woken.clear()
            self.turn()

    def close(self) -> None:
        self.retention.close()
        self.deletions.close()
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


def test_it_comes_each_interval_and_not_before(directory: Path, start: Callable[..., Rig]) -> None:
    add_recording(directory, [9, 1], now_ns=NOW_NS)
    rig = start()
    rig.monotonic_ns += INTERVAL_NS - 1
    rig.turn()
    assert not rig.retention.is_at_work
    rig.monotonic_ns -= INTERVAL_NS - 1
    rig.run_pass()
    assert segments(directory, 0) == [1]
    add_recording(directory, [9, 9], now_ns=NOW_NS)
    rig.turn()
    assert not rig.retention.is_at_work


def test_fronts_and_whole_recordings_go_are_counted_and_told(
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
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "recording 0: what is before position 262144" in told[0]
    assert "recording 1: all of it" in told[1]
    assert "older than 7d (rule week)" in told[1]
    # Clients that are to hear of it know that none of them has asked.
    assert sorted((each.recording_id, each.signal.name) for each in rig.signals) == [
        (0, "DELETE"),
        (1, "DELETE"),
    ]
    assert {each.correlation_id for each in rig.signals} == {-1}
    # There is nothing left to do.
    rig.run_pass()
    assert len(rig.requests) == 2


def test_a_live_recording_keeps_the_segment_that_is_written_to(
    directory: Path, start: Callable[..., Rig]
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS, stopped=False)
    rig = start()
    rig.recordings.live[0] = 2 * SEGMENT_LENGTH + 64
    rig.run_pass()
    assert segments(directory, 0) == [2]
    assert rig.catalog.start_position(0) == 2 * SEGMENT_LENGTH


def test_a_recording_without_an_end_that_nobody_records_is_left_alone(
    directory: Path, start: Callable[..., Rig]
) -> None:
    add_recording(directory, [9, 9], now_ns=NOW_NS, stopped=False)
    rig = start()
    rig.run_pass()
    assert segments(directory, 0) == [0, 1]
    assert rig.requests == []


def test_a_replay_keeps_its_segment_and_all_behind_it(
    directory: Path, start: Callable[..., Rig]
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    add_recording(directory, [9], now_ns=NOW_NS)
    rig = start()
    rig.replays.positions = {0: SEGMENT_LENGTH + 4096, 1: 0}
    rig.run_pass()
    assert [segments(directory, number) for number in range(2)] == [[1, 2], [0]]
    rig.replays.positions = {}
    rig.run_pass()
    assert [segments(directory, number) for number in range(2)] == [[], []]


@pytest.mark.parametrize("position", [0, 2 * SEGMENT_LENGTH])
def test_a_replay_that_begins_after_the_plan_was_made_is_seen(
    directory: Path, start: Callable[..., Rig], position: int
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    add_recording(directory, [9, 9, 1], now_ns=NOW_NS)
    rig = start()
    rig.run_pass(before=lambda: rig.replays.positions.update({0: position, 1: position}))
    assert segments(directory, 0) == [0, 1, 2]
    assert segments(directory, 1) == ([0, 1, 2] if position == 0 else [2])
    assert rig.error_count.value == 0


def test_what_is_about_to_be_extended_or_replicated_to_stays(
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


def test_a_recording_that_has_changed_since_the_plan_waits_for_the_next(
    directory: Path, start: Callable[..., Rig]
) -> None:
    add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    rig = start()
    rig.run_pass(before=lambda: rig.catalog.set_stop_position(0, 64))
    assert rig.requests == []
    assert rig.catalog.has_recording(0)
    rig.recordings.changing = {0}
    rig.run_pass()
    assert rig.requests == []


def test_a_file_that_cannot_be_deleted_is_an_error_and_the_rest_goes_on(
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
    assert not rig.deletions.end_position(0)
    rig.run_pass()


def test_a_policy_that_was_spoilt_stops_retention_until_it_is_mended(
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


def test_many_recordings_go_a_few_at_a_time(directory: Path, start: Callable[..., Rig]) -> None:
    """One request a turn; no more than a few deletions under way."""
    for _ in range(30):
        add_recording(directory, [9], now_ns=NOW_NS)
    rig = start()
    most, asked = 0, 0
    turn = rig.turn

    def watched() -> None:
        nonlocal most, asked
        turn()
        assert len(rig.requests) - asked <= 1
        asked = len(rig.requests)
        most = max(most, len(rig.retention._requester))

    rig.turn = watched  # type: ignore[method-assign]
    rig.run_pass()
    assert list(rig.catalog.recording_ids()) == []
    assert list(directory.glob("*.rec")) == []
    assert 1 <= most <= 8


def test_damaged_recordings_and_such_with_missing_files_are_left_alone(
    directory: Path, start: Callable[..., Rig]
) -> None:
    for _ in range(3):
        add_recording(directory, [9, 9, 9], now_ns=NOW_NS)
    segment(directory, 1, 1).unlink()
    with Catalog.open(directory) as catalog:
        place = catalog.entry(2)
        data = catalog.data
        begin = place.offset + 32 + 8 + 8 + 8 + 8 + 8 + 8
        data[begin : begin + 8] = (7).to_bytes(8, "little")  # stop position: no frame ends there
    rig = start()
    rig.run_pass()
    assert [segments(directory, number) for number in range(3)] == [[], [0, 2], [0, 1, 2]]
    assert len(rig.requests) == 1


def test_the_end_of_the_archive_ends_a_pass(directory: Path, start: Callable[..., Rig]) -> None:
    for _ in range(3):
        add_recording(directory, [9], now_ns=NOW_NS)
    rig = start()
    rig.monotonic_ns += INTERVAL_NS
    rig.turn()
    rig.retention.close()
    assert not rig.retention.is_at_work
    assert rig.requests == []
