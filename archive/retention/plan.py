"""The plan of a retention pass: which segments and recordings a policy deletes.

Whole segments are deleted, from the start of a recording; the last one only together with a
stopped recording. A segment in use protects those after it.

The limits are applied in this order, each to what the preceding ones leave: age, size of the
recording, number of recordings, size of the stream, size of the directory. A size of several
recordings is reduced by the oldest segments of any of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from aerotape.archive.retention.policy import RetentionPolicy, RetentionRule
from aerotape.catalog.descriptor import RecordingDescriptor

_NS_PER_MS: Final = 1_000_000
_Stream = tuple[str, int]


class HeldSegment(NamedTuple):
    """A segment of a recording.

    Attributes:
        base_position: its position, bytes.
        size_bytes: allocated storage of its file.
        recorded_by_ns: when all of it had been recorded, nanoseconds since 1970; None: unknown.
    """

    base_position: int
    size_bytes: int
    recorded_by_ns: int | None


@dataclass(frozen=True, slots=True)
class Holding:
    """A recording at the time of the plan.

    Attributes:
        descriptor: from the catalog.
        segments: its segments, ascending.
        removable: the number of leading segments that are not in use.
        is_deletable: whether the recording can be deleted if all its segments can be.
        in_use: why the other segments cannot be deleted.
        end_position: the stop or recorded position, bytes; negative: unknown.
    """

    descriptor: RecordingDescriptor
    segments: Sequence[HeldSegment]
    removable: int
    is_deletable: bool
    in_use: str = ""
    end_position: int = -1

    @property
    def recording_id(self) -> int:
        return self.descriptor.recording_id

    @property
    def stream(self) -> _Stream:
        """The recorded channel and stream id."""
        return self.descriptor.stripped_channel, self.descriptor.stream_id


@dataclass(frozen=True, slots=True)
class Removal:
    """The part of a recording to delete.

    Attributes:
        descriptor: of the recording at the time of the plan.
        new_start_position: data before it is deleted, bytes; None: the whole recording.
        segments: the number of segments to delete.
        size_bytes: their allocated storage.
        reasons: the limits that require it.
    """

    descriptor: RecordingDescriptor
    new_start_position: int | None
    segments: int
    size_bytes: int
    reasons: tuple[str, ...]

    @property
    def recording_id(self) -> int:
        return self.descriptor.recording_id

    def __str__(self) -> str:
        what = (
            "all of it"
            if self.new_start_position is None
            else f"what is before position {self.new_start_position}"
        )
        return (
            f"recording {self.recording_id}: {what}, {self.segments} segments of"
            f" {self.size_bytes} bytes: {', '.join(self.reasons)}"
        )


@dataclass(frozen=True, slots=True)
class Retained:
    """A recording of which data remains although a limit requires its deletion.

    Attributes:
        recording_id: the recording.
        reasons: the limits.
        in_use: why the data remains.
        size_bytes: allocated storage of what remains.
    """

    recording_id: int
    reasons: tuple[str, ...]
    in_use: str
    size_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.size_bytes} bytes of recording {self.recording_id} stay:"
            f" {', '.join(self.reasons)}: {self.in_use}"
        )


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """The removals, and the recordings that limits cannot be applied to; by recording id.

    Attributes:
        size_bytes: allocated storage of all segments before the removals.
    """

    removals: list[Removal]
    retained: list[Retained]
    size_bytes: int


@dataclass(slots=True)
class _State:
    """A recording during planning; its first `deleted` segments will be deleted."""

    holding: Holding
    rule: RetentionRule | None
    removable: int
    is_deletable: bool
    deleted: int = 0
    is_deleted: bool = False
    reasons: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.holding.segments[self.deleted :])

    @property
    def most(self) -> int:
        """The number of segments that can be deleted, the last one only with the recording."""
        count = len(self.holding.segments)
        return self.removable if self.is_deletable or self.removable < count else count - 1

    def take(self, count: int, reason: str) -> None:
        """Delete the first `count` segments, or as many of them as possible."""
        if count > self.most:
            self.refused.append(reason)
            count = self.most
        if count > self.deleted:
            self.deleted = count
            self.reasons.append(reason)
        self.is_deleted = self.is_deleted or (
            self.is_deletable and self.deleted == len(self.holding.segments) and bool(self.deleted)
        )

    def take_all(self, reason: str) -> None:
        """Delete the recording, if possible."""
        if not self.is_deletable:
            self.refused.append(reason)
            return
        self.deleted, self.is_deleted = len(self.holding.segments), True
        self.reasons.append(reason)


def make_plan(holdings: Iterable[Holding], policy: RetentionPolicy, now_ns: int) -> RetentionPlan:
    """Return the removals of a policy.

    Args:
        holdings: the recordings.
        policy: the policy.
        now_ns: the time, nanoseconds since 1970.
    """
    states = []
    for holding in sorted(holdings, key=lambda each: each.recording_id):
        rule = policy.rule_of(holding.descriptor)
        removable, is_deletable = 0, False
        if rule is None or not rule.keep:
            before_ns = now_ns - policy.min_age_ns
            removable = min(holding.removable, _count_recorded_by(holding, before_ns))
            is_deletable = holding.is_deletable and removable == len(holding.segments)
            if not holding.segments:
                is_deletable = is_deletable and _stopped_before(holding, before_ns)
        states.append(_State(holding, rule, removable, is_deletable))
    size_bytes = sum(state.size_bytes for state in states)
    for state in states:
        if state.rule is not None:
            _limit_recording(state, state.rule, now_ns)
    for rule in policy.rules:
        streams: dict[_Stream, list[_State]] = {}
        for state in states:
            if state.rule is rule:
                streams.setdefault(state.holding.stream, []).append(state)
        for group in streams.values():
            _limit_stream(group, rule)
    if policy.max_directory_size is not None:
        limit = policy.max_directory_size
        _bring_down(states, limit.value, f"directory larger than {limit.text}")
    return RetentionPlan(
        [_removal(state) for state in states if state.deleted or state.is_deleted],
        [
            Retained(
                state.holding.recording_id,
                tuple(dict.fromkeys(state.refused)),
                _why(state),
                state.size_bytes,
            )
            for state in states
            if state.refused and not state.is_deleted
        ],
        size_bytes,
    )


def _count_recorded_by(holding: Holding, time_ns: int) -> int:
    """Return the number of leading segments that had been recorded at a time."""
    for count, segment in enumerate(holding.segments):
        if segment.recorded_by_ns is None or segment.recorded_by_ns > time_ns:
            return count
    return len(holding.segments)


def _limit_recording(state: _State, rule: RetentionRule, now_ns: int) -> None:
    segments = state.holding.segments
    where = f"(rule {rule.name})"
    if rule.max_age is not None:
        reason = f"older than {rule.max_age.text} {where}"
        before_ns = now_ns - rule.max_age.value
        if expired := _count_recorded_by(state.holding, before_ns):
            state.take(expired, reason)
        elif not segments and _stopped_before(state.holding, before_ns):
            state.take_all(reason)
    if rule.max_recording_size is not None:
        limit, size_bytes, count = rule.max_recording_size, state.size_bytes, state.deleted
        # The last segment with data stays: long segments must not delete a whole recording.
        end = state.holding.end_position
        filled = sum(end < 0 or segment.base_position < end for segment in segments)
        while size_bytes > limit.value and count < filled - 1:
            size_bytes -= segments[count].size_bytes
            count += 1
        if count > state.deleted:
            state.take(count, f"larger than {limit.text} {where}")


def _stopped_before(holding: Holding, time_ns: int) -> bool:
    stopped_ms = holding.descriptor.stop_timestamp_ms
    return stopped_ms >= 0 and (stopped_ms + 1) * _NS_PER_MS <= time_ns


def _limit_stream(group: list[_State], rule: RetentionRule) -> None:
    where = f"(rule {rule.name})"
    if rule.max_recordings is not None:
        limit = rule.max_recordings
        left = [state for state in group if not state.is_deleted]
        left.sort(
            key=lambda state: (
                state.holding.descriptor.start_timestamp_ms,
                state.holding.recording_id,
            )
        )
        for state in left[: max(len(left) - limit.value, 0)]:
            state.take_all(f"more than {limit.text} recordings of its stream {where}")
    if rule.max_stream_size is not None:
        limit = rule.max_stream_size
        _bring_down(group, limit.value, f"stream larger than {limit.text} {where}")


def _bring_down(states: Iterable[_State], limit_bytes: int, reason: str) -> None:
    """Delete the oldest segments until the others are within a limit."""
    left = [state for state in states if not state.is_deleted]
    excess = sum(state.size_bytes for state in left) - limit_bytes
    # The time of each recording's next segment to delete.
    queue = [entry for number, state in enumerate(left) if (entry := _next(state, number))]
    heapq.heapify(queue)
    while excess > 0 and queue:
        _, number = heapq.heappop(queue)
        state = left[number]
        excess -= state.holding.segments[state.deleted].size_bytes
        state.take(state.deleted + 1, reason)
        if entry := _next(state, number):
            heapq.heappush(queue, entry)
    if excess > 0:
        for state in left:
            if not state.is_deleted and state.most < len(state.holding.segments):
                state.refused.append(reason)


def _next(state: _State, number: int) -> tuple[int, int] | None:
    if state.deleted >= state.most:
        return None
    return state.holding.segments[state.deleted].recorded_by_ns or 0, number


def _why(state: _State) -> str:
    if state.rule is not None and state.rule.keep:
        return f"rule {state.rule.name} keeps it"
    if state.removable < state.holding.removable:
        return "it is too young for min_age"
    return state.holding.in_use or "its last segment is only deleted with the recording"


def _removal(state: _State) -> Removal:
    holding = state.holding
    deleted = holding.segments[: state.deleted]
    new_start = None if state.is_deleted else holding.segments[state.deleted].base_position
    return Removal(
        holding.descriptor,
        new_start,
        len(deleted),
        sum(segment.size_bytes for segment in deleted),
        tuple(dict.fromkeys(state.reasons)),
    )
