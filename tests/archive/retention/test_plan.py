"""Retention plans: the segments and recordings that a policy deletes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.builders.held_recordings import DAY_NS, new_starts
from support.builders.held_recordings import SEGMENT_LENGTH as SEGMENT

from aerotape.archive.retention.plan import HeldSegment, Holding, RetentionPlan, make_plan
from aerotape.archive.retention.policy import Limit, RetentionPolicy, RetentionRule
from aerotape.catalog.descriptor import RecordingDescriptor

NOW_NS = 1_000 * DAY_NS


def held(
    recording_id: int,
    days: list[int],
    *,
    live: bool = False,
    removable: int | None = None,
    stream_id: int = 1,
    channel: str = "aeron:ipc",
    size: int = 100,
    stopped_days: int = 0,
) -> Holding:
    """A recording with a segment for each age, in days."""
    stop = -1 if live else len(days) * SEGMENT
    segments = [
        HeldSegment(index * SEGMENT, size, NOW_NS - age * DAY_NS) for index, age in enumerate(days)
    ]
    most = len(days) - live
    return Holding(
        RecordingDescriptor(
            recording_id=recording_id,
            start_timestamp_ms=recording_id,
            stop_timestamp_ms=-1 if live else (NOW_NS - stopped_days * DAY_NS) // 1_000_000,
            start_position=0,
            stop_position=stop,
            initial_term_id=0,
            segment_file_length=SEGMENT,
            term_buffer_length=65_536,
            mtu_length=1408,
            session_id=1,
            stream_id=stream_id,
            stripped_channel=channel,
            original_channel=f"{channel}?alias=x",
            source_identity="",
        ),
        segments,
        most if removable is None else removable,
        not live and removable is None,
        "in use" if live or removable is not None else "",
    )


def plan(holdings: list[Holding], *rules: RetentionRule, **policy: Any) -> RetentionPlan:
    return make_plan(holdings, RetentionPolicy(rules, **policy), NOW_NS)


AGE = RetentionRule("a", max_age=Limit(7 * DAY_NS, "7d"))


def test_age_deletes_old_segments_and_whole_recordings() -> None:
    made = plan(
        [held(0, [9, 8, 6]), held(1, [9, 8]), held(2, [6]), held(3, [9, 9], live=True)], AGE
    )
    assert new_starts(made) == {0: 2, 1: None, 3: 1}
    assert made.removals[0].reasons == ("older than 7d (rule a)",)
    assert (made.removals[0].segments, made.removals[0].size_bytes) == (2, 200)
    # The last segment of the live recording is as old, and is retained.
    assert [(each.recording_id, each.in_use) for each in made.retained] == [(3, "in use")]


def test_a_young_segment_protects_older_ones_after_it() -> None:
    assert new_starts(plan([held(0, [9, 1, 9])], AGE)) == {0: 1}


def test_a_segment_of_unknown_age_is_young() -> None:
    holding = Holding(held(0, [0]).descriptor, [HeldSegment(0, 1, None)], 1, True)
    assert new_starts(plan([holding], AGE)) == {}


def test_an_empty_recording_has_the_age_of_its_stop() -> None:
    made = plan([held(0, [], stopped_days=8), held(1, [], stopped_days=6)], AGE)
    assert new_starts(made) == {0: None}


def test_the_size_of_a_recording_never_deletes_its_last_segment() -> None:
    rule = RetentionRule("s", max_recording_size=Limit(250, "250"))
    assert new_starts(plan([held(0, [3, 2, 1, 0]), held(1, [2, 1])], rule)) == {0: 2}
    tiny = RetentionRule("s", max_recording_size=Limit(1, "1"))
    made = plan([held(0, [3, 2, 1, 0]), held(1, [2, 1], live=True)], tiny)
    assert new_starts(made) == {0: 3, 1: 1}


def test_an_empty_segment_is_not_the_last_one() -> None:
    rule = RetentionRule("a", max_recording_size=Limit(50, "50"))
    holding = held(0, [3, 2, 1])
    assert new_starts(plan([replace(holding, end_position=2 * SEGMENT)], rule)) == {0: 1}
    assert new_starts(plan([replace(holding, end_position=2 * SEGMENT + 1)], rule)) == {0: 2}


def test_the_size_of_a_stream_deletes_the_oldest_of_all_its_recordings() -> None:
    """Recordings of other stream ids or channels do not count."""
    rule = RetentionRule("s", max_stream_size=Limit(300, "300"))
    made = plan(
        [
            held(0, [5, 3, 1]),
            held(1, [4, 2]),
            held(2, [9, 9, 9], stream_id=2),
            held(3, [9, 9, 9], channel="aeron:udp?endpoint=h:1"),
        ],
        rule,
    )
    assert new_starts(made) == {0: 1, 1: 1}
    made = plan([held(0, [9]), held(1, [8, 7, 6, 0])], rule)
    assert new_starts(made) == {0: None, 1: 1}


def test_the_number_of_recordings_deletes_the_oldest_stopped_ones() -> None:
    rule = RetentionRule("n", max_recordings=Limit(2, "2"))
    made = plan([held(number, [0]) for number in range(4)] + [held(9, [0], stream_id=2)], rule)
    assert new_starts(made) == {0: None, 1: None}
    made = plan([held(0, [0, 0], live=True), held(1, [0]), held(2, [0])], rule)
    assert new_starts(made) == {}
    assert [each.recording_id for each in made.retained] == [0]


def test_the_size_of_the_directory_applies_without_a_rule() -> None:
    keep = RetentionRule("k", channel="udp", keep=True)
    holdings = [
        held(0, [3, 2]),
        held(1, [9, 9], channel="aeron:udp?endpoint=h:1"),
        held(2, [1, 0], live=True),
    ]
    limit = Limit(400, "400")
    assert new_starts(plan(holdings, keep, max_directory_size=limit)) == {0: None}
    made = plan(holdings, keep, max_directory_size=Limit(1, "1"))
    assert new_starts(made) == {0: None, 2: 1}
    assert {each.recording_id: each.in_use for each in made.retained} == {
        1: "rule k keeps it",
        2: "in use",
    }
    assert made.size_bytes == 600


def test_limits_count_deletions_by_preceding_limits() -> None:
    made = plan([held(0, [9, 0]), held(1, [3, 0])], AGE, max_directory_size=Limit(300, "300"))
    assert new_starts(made) == {0: 1}


def test_the_first_rule_that_matches_applies() -> None:
    rules = (
        RetentionRule("one", stream_ids=frozenset({2}), max_age=Limit(100 * DAY_NS, "100d")),
        RetentionRule("two", channel="alias=x", max_age=Limit(7 * DAY_NS, "7d")),
        RetentionRule("three", max_age=Limit(DAY_NS, "1d")),
    )
    made = plan([held(0, [9, 6]), held(1, [9, 6], stream_id=2)], *rules)
    assert new_starts(made) == {0: 1}
    assert made.removals[0].reasons == ("older than 7d (rule two)",)


def test_nothing_younger_than_the_minimum_age_is_deleted() -> None:
    rule = RetentionRule("s", max_recording_size=Limit(1, "1"), max_recordings=Limit(1, "1"))
    made = plan([held(0, [5, 1, 1]), held(1, [0, 0]), held(2, [])], rule, min_age_ns=2 * DAY_NS)
    assert new_starts(made) == {0: 1}
    assert {each.in_use for each in made.retained} == {"it is too young for min_age"}


def test_a_segment_in_use_protects_those_after_it() -> None:
    made = plan([held(0, [9, 9, 9], removable=1)], AGE)
    assert new_starts(made) == {0: 1}
    assert [(each.recording_id, each.in_use) for each in made.retained] == [(0, "in use")]


@given(
    ages=st.lists(
        st.tuples(st.lists(st.integers(0, 20), max_size=5), st.booleans(), st.integers(0, 5)),
        max_size=6,
    ),
    age=st.none() | st.integers(1, 20),
    sizes=st.tuples(*[st.none() | st.integers(1, 1500)] * 3),
    count=st.none() | st.integers(1, 4),
    min_age=st.integers(0, 10),
)
def test_any_policy_deletes_only_removable_segments(
    ages: list[tuple[list[int], bool, int]],
    age: int | None,
    sizes: tuple[int | None, int | None, int | None],
    count: int | None,
    min_age: int,
) -> None:
    """Retained data is within the directory's limit unless nothing more can be deleted."""
    holdings = [
        held(
            number,
            sorted(days, reverse=True),
            live=live and bool(days),
            removable=min(removable, len(days) - 1) if removable < len(days) else None,
            stopped_days=20,
        )
        for number, (days, live, removable) in enumerate(ages)
    ]

    def limit(value: int | None, factor: int = 1) -> Limit | None:
        return None if value is None else Limit(value * factor, str(value))

    rule = RetentionRule(
        "r",
        max_age=limit(age, DAY_NS),
        max_recording_size=limit(sizes[0]),
        max_stream_size=limit(sizes[1]),
        max_recordings=limit(count),
    )
    made = plan(holdings, rule, max_directory_size=limit(sizes[2]), min_age_ns=min_age * DAY_NS)
    left = made.size_bytes
    could_go = False
    for holding in holdings:
        removal = next((r for r in made.removals if r.recording_id == holding.recording_id), None)
        removed = 0 if removal is None else removal.segments
        left -= 0 if removal is None else removal.size_bytes
        assert removed <= holding.removable
        for segment in holding.segments[:removed]:
            assert segment.recorded_by_ns is not None
            assert segment.recorded_by_ns <= NOW_NS - min_age * DAY_NS
        if removal is not None and removal.new_start_position is None:
            assert holding.is_deletable
            assert removed == len(holding.segments)
        elif removal is not None:
            assert removal.new_start_position == removed * SEGMENT
            assert 0 < removed < len(holding.segments)
        if removed < holding.removable and (
            removed + 1 < len(holding.segments) or holding.is_deletable
        ):
            recorded_ns = holding.segments[removed].recorded_by_ns
            assert recorded_ns is not None
            could_go |= recorded_ns <= NOW_NS - min_age * DAY_NS
    if sizes[2] is not None and left > sizes[2]:
        assert not could_go
