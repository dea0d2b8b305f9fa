"""Time indexes of recordings that were joined or extended: no time filter may miss a row.

The recorded messages and their times are modelled. There are no segment files, so only points and
timestamps are known, as in a copied directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from support.builders.built_archive import ENTRY

import aerotape
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.time_index.file import (
    Provenance,
    read_time_index,
    time_index_path,
    write_time_index,
)
from aerotape.catalog.time_index.points import TimePoint
from aerotape.catalog.time_index_upkeep import join_indexes, prepare_extension
from aerotape.replay.offline.directory import Recording
from aerotape.times import TimeRange

SECOND = 1_000_000_000
BASE = 1_700_000_000 * SECOND
STEP, COUNT = 64, 16
LENGTH = STEP * COUNT
SESSION_ID = 5


@dataclass(frozen=True)
class Half:
    """Sixteen messages of 64 bytes, one a second, the first one a second after the start."""

    recording_id: int
    start: int
    start_ns: int

    @property
    def times(self) -> dict[int, int]:
        """When the message at each position was recorded."""
        return {
            self.start + number * STEP: self.start_ns + (number + 1) * SECOND
            for number in range(COUNT)
        }

    def points(self, which: str) -> list[TimePoint]:
        """The end of each fourth message, with or without the two ends of the recording, or no
        points."""
        numbers = {"all": range(0, COUNT + 1, 4), "inner": range(4, COUNT, 4), "none": range(0)}
        half_second = SECOND // 2
        return [
            TimePoint(
                self.start_ns + number * SECOND + half_second,
                self.start + number * STEP,
                SESSION_ID,
            )
            for number in numbers[which]
        ]

    def put(self, archive_dir: Path, catalog: Catalog, which: str) -> None:
        """Add it to a directory, with some of its points."""
        changes = {
            "start_position": self.start,
            "start_timestamp_ms": self.start_ns // 1_000_000,
            "stop_position": self.start + LENGTH,
            "stop_timestamp_ms": self.start_ns // 1_000_000 + (COUNT + 1) * 1_000,
            "segment_file_length": 65_536,
            "session_id": SESSION_ID,
        }
        recording_id = catalog.add_recording(**(ENTRY | changes))
        assert recording_id == self.recording_id
        if which != "none":
            path = time_index_path(archive_dir, recording_id)
            write_time_index(path, Provenance.of(catalog.entry(recording_id)), self.points(which))


def assert_misses_nothing(recording: Recording, times: dict[int, int]) -> None:
    index = recording.time_index
    assert not index.problem
    for position, time_ns in times.items():
        begin, end = index.positions(TimeRange(time_ns, time_ns + 1))
        assert begin <= position < end, "the message is in the range of its own time"
        bounds = index.time_at(position)
        assert bounds.not_before_ns is None or bounds.not_before_ns <= time_ns
        assert bounds.not_after_ns is None or time_ns <= bounds.not_after_ns


CLOCKS = (BASE, BASE + 8 * SECOND, BASE + 60 * SECOND)
POINTS = ("all", "inner", "none")


def test_a_joined_recording_is_searched_correctly_with_any_points(
    tmp_path: Path,
) -> None:
    cases = product((True, False), CLOCKS, CLOCKS, POINTS, POINTS)
    for number, (source_is_first, first_ns, second_ns, *which) in enumerate(cases):
        archive_dir = tmp_path / str(number)
        archive_dir.mkdir()
        starts = [(0, first_ns), (LENGTH, second_ns)]
        source, target = (
            Half(recording_id, *start)
            for recording_id, start in enumerate(starts if source_is_first else starts[::-1])
        )
        with Catalog.open(archive_dir, create=True) as catalog:
            source.put(archive_dir, catalog, which[0])
            target.put(archive_dir, catalog, which[1])
            join_indexes(archive_dir, catalog.entry(0), catalog.entry(1))
            # If it is interrupted here, each of the two is still unchanged.
            for half in (source, target):
                alone = aerotape.open_directory(archive_dir).recording(half.recording_id)
                assert_misses_nothing(alone, half.times)
            if source_is_first:
                catalog.set_start_position(1, source.start)
            else:
                catalog.set_stop_position(1, source.start + LENGTH)
        joined = aerotape.open_directory(archive_dir).recording(1)
        assert_misses_nothing(joined, source.times | target.times)


def test_points_up_to_the_joint_are_unchanged(tmp_path: Path) -> None:
    source, target = Half(0, 0, BASE), Half(1, LENGTH, BASE + 60 * SECOND)
    with Catalog.open(tmp_path, create=True) as catalog:
        source.put(tmp_path, catalog, "all")
        target.put(tmp_path, catalog, "all")
        join_indexes(tmp_path, catalog.entry(0), catalog.entry(1))
        found = read_time_index(time_index_path(tmp_path, 1))
        assert found is not None
        assert found.points == [*source.points("all"), *target.points("all")]
        assert found.provenance == Provenance.of(catalog.entry(1))


def test_an_extension_after_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    for number, which in enumerate(POINTS):
        archive_dir = tmp_path / str(number)
        archive_dir.mkdir()
        before, after = Half(0, 0, BASE + 60 * SECOND), Half(0, LENGTH, BASE)
        with Catalog.open(archive_dir, create=True) as catalog:
            before.put(archive_dir, catalog, which)
            entry = catalog.entry(0)
            assert prepare_extension(archive_dir, entry, Provenance.of(entry)) == ""
            catalog.set_stop_position(0, 2 * LENGTH)
            path = time_index_path(archive_dir, 0)
            made = read_time_index(path)
            points = [] if made is None else made.points
            # The points that the recorder appends.
            write_time_index(path, Provenance.of(entry), [*points, *after.points("all")])
        extended = aerotape.open_directory(archive_dir).recording(0)
        times = before.times | after.times
        index = extended.time_index
        for position, time_ns in times.items():
            begin, end = index.positions(TimeRange(time_ns, time_ns + 1))
            assert begin <= position < end, which
