"""Recovery at the start of an archive: stop positions of recordings that a crash left without one.

Every valid recording without a stop position gets one (`stop_position` decides), and irregular
files of any recording are reported. Nothing here refuses a start: a recording that cannot be
handled is reported and left as it is. Bytes of a recording before its end are never written; bytes
after the end are first copied to quarantine.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from aerotape.catalog.descriptor import (
    RecordingDescriptor,
    describe_problem,
)
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.recovery import suspect_marks
from aerotape.catalog.recovery.outcomes import Finding, Outcome, RecordingOutcome
from aerotape.catalog.recovery.owned_files import ids_with_files
from aerotape.catalog.recovery.quarantine import Part, Quarantine
from aerotape.catalog.recovery.stop_position import RecordingEnd, find_recording_end
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.recovery.trailing_segment import make_if_lacking, make_next_segment
from aerotape.catalog.segment_files import (
    SegmentFile,
    belongs,
    describe_missing,
    first_segment_base,
    index_segment_files,
    listed,
    missing_base_positions,
    segment_file_size,
    why_none_fits,
)
from aerotape.errors import StorageError
from aerotape.frame_header import ChecksumName
from aerotape.protocol import NULL_VALUE

__all__ = ["Finding", "Outcome", "RecordingOutcome", "refresh"]

_THREADS: Final = 8
_EndOf = Callable[[RecordingDescriptor], RecordingEnd]
Judge = Callable[[RecordingDescriptor, RecordingEnd], RecordingEnd]


def refresh(
    catalog: Catalog,
    archive_dir: str | os.PathLike[str],
    *,
    checksum: ChecksumName = "none",
    now_ms: int,
    judge: Judge = lambda _, end: end,
) -> list[RecordingOutcome]:
    """Give every recording without a stop position one, and report on those that are not clean.

    To be called by the archive that holds the mark file, before it records.

    Args:
        catalog: open for writing.
        archive_dir: the directory with the segment files.
        checksum: checksum that the archive records with.
        now_ms: stop timestamp to set, epoch milliseconds.
        judge: returns the end of a recording, of which its frames show an end.

    Raises:
        StorageError: the directory cannot be listed.
        CatalogError: the catalog cannot be written.

    Returns:
        One outcome for each valid recording that was repaired, is marked as suspect or has a
        finding, ascending; then one for each damaged entry whose recording is not known; then one
        for the foreign files, if any.
    """
    directory = Path(archive_dir)
    # Most recordings are regular: only the rest is looked at here.
    irregular, names = catalog.irregular_recordings(directory)
    index, foreign = index_segment_files(directory, names)
    marks = suspect_marks.read_marks(directory)
    descriptors, damaged = catalog.readable_descriptors(irregular)
    unclean = {id_: each for id_, each in descriptors.items() if each.is_active}
    outcomes = []
    with _ends(unclean, index, checksum, judge) as end_of:
        for recording_id in sorted({*irregular, *filter(catalog.has_recording, marks)}):
            segments = index.get(recording_id, [])
            if recording_id in damaged:
                error = str(damaged[recording_id])
                finding = Finding(Outcome.DAMAGED_DESCRIPTOR, error, catalog.path, suspect=True)
                outcome = RecordingOutcome(recording_id, NULL_VALUE, (finding,))
            elif recording_id in unclean:
                descriptor = unclean[recording_id]
                outcome = _Repair(
                    catalog, directory, descriptor, segments, checksum, now_ms, end_of
                ).run()
            elif recording_id in descriptors:
                descriptor = descriptors[recording_id]
                end = descriptor.stop_position
                found = tuple(_inspect(descriptor, segments, end))
                with contextlib.suppress(OSError):
                    make_next_segment(directory, descriptor)
                outcome = RecordingOutcome(recording_id, end, found)
            else:
                outcome = RecordingOutcome(recording_id, catalog.stop_position(recording_id))
            if suspect_marks.is_suspect(marks.get(recording_id, ())) and not outcome.marked:
                outcome = replace(outcome, marked=True)
            if outcome.findings or outcome.repaired or outcome.marked:
                outcomes.append(outcome)
    outcomes += [_unidentified(entry, catalog.path) for entry in catalog.unidentified_entries()]
    # Entries that a power cut has taken leave files, which the next recording must not meet.
    owners = ids_with_files(directory, names)
    unknown = {recording_id for recording_id in owners if not catalog.has_entry(recording_id)}
    catalog.avoid_ids(unknown)
    foreign += [s.path for id_, segments in index.items() if id_ in unknown for s in segments]
    if foreign:
        findings = tuple(
            Finding(Outcome.FOREIGN_FILE, f"{path.name} belongs to no recording", path)
            for path in sorted(foreign)
        )
        outcomes.append(RecordingOutcome(NULL_VALUE, NULL_VALUE, findings))
    return outcomes


@contextlib.contextmanager
def _ends(
    recordings: Mapping[int, RecordingDescriptor],
    index: Mapping[int, Sequence[SegmentFile]],
    checksum: ChecksumName,
    judge: Judge,
) -> Iterator[_EndOf]:
    """Find the ends of recordings in several threads, while others are inspected."""

    def find(descriptor: RecordingDescriptor) -> RecordingEnd:
        segments = index.get(descriptor.recording_id, [])
        return judge(descriptor, find_recording_end(descriptor, segments, checksum, holes=True))

    if not recordings:
        yield find
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        found = {
            recording_id: pool.submit(find, descriptor)
            for recording_id, descriptor in recordings.items()
            if not describe_problem(descriptor)
        }
        try:
            yield lambda descriptor: found[descriptor.recording_id].result()
        finally:
            pool.shutdown(cancel_futures=True)  # a start that fails does not wait for the rest


@dataclass
class _Repair:
    """The repair of one recording."""

    catalog: Catalog
    directory: Path
    descriptor: RecordingDescriptor
    segments: Sequence[SegmentFile]
    checksum: ChecksumName
    now_ms: int
    end_of: _EndOf

    def __post_init__(self) -> None:
        self._id = self.descriptor.recording_id
        self._quarantine = Quarantine(
            self.directory, self._id, self.now_ms, "found after the end at a start"
        )

    def run(self) -> RecordingOutcome:
        problem = describe_problem(self.descriptor)
        if problem:
            finding = Finding(Outcome.DAMAGED_DESCRIPTOR, problem, suspect=True)
            return self._outcome(NULL_VALUE, [finding], repaired=False)
        try:
            end = self.end_of(self.descriptor)
            # Before the repair moves any of the files away.
            findings = _inspect(self.descriptor, self.segments, end.position)
            findings += self._judge(end)
            self._make_file_of(end)
        except (StorageError, OSError) as error:
            path = Path(getattr(error, "path", "") or getattr(error, "filename", None) or "")
            finding = Finding(Outcome.UNREADABLE, str(error), path, suspect=True)
            return self._outcome(NULL_VALUE, [finding], repaired=False)
        # The mark comes before the stop position: a crash between them must not hide it.
        outcome = self._outcome(end.position, findings, repaired=True)
        self.catalog.recording_stopped(self._id, end.position, self.now_ms)
        return outcome

    def _make_file_of(self, end: RecordingEnd) -> None:
        """Create the segment file in which the recording continues, as recorders leave it."""
        if end.segment:
            # Without space for it the recording is served all the same.
            with contextlib.suppress(OSError, StorageError):
                make_if_lacking(end.segment.path, self.descriptor.segment_file_length)
                make_next_segment(
                    self.directory, replace(self.descriptor, stop_position=end.position)
                )

    def _outcome(
        self, stop_position: int, findings: list[Finding], *, repaired: bool
    ) -> RecordingOutcome:
        suspects = [finding for finding in findings if finding.suspect]
        try:
            if suspects:
                notes = [self._note(finding) for finding in suspects]
                suspect_marks.add_notes(self.directory, self._id, notes)
        except StorageError as error:
            findings = [*findings, Finding(Outcome.UNREADABLE, str(error), suspect=True)]
        return RecordingOutcome(
            self._id, stop_position, tuple(findings), repaired=repaired, marked=bool(suspects)
        )

    def _note(self, finding: Finding) -> SuspectNote:
        return SuspectNote(
            str(finding.outcome),
            finding.detail,
            finding.position,
            self.now_ms,
            self._quarantine.name_of(finding.quarantine) if finding.quarantine else "",
        )

    def _judge(self, end: RecordingEnd) -> list[Finding]:
        findings = []
        path = end.segment.path if end.segment else None

        def found(outcome: Outcome, detail: str, position: int = NULL_VALUE) -> None:
            findings.append(Finding(outcome, detail, path, position, suspect=True))

        if end.segment is None:
            why = why_none_fits(self.descriptor, self.segments) or "no segment file"
            found(Outcome.MISSING_SEGMENTS, f"{why}: it ends where it started", end.position)
        if end.unverified:
            found(
                Outcome.CHECKSUM_MISMATCH,
                f"no frame of its last segment carries checksum {self.checksum}: was it recorded "
                f"without? Its end was judged without it",
            )
        if end.damaged_positions:
            positions = end.damaged_positions
            count, places = len(positions), listed(positions, len(positions))
            outcome, what = Outcome.TORN_FRAMES, "are partly missing"
            if self.checksum != "none" and not end.unverified:
                outcome, what = Outcome.CHECKSUM_MISMATCH, f"fail checksum {self.checksum}"
            found(
                outcome, f"{count} frames {what}, at positions {places}", end.damaged_positions[0]
            )
        if end.segment is not None and end.data_end > end.offset:
            findings.append(self._take_out_tail(end.segment, end))
        elif end.torn and end.segment is not None:
            detail = f"{end.torn}; it ends at position {end.position}"
            found(Outcome.SUSPECT_TORN_TAIL, detail, end.position)
        findings.extend(self._move_out(segment) for segment in end.beyond)
        return findings

    def _take_out_tail(self, segment: SegmentFile, end: RecordingEnd) -> Finding:
        detail = f"{end.torn}; it ends at position {end.position}"
        what = f"the {end.data_end - end.offset} bytes after it"

        def found(rest: str, copy: Path | None = None) -> Finding:
            return Finding(
                Outcome.SUSPECT_TORN_TAIL, detail + rest, segment.path, end.position, copy, True
            )

        def removed(name: str) -> Finding:
            return found(f" and {what} are in {name}", self.directory / name)

        try:
            copy = self._quarantine.remove_tail(
                Part(segment.path, end.offset, end.data_end), lambda name: self._note(removed(name))
            )
        except StorageError as error:
            return found(f"; {what} were left in place ({error}): do not extend it")
        return removed(self._quarantine.name_of(copy))

    def _move_out(self, segment: SegmentFile) -> Finding:
        base = segment.base_position
        detail = f"{segment.path.name} is after the end"

        def found(rest: str, copy: Path | None = None) -> Finding:
            return Finding(Outcome.SUSPECT_TORN_TAIL, detail + rest, segment.path, base, copy, True)

        def moved(name: str) -> Finding:
            return found(f" and is now {name}", self.directory / name)

        try:
            target = self._quarantine.remove_segment(
                segment.path, lambda name: self._note(moved(name))
            )
        except StorageError as error:
            return found(f" and was left in place ({error}): do not extend the recording")
        return moved(self._quarantine.name_of(target))


def _unidentified(entry: CatalogEntry, catalog_path: Path) -> RecordingOutcome:
    detail = f"the entry at offset {entry.offset} of the catalog is damaged: {entry.damage}"
    finding = Finding(Outcome.DAMAGED_DESCRIPTOR, detail, catalog_path, suspect=True)
    return RecordingOutcome(NULL_VALUE, NULL_VALUE, (finding,))


def _inspect(
    descriptor: RecordingDescriptor,
    segments: Sequence[SegmentFile],
    stop_position: int,
) -> list[Finding]:
    """Check names and lengths of a recording's files, not their content."""
    problem = describe_problem(descriptor)
    if problem:
        return [Finding(Outcome.DAMAGED_DESCRIPTOR, problem, suspect=True)]
    findings = []
    count, missing = missing_base_positions(descriptor, segments, stop_position)
    if count:
        detail = describe_missing(count, missing)
        findings.append(
            Finding(Outcome.MISSING_SEGMENTS, detail, position=missing[0], suspect=True)
        )
    for segment in segments:
        if not belongs(descriptor, segment.base_position):
            detail = f"{segment.path.name} begins where no segment of the recording can"
            findings.append(Finding(Outcome.FOREIGN_FILE, detail, segment.path))
        elif first_segment_base(descriptor) <= segment.base_position <= stop_position:
            findings += _inspect_length(descriptor, segment, stop_position)
    return findings


def _inspect_length(
    descriptor: RecordingDescriptor, segment: SegmentFile, stop_position: int
) -> list[Finding]:
    try:
        length = segment_file_size(segment.path)
    except StorageError as error:
        return [Finding(Outcome.UNREADABLE, str(error), segment.path, suspect=True)]
    expected, base = descriptor.segment_file_length, segment.base_position
    # Bytes of the recording that should be in this file.
    recorded = min(max(stop_position - base, 0), expected)
    name = segment.path.name
    if length == 0:
        outcome, detail, position = Outcome.ZERO_LENGTH_SEGMENT, f"{name} is empty", base
        suspect = recorded > 0 and stop_position > descriptor.start_position
    elif length < expected:
        outcome, position = Outcome.SHORT_SEGMENT, base + length
        detail = f"{name} has {length} bytes instead of {expected}"
        suspect = descriptor.is_active or length < recorded
    elif length > expected:
        outcome, position, suspect = Outcome.LONG_SEGMENT, base, False
        detail = f"{name} has {length} bytes instead of {expected}; the rest is passed over"
    else:
        return []
    return [Finding(outcome, detail, segment.path, position, suspect=suspect)]
