"""The check of a whole journal. Every finding is named, not only the first; nothing is changed.

A journal may change while it is checked. A finding is reported if it is found twice: what a
truncation or a compaction makes of a check is not found again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from aerotape import _native
from aerotape.codecs.raft_journal.directory import missing_records
from aerotape.codecs.raft_journal.metadata import last_flushed_index, meta_path
from aerotape.codecs.raft_journal.segment import (
    JournalSegment,
    SegmentPath,
    load_segment,
    segment_paths,
)
from aerotape.errors import JournalError, StorageError

_NO_ASQN: Final = -1
_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a journal that is not as it must be.

    Attributes:
        segment: name of the segment file, or of the broker's metadata.
        offset: where in the file, bytes.
        index: the index that the record there should have; None if it is not known.
        problem: the kind: UnknownVersion, InvalidChecksum, InvalidIndex, InvalidAsqn,
            CorruptJournal (bytes that are not what the format requires), InvalidEntry (data that
            is not a raft entry), TrailingBytes (after a raft entry), PositionGap (between
            application entries), MissingRecords (after the last one, which the broker has
            flushed), Unreadable (the file).
        why: the reason, for people.
    """

    segment: str
    offset: int
    index: int | None
    problem: str
    why: str


@dataclass(slots=True)
class JournalCheck:
    """The result of a check.

    Attributes:
        segments: segments with a descriptor.
        records: sound records.
        first_index: index of the first record; None if there are no segments.
        next_index: the index after the last record's; None if it is not known.
        findings: in the order of the segments; of the records of each, the first thousand.
        problems: how many there are, also those that are not in `findings`.
    """

    segments: int = 0
    records: int = 0
    first_index: int | None = None
    next_index: int | None = None
    findings: list[Finding] = field(default_factory=list)
    problems: int = 0


def verify_journal(
    directory: str | Path,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> JournalCheck:
    """Check every descriptor and record of a journal, several segments at a time.

    If the broker's metadata is in the directory, the journal must have all records up to the last
    flushed index. A journal with findings is checked again until a check finds the same; if it
    changes all the time, findings that two checks have in common are returned.

    Args:
        directory: the directory.
        name: the journal's name; needed if the directory holds several.
        progress: receives the bytes that a check has read so far, several times a second.

    Raises:
        ConfigurationError: there are several journals, and no name was given.
        StorageError: the directory cannot be read, or holds no journal.
    """
    directory = Path(directory)
    name = segment_paths(directory, name)[0].name
    check = _check(directory, name, progress)
    for _ in range(_ATTEMPTS):
        if not check.problems:
            break
        before, check = check, _check(directory, name, progress)
        if (check.findings, check.problems) == (before.findings, before.problems):
            break
    else:
        check.findings = [each for each in check.findings if each in before.findings]
        check.problems = len(check.findings)
    return check


def _check(directory: Path, name: str, progress: Callable[[int], None] | None) -> JournalCheck:
    # A running broker appends: what is flushed now is in the files that are listed after it.
    flushed = _load_flushed(directory, name)
    files = segment_paths(directory, name)
    loaded = [_load(file) for file in files]
    while loaded and loaded[-1] is None:  # created for later
        loaded.pop()
    sound = [segment for segment in loaded if isinstance(segment, JournalSegment)]
    tasks = [_Task(each) for each in sound]
    checks = iter(_native.verify_raft_segments(tasks, progress=progress))
    joined = _Joined()
    for file, segment in zip(files, loaded, strict=False):
        if isinstance(segment, JournalSegment):
            joined.add(segment, next(checks))
        else:
            joined.add_damaged(file, segment)
    # It may have truncated the journal, too, and stores a lower index before it does.
    again = _load_flushed(directory, name)
    if isinstance(flushed, int) and isinstance(again, int):
        flushed = min(flushed, again)
    joined.add_flushed(files[0], flushed)
    return joined.check


class _Task:
    """The records of a segment, as the native check reads it."""

    def __init__(self, segment: JournalSegment) -> None:
        self.path = segment.path
        self.offset = segment.descriptor.length
        self.limit = segment.limit
        self.first_index = segment.descriptor.index


def _load(file: SegmentPath) -> JournalSegment | Finding | None:
    try:
        return load_segment(file)
    except JournalError as error:
        kind = type(error).__name__.removesuffix("Error")
        return Finding(file.path.name, 0, None, kind, str(error))
    except StorageError as error:
        return Finding(file.path.name, 0, None, "Unreadable", str(error))


def _load_flushed(directory: Path, name: str) -> int | Finding:
    try:
        return last_flushed_index(directory, name)
    except JournalError as error:
        why, problem = str(error), "CorruptJournal"
    except StorageError as error:
        why, problem = str(error), "Unreadable"
    return Finding(meta_path(directory, name).name, 0, None, problem, why)


class _Joined:
    """The checks of segments put together, with what holds from one to the next."""

    def __init__(self) -> None:
        self.check = JournalCheck()
        self._end: tuple[str, int] | None = None
        self._last_asqn = _NO_ASQN
        self._last_highest: int | None = None

    def add_damaged(self, file: SegmentPath, finding: Finding | None) -> None:
        """Add a segment without a valid descriptor; its records cannot be found."""
        if finding is None:
            why = "the segment has no descriptor, and later ones have"
            finding = Finding(file.path.name, 0, None, "CorruptJournal", why)
        self.check.findings.append(replace(finding, index=self.check.next_index))
        self.check.problems += 1
        self.check.next_index = None
        self._last_highest = None

    def add(self, segment: JournalSegment, found: _native.RaftSegmentCheck) -> None:
        check, name, descriptor = self.check, segment.path.name, segment.descriptor
        findings = [Finding(name, *each) for each in found.findings]

        def find(problem: str, why: str, offset: int = 0, index: int | None = None) -> None:
            index = descriptor.index if index is None else index
            findings.append(Finding(name, offset, index, problem, why))

        if segment.damage is not None:
            find("CorruptJournal", str(segment.damage))
        if check.first_index is None:
            check.first_index = descriptor.index
        elif check.next_index not in (None, descriptor.index):
            why = f"the segment begins with index {descriptor.index}, expected {check.next_index}"
            find("InvalidIndex", why, index=check.next_index)
        if found.first_asqn is not None and 0 <= found.first_asqn[2] <= self._last_asqn:
            offset, index, asqn = found.first_asqn
            why = f"the asqn is {asqn}, expected -1 or more than {self._last_asqn}"
            find("InvalidAsqn", why, offset, index)
        if found.first_lowest is not None and self._last_highest is not None:
            offset, index, lowest = found.first_lowest
            # Positions of a record that could not be read are not known.
            is_next = all(each[0] >= offset for each in found.findings)
            if is_next and lowest != self._last_highest + 1:
                why = f"the lowest asqn is {lowest}, expected {self._last_highest + 1}"
                find("PositionGap", why, offset, index)
        why = segment.end_damage(found.next_index) if found.is_complete else ""
        if why:
            find("CorruptJournal", why, found.end_offset, found.next_index)
        check.findings += sorted(findings, key=lambda each: each.offset)
        check.problems += len(findings) - len(found.findings) + found.problems
        check.segments += 1
        check.records += found.records
        check.next_index = found.next_index if found.is_complete else None
        self._end = name, found.end_offset
        self._last_asqn = max(self._last_asqn, found.last_asqn)
        if found.first_lowest is not None or not found.is_complete:
            self._last_highest = found.last_highest if found.is_complete else None

    def add_flushed(self, first: SegmentPath, flushed: int | Finding) -> None:
        """Add what the broker's metadata says, after all segments."""
        check = self.check
        if isinstance(flushed, Finding):
            check.findings.append(flushed)
            check.problems += 1
            return
        next_index = check.next_index
        if self._end is None and not check.problems:  # no segment has been used
            next_index = 1
        if next_index is None or next_index > flushed:  # None: found damaged already
            return
        segment, offset = self._end or (first.path.name, 0)
        why = missing_records(next_index, flushed)
        check.findings.append(Finding(segment, offset, next_index, "MissingRecords", why))
        check.problems += 1
