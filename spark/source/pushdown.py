"""Filter pushdown: recordings and positions that a query's filters exclude are not planned.

Filters on columns that are constant in a recording, on positions, on recorded times, and on the
index of records of raft journals limit the plan: a recording or a segment file that no row could
come from is not opened. A filter that is not applied exactly is returned, so that Spark applies it
to the rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from aerotape.replay.offline.columns.names import RECORDED_TIME, added_names
from aerotape.replay.offline.columns.raft import RaftColumns
from aerotape.replay.offline.columns.times import recorded_between
from aerotape.replay.offline.seek import SeekTarget

if TYPE_CHECKING:
    from aerotape.replay.offline.directory import Recording
    from aerotape.replay.offline.reader import RecordingRange
    from aerotape.spark.source.options import ReadOptions

_HIGHEST: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Values:
    """Set of integers: `lowest` to `highest`, and of these only `among` if it is not None."""

    lowest: int = -(1 << 63)
    highest: int = _HIGHEST
    among: frozenset[int] | None = None

    def __contains__(self, value: int) -> bool:
        return self.lowest <= value <= self.highest and (self.among is None or value in self.among)

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest one; the former is higher if there are none."""
        if self.among is None:
            return self.lowest, self.highest
        lowest = max(self.lowest, min(self.among, default=_HIGHEST))
        return lowest, min(self.highest, max(self.among, default=-1))

    def and_also(self, other: Values) -> Values:
        """Return the intersection."""
        among = self.among if other.among is None else other.among
        if self.among is not None and other.among is not None:
            among = self.among & other.among
        return Values(max(self.lowest, other.lowest), min(self.highest, other.highest), among)


@dataclass(frozen=True, slots=True)
class Selection:
    """Values that a row may have by the filters pushed down; initially all."""

    recording_id: Values = Values()
    stream_id: Values = Values()
    session_id: Values = Values()
    position: Values = Values()
    index: Values = Values()
    recorded_time: Values = Values()

    def narrow(self, filters: Iterable[Filter]) -> tuple[Selection, list[Filter]]:
        """Apply filters, all of which must hold.

        Returns:
            The narrowed selection, and the filters that Spark must apply to the rows.
        """
        narrowed, left_to_spark = self, []
        for filter in filters:
            column, values, exact = _column_values(filter)
            if column:
                both = getattr(narrowed, column).and_also(values)
                narrowed = dataclasses.replace(narrowed, **{column: both})
            if not exact:
                left_to_spark.append(filter)
        return narrowed, left_to_spark

    def recordings(self, recordings: Iterable[Recording]) -> Iterator[Recording]:
        """Iterate the recordings that rows may come from, and damaged ones whose id matches."""
        for recording in recordings:
            if recording.recording_id in self.recording_id and (
                recording.damage
                or (
                    recording.descriptor.stream_id in self.stream_id
                    and recording.descriptor.session_id in self.session_id
                )
            ):
                yield recording

    def positions(self, options: ReadOptions) -> ReadOptions | None:
        """Return options with narrowed positions; None when no position is left."""
        lowest, highest = self.position.bounds
        begin = max(0, lowest, options.from_position or 0)
        end = highest + 1 if highest < _HIGHEST else _HIGHEST
        if options.to_position is not None:
            end = min(end, options.to_position)
        if begin >= end:
            return None
        narrowed = dataclasses.replace(options, from_position=begin, to_position=end)
        return self._sought(narrowed)

    def at_times(
        self,
        recordings: Iterable[Recording],
        ranges: Iterable[RecordingRange],
        options: ReadOptions,
    ) -> list[RecordingRange]:
        """Limit ranges of recordings to what may have the times; none of the results is empty."""
        is_column = RECORDED_TIME in added_names(options.payloads)
        if self.recorded_time == _EVERYTHING or not is_column:
            return list(ranges)
        by_key = {recording.key: recording for recording in recordings}
        bounds = self.recorded_time.bounds
        limited = (recorded_between(by_key[part.key], part, *bounds) for part in ranges)
        return [part for part in limited if part.length > 0]

    def _sought(self, options: ReadOptions) -> ReadOptions:
        """Begin at the lowest index, if rows are the records of raft journals.

        Other modes leave out messages that are not records, which cannot be searched.
        """
        lowest = max(self.index.lowest, min(self.index.among or (), default=0))
        if lowest <= 0 or options.payloads is None or options.seek or options.mode != "FAILFAST":
            return options
        if not isinstance(options.payloads, RaftColumns):
            return options
        return dataclasses.replace(options, seek=SeekTarget(index=lowest))


_EVERYTHING: Final = Values()
_LIMITING: Final = (("recording_id",), ("position",))


def ignored_column(filter: Filter) -> str:
    """Return the column of a filter that limits nothing although others on it do, or ""."""
    plain = filter.child if isinstance(filter, Not) else filter
    path: tuple[str, ...] = getattr(plain, "attribute", ())
    # Spark adds IsNotNull to comparisons.
    if path not in _LIMITING or isinstance(filter, IsNotNull) or _column_values(filter)[0]:
        return ""
    return path[0]


def _column_values(filter: Filter) -> tuple[str, Values, bool]:
    """Return the column that a filter narrows, "" for none, its values, and whether exactly."""
    path: tuple[str, ...] = getattr(filter, "attribute", ())
    column = path[0] if len(path) == 1 else ""
    values = _values(filter)
    if values is None:
        return "", _EVERYTHING, False
    if column in ("recording_id", "stream_id", "session_id"):
        return column, values, True
    if column == "position":
        # One range is read, from the lowest to the highest: Spark leaves out rows in between.
        return column, values, values.among is None or len(values.among) <= 1
    if column in ("index", RECORDED_TIME):
        return column, values, False
    if column == "end_position":
        # A message begins at a lower position than its end; how much lower is unknown.
        highest = min(values.highest, max(values.among, default=0) if values.among else _HIGHEST)
        return "position", Values(highest=highest - 1), False
    return "", _EVERYTHING, False


def _integer(value: object) -> int | None:
    """Return an integer, or a time as microseconds since 1970; None for values of other types."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - _EPOCH) // timedelta(microseconds=1)
    return value if type(value) is int else None  # not a bool


def _values(filter: Filter) -> Values | None:
    """Return the integers that pass a filter; None for a filter of another kind."""
    value = getattr(filter, "value", None)
    if isinstance(filter, In):
        among = frozenset(each for each in map(_integer, filter.value) if each is not None)
        return Values(among=among) if len(among) == len(set(filter.value)) else None
    value = _integer(value)
    if value is None:
        return None
    match filter:
        case EqualTo() | EqualNullSafe():
            return Values(among=frozenset((value,)))
        case GreaterThan():
            return Values(lowest=value + 1)
        case GreaterThanOrEqual():
            return Values(lowest=value)
        case LessThan():
            return Values(highest=value - 1)
        case LessThanOrEqual():
            return Values(highest=value)
        case _:
            return None
