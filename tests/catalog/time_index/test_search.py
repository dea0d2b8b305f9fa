"""Conversion of times to positions and back, compared with a recorder whose clock jumps."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from aerotape.catalog.time_index.index import TimeBounds, TimeIndex
from aerotape.catalog.time_index.points import TimePoint
from aerotape.times import TimeRange

STEP = 32


class Recorder:
    """Messages of 32 bytes, each recorded at a wall-clock time, with points in between.

    Points are written by the rule of `native/src/worker/time_index.rs`, implemented independently.
    """

    def __init__(self) -> None:
        self.wall = 1_000
        self.monotonic = 0
        self.times: list[int] = []
        self.points: list[TimePoint] = []
        self.last: tuple[int, int] | None = None

    @property
    def position(self) -> int:
        return len(self.times) * STEP

    def pass_time(self, duration: int) -> None:
        self.wall += duration
        self.monotonic += duration

    def set_clock(self, step: int) -> None:
        self.wall = max(self.wall + step, 0)

    def record(self) -> None:
        self.times.append(self.wall)

    def note(self) -> None:
        if self.last is not None:
            wall, monotonic = self.last
            since = self.monotonic - monotonic
            if self.wall < wall + since:
                self.points.append(TimePoint(wall + since, self.position))
                self.points.append(TimePoint(self.wall - since, self.position))
        self.points.append(TimePoint(self.wall, self.position))
        self.last = self.wall, self.monotonic

    def index(self) -> TimeIndex:
        return TimeIndex(self.points, 0, self.position)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("time"), st.integers(1, 50)),
        st.tuples(st.just("clock"), st.integers(-300, 300)),
        st.tuples(st.just("record"), st.integers(1, 4)),
        st.tuples(st.just("note"), st.just(0)),
    ),
    max_size=60,
)


def act(actions: list[tuple[str, int]], *, clock: bool = True) -> Recorder:
    recorder = Recorder()
    recorder.note()
    steps = 0
    for action, number in actions:
        if action == "time":
            recorder.pass_time(number)
        elif action == "clock" and clock:
            # At most one step between two points: of several, the recorder sees only the sum.
            if steps == 0:
                recorder.set_clock(number)
            steps += 1
        elif action == "record":
            for _ in range(number):
                recorder.record()
        elif action == "note":
            recorder.note()
            steps = 0
    recorder.note()
    return recorder


@given(ACTIONS, st.integers(0, 2_000), st.integers(0, 500))
def test_all_messages_of_a_range_of_times_are_in_the_range_of_positions(
    actions: list[tuple[str, int]], begin: int, duration: int
) -> None:
    recorder = act(actions)
    low, high = recorder.index().positions(TimeRange(begin, begin + duration))
    wanted = [n * STEP for n, time in enumerate(recorder.times) if begin <= time < begin + duration]
    assert all(low <= position < high for position in wanted)
    assert 0 <= low <= high <= recorder.position


@given(ACTIONS)
def test_bounds_of_a_message_contain_its_time(actions: list[tuple[str, int]]) -> None:
    recorder = act(actions)
    index = recorder.index()
    for number, time in enumerate(recorder.times):
        bounds = index.time_at(number * STEP)
        assert bounds.not_before_ns is not None
        assert bounds.not_after_ns is not None
        assert bounds.not_before_ns <= time <= bounds.not_after_ns


@given(ACTIONS)
def test_with_a_steady_clock_the_range_ends_at_the_next_point(
    actions: list[tuple[str, int]],
) -> None:
    recorder = act(actions, clock=False)
    index = recorder.index()
    for first, second in pairwise(recorder.points):
        if second.time_ns > first.time_ns + 1:
            low, high = index.positions(TimeRange(first.time_ns + 1, second.time_ns))
            assert low >= first.position
            assert high <= second.position


@given(ACTIONS)
def test_estimates_are_within_the_bounds_and_ascend(actions: list[tuple[str, int]]) -> None:
    recorder = act(actions, clock=False)
    index = recorder.index()
    estimates = []
    for number in range(len(recorder.times)):
        estimate = index.estimate(number * STEP)
        bounds = index.time_at(number * STEP)
        assert estimate is not None
        assert bounds.not_before_ns is not None
        assert bounds.not_after_ns is not None
        assert bounds.not_before_ns <= estimate <= bounds.not_after_ns
        estimates.append(estimate)
    assert estimates == sorted(estimates)


def test_other_kinds_of_bounds_narrow_the_range() -> None:
    index = TimeIndex([], 0, 640, not_before=[(100, 0)], not_after=[(150, 320), (200, 640)])
    assert index.positions(TimeRange(None, 100)) == (0, 0)
    assert index.positions(TimeRange(None, 101)) == (0, 640)
    assert index.positions(TimeRange(150, None)) == (0, 640)
    assert index.positions(TimeRange(151, None)) == (320, 640)
    assert index.positions(TimeRange(201, None)) == (640, 640)
    assert index.time_at(0) == TimeBounds(100, 150)
    assert index.time_at(320) == TimeBounds(100, 200)
    assert index.estimate(320) == 100


def test_estimates_between_two_points_are_linear() -> None:
    index = TimeIndex([TimePoint(1_000, 0), TimePoint(2_000, 640)], 0, 640)
    assert [index.estimate(position) for position in (0, 320, 608)] == [1_000, 1_500, 1_950]
