"""What has happened to a recording since it was read, compared with a model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest
from support.builders.built_archive import add_recording
from support.builders.changed_directory import purge_segments, stop
from support.builders.segment_builder import SegmentBuilder

from aerotape.catalog.scope_layout import imported_directory
from aerotape.errors import StorageError
from aerotape.qualified_id import QualifiedId
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.read_progress import (
    Change,
    Comparison,
    LastRead,
    ReadProgress,
    identity_of,
    union,
)
from aerotape.replay.offline.reader import recording_range

SEGMENT = 65_536
PER_SEGMENT = 64
READ = PER_SEGMENT * 3 // 2
"""Messages that were read, unless a case says otherwise."""


@dataclass
class Case:
    """A recording when it was read, and when it is compared.

    Attributes:
        before: the recording that was read, to its end.
        after: the recording that is compared.
        start: start position of that.
        is_another: that is another recording.
    """

    before: SegmentBuilder
    after: SegmentBuilder
    start: int = 0
    is_another: bool = False


def built(*parts: tuple[int, int], session_id: int = 11) -> SegmentBuilder:
    """Build a recording; each part is a seed and the number of messages up to its last one."""
    builder = SegmentBuilder(segment_length=SEGMENT, session_id=session_id)
    for seed, count in parts:
        for number in range(len(builder.messages), count):
            builder.message(random.Random(f"{seed}/{number}").randbytes(992))
    return builder


def padded(builder: SegmentBuilder) -> SegmentBuilder:
    builder.pad_term()
    return builder


def then(builder: SegmentBuilder, *lengths: int) -> SegmentBuilder:
    """Add messages of other lengths."""
    for length in lengths:
        builder.message(bytes([1]) * length)
    return builder


CASES: dict[str, Callable[[], Case]] = {
    "same": lambda: Case(built((1, READ)), built((1, READ))),
    "grown": lambda: Case(built((1, READ)), built((1, 130))),
    "extended-by-another-session": lambda: Case(
        built((1, READ)), built((1, 130), session_id=12)
    ),
    "grown-by-padding": lambda: Case(built((1, READ)), padded(built((1, READ)))),
    "purged-before-the-last-message": lambda: Case(
        built((1, READ)), built((1, 130)), start=SEGMENT
    ),
    "purged-up-to-the-end": lambda: Case(built((1, PER_SEGMENT)), built((1, 64)), start=SEGMENT),
    "purged-with-the-last-message": lambda: Case(
        built((1, PER_SEGMENT)), built((1, 100)), start=SEGMENT
    ),
    "purged-before-it-was-read": lambda: Case(
        built((1, READ)), built((1, 200)), start=2 * SEGMENT
    ),
    "truncated": lambda: Case(built((1, READ)), built((1, 50))),
    "truncated-in-padding": lambda: Case(padded(built((1, READ))), built((1, READ))),
    "nothing-left": lambda: Case(built((1, READ)), built()),
    "extended-beyond": lambda: Case(built((1, READ)), built((1, 50), (2, 130))),
    "extended-to-less": lambda: Case(built((1, READ)), built((1, 50), (2, 70))),
    "extended-to-the-same": lambda: Case(built((1, READ)), built((1, 50), (2, READ))),
    "extended-with-an-equal-message": lambda: Case(
        built((1, READ)), built((1, 50), (2, READ - 1), (1, READ), (2, 130))
    ),
    "extended-with-a-longer-message": lambda: Case(
        built((1, READ)), then(built((1, READ - 1)), 3000)
    ),
    "extended-with-a-shorter-message": lambda: Case(
        built((1, READ)), then(built((1, READ - 1)), 100, 3000)
    ),
    "another-that-is-longer": lambda: Case(built((1, READ)), built((2, 130)), is_another=True),
    "another-that-is-shorter": lambda: Case(built((1, READ)), built((2, 70)), is_another=True),
    "another-of-the-same-length": lambda: Case(
        built((1, READ)), built((2, READ)), is_another=True
    ),
    "another-that-was-purged": lambda: Case(
        built((1, READ)), built((2, 200)), start=2 * SEGMENT, is_another=True
    ),
    "nothing-was-read": lambda: Case(built(), built((1, 50))),
}


def expected(case: Case, progress: ReadProgress, stop: int | None) -> Comparison:
    """Return what the model says, which knows the recording's messages."""
    start, end, position = case.start, case.after.position, progress.position
    messages = {each.position: each for each in case.after.messages if each.position >= start}
    if case.is_another and progress.identity is not None:
        return Comparison(Change.REPLACED, start, end, is_another=True)
    if stop is not None and stop == progress.stop:
        return Comparison(Change.SAME, position, end)
    if position < start:
        return Comparison(Change.PURGED, start, end)
    if end < position:
        return Comparison(Change.TRUNCATED, end, end)
    if progress.last is not None and progress.last.position >= start:
        found = messages.get(progress.last.position)
        [read] = (m for m in case.before.messages if m.position == progress.last.position)
        is_equal = found is not None and found.end_position == read.end_position
        if progress.last.crc32c is not None:
            is_equal = is_equal and found is not None and found.payload == read.payload
        if not is_equal:
            return Comparison(Change.REPLACED, position, end)
    return Comparison(Change.LONGER if position < end else Change.SAME, position, end)


def written(directory: Path, builder: SegmentBuilder, started_ms: int = 1) -> Path:
    """Write an archive directory with one live recording."""
    directory.mkdir(parents=True)
    add_recording(directory, builder, live=True, start_timestamp_ms=started_ms)
    return directory


def progresses(directory: Path) -> Iterator[ReadProgress]:
    """Return everything that can be known of a recording that was read to its end."""
    recording = open_directory(directory).recording(0)
    whole = recording_range(recording)
    *_, last = [None, *recording.messages()]
    lasts: list[LastRead | None] = [None]
    if last is not None:
        read = LastRead.at(whole, last.position, last.end_position)
        assert read.crc32c is not None
        lasts += [read, replace(read, crc32c=None)]
    end = whole.limit_position
    identities = (None, identity_of(recording.descriptor))
    for at, identity, at_stop in product(lasts, identities, (None, end)):
        yield ReadProgress(position=end, last=at, identity=identity, stop=at_stop)


@pytest.mark.parametrize("scope_id", [None, 6], ids=["own", "imported"])
@pytest.mark.parametrize("is_live", [True, False], ids=["live", "stopped"])
@pytest.mark.parametrize("name", CASES)
def test_a_recording_that_was_read(
    tmp_path: Path, name: str, is_live: bool, scope_id: int | None
) -> None:
    """Whatever is known of it: with a checksum of the last message or only its place, with the
    identity and the stop position or without them, and whether its end is given or not."""
    case = CASES[name]()
    store = directory = tmp_path / "store"
    if scope_id is not None:
        written(store, built((3, 1)))
        directory = imported_directory(store, QualifiedId(scope_id, 0))
    written(directory, case.after, 2 if case.is_another else 1)
    if case.start:
        purge_segments(directory, case.after, case.start)
    if not is_live:
        stop(directory, case.after)
    recording = open_directory(store).scope(scope_id or 0).recording(0)
    assert recording.key == (scope_id or 0) << 64
    before = written(tmp_path / "before", case.before)
    stop_position = None if is_live else case.after.position
    for progress in progresses(before):
        wanted = expected(case, progress, stop_position)
        assert progress.compare(recording) == wanted, progress
        assert progress.compare(recording, recording.recorded_position) == wanted, progress


def test_a_file_that_cannot_be_read_is_no_change(tmp_path: Path) -> None:
    """It is an error, with a checksum of the message in it or without."""
    builder = built((1, READ))
    written(tmp_path / "a", builder)
    known = [each for each in progresses(tmp_path / "a") if each.last is not None]
    path = builder.segment_path(tmp_path / "a", builder.messages[-1].position)
    path.unlink()
    recording = open_directory(tmp_path / "a").recording(0)
    for progress in known:
        assert progress.compare(recording, progress.position).change is Change.REPLACED
    path.mkdir()
    for progress in known:
        with pytest.raises(StorageError, match=str(path)):
            progress.compare(recording, progress.position)


def test_an_end_that_is_found_too_early_is_no_truncation(tmp_path: Path) -> None:
    """The last frame of a live recording may look unfinished again; its message is there."""
    builder = built((1, READ))
    written(tmp_path / "a", builder)
    recording = open_directory(tmp_path / "a").recording(0)
    *_, progress = (each for each in progresses(tmp_path / "a") if each.last is not None)
    found = progress.compare(recording, builder.messages[-1].position)
    assert found == Comparison(Change.SAME, builder.position, builder.position)


def test_parts_with_gaps() -> None:
    """Parts that touch are one; the last message is that with the highest position."""
    last = LastRead(90, 100, 7)
    parts = [
        ReadProgress(begin=60, position=100, last=last),
        ReadProgress(begin=0, position=20, last=LastRead(10, 20, 8)),
        ReadProgress(begin=20, position=40),
        ReadProgress(begin=50, position=50),
    ]
    whole = union(parts, 5)
    assert whole == ReadProgress(
        begin=0, position=100, gaps=((40, 60),), last=last, identity=5
    )
    assert whole.ranges == [(0, 40), (60, 100)]
    assert union([whole, ReadProgress(begin=40, position=70)], 5) == replace(whole, gaps=())
    assert union([], 5).ranges == []
