"""Verification of recordings: whether the files match the catalog and every frame is good.

Changes nothing: a check must be safe on the only copy and on a running archive. The marks that
ArchiveTool sets in the catalog afterwards are those of `archive_tool_marks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aerotape import _native
from aerotape.catalog.descriptor import describe_problem
from aerotape.catalog.directory import StoredDirectory, StoredRecording
from aerotape.catalog.file.descriptor_checksum import checksum_kind, kind_before_stop
from aerotape.catalog.file.entries import CatalogEntry, checked_entries
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.stop_position import find_recording_end
from aerotape.catalog.recovery.suspect_marks import SuspectNote, is_suspect
from aerotape.catalog.segment.checks import (
    ByteProgress,
    SegmentTask,
    check_segments,
    segment_task,
)
from aerotape.catalog.segment_files import (
    SegmentFile,
    describe_missing,
    index_segment_files,
    listed,
    missing_base_positions,
    own_segments,
    why_none_fits,
)
from aerotape.errors import AerotapeError
from aerotape.frame_header import ChecksumName
from aerotape.protocol import NULL_VALUE
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from aerotape._native import BadFrame, SegmentCheck

_LISTED = 1000
"""Most problems of a recording that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a recording.

    Attributes:
        detail: what it is, for people.
        position: where in the recording, or -1.
        path: the file it is in, or "".
        offset: where in that file, bytes, or -1.
        length: how many bytes there are bad, 0 when it is not about bytes.
    """

    detail: str
    position: int = NULL_VALUE
    path: str = ""
    offset: int = NULL_VALUE
    length: int = 0


@dataclass(frozen=True, slots=True)
class RecordingCheck:
    """The result of checking one recording.

    Attributes:
        recording_id: the recording; -1 when damage to the catalog leaves open which it is.
        state: VALID, or INVALID for one that was marked so.
        active: it has no stop position.
        start_position: its start position.
        stop_position: its stop position, or for an active one where its whole frames end.
        segments: segment files checked.
        frames: frames checked.
        payload_bytes: bytes of their payloads.
        checksums: checksums of the requested kind that were right.
        other_checksums: checksums of the other kind that were right.
        unchecked_frames: data frames without a checksum, where one was to be checked.
        payloads: whether payloads were checked: "checked", "partly checked" or "not checked".
        bad_places: places in segment files where there is no good frame.
        problems: what is wrong; empty when the recording is sound. The first thousand.
        remarks: what else is to be known about the result.
        notes: why it was marked as suspect.
    """

    recording_id: int
    state: str
    active: bool
    start_position: int
    stop_position: int
    segments: int
    frames: int
    payload_bytes: int
    checksums: int
    other_checksums: int
    unchecked_frames: int
    payloads: str
    bad_places: int
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...]
    notes: tuple[SuspectNote, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and damage that was found before is accepted."""
        return not self.problems and not is_suspect(self.notes)


@dataclass(frozen=True, slots=True)
class Verification:
    """The results of checking a directory, with the input of `archive_tool_marks`.

    Attributes:
        checks: one for each recording.
        entries: their entries in the catalog, in the same order.
        segments: the checks of segment files, by path.
    """

    checks: list[RecordingCheck]
    entries: list[CatalogEntry]
    segments: dict[Path, tuple[SegmentTask, SegmentCheck]]


def run_verification(
    directory: StoredDirectory[Any],
    recording_id: int | None = None,
    *,
    all_segments: bool = False,
    checksum: ChecksumName = "none",
    positions: Callable[[StoredRecording], tuple[int, int]] | None = None,
    progress: ByteProgress | None = None,
) -> Verification:
    """Check recordings, on all processors.

    Args:
        directory: the archive directory.
        recording_id: one recording, or None for all that are valid or were marked invalid.
        all_segments: check every segment file, not only the last of each recording.
        checksum: checksum of frames and of descriptors to check, "none" for neither.
        positions: returns for a recording the range of positions to check: all segment files that
            hold some of it.
        progress: called some times a second.

    Raises:
        UnknownRecordingError: no recording has this id.
        CatalogError: the catalog cannot be read.
        StorageError: the directory cannot be read.
    """
    entries = checked_entries(directory.entries(), recording_id, directory.path)
    index: dict[int, list[SegmentFile]] | None = None
    if not isinstance(directory.path, UrlPath):
        index, _ = index_segment_files(directory.path)
    runs = [
        _Check(
            recording,
            None if index is None else index.get(recording.recording_id, []),
            all_segments,
            checksum,
            positions,
        )
        for recording in directory.recordings_of(entries)
    ]
    tasks = [task for run in runs for task in run.plan()]
    if index is None:
        results = iter(_check_copies(runs, checksum, progress))
    else:
        results = iter(check_segments(tasks, checksum, progress))
    segments: dict[Path, tuple[SegmentTask, SegmentCheck]] = {}
    checks = []
    for run in runs:
        found = [run.reconsidered(task, next(results)) for task in run.tasks]
        segments.update((task.path, (task, check)) for task, check in found)
        checks.append(run.finish(found))
    return Verification(checks, entries, segments)


def _check_copies(
    runs: Sequence[_Check], checksum: ChecksumName, progress: ByteProgress | None
) -> Iterator[SegmentCheck]:
    """Check segments in remote storage, one after the other."""
    total = sum(task.end_offset - task.start_offset for run in runs for task in run.tasks)
    done = 0
    for run in runs:
        for task in run.tasks:
            segment = SegmentFile(task.path, task.base_position)
            with run.recording.local_copies([segment]) as [copy]:
                yield from check_segments([replace(task, path=copy.path)], checksum)
            done += task.end_offset - task.start_offset
            if progress is not None:
                progress(done, total)


@dataclass
class _Check:
    """The check of one recording: the plan of files to check, then the judgement of results."""

    recording: StoredRecording
    # Listed once for all recordings; None in remote storage, where each lists its own.
    segments: Sequence[SegmentFile] | None
    all_segments: bool
    checksum: ChecksumName
    positions: Callable[[StoredRecording], tuple[int, int]] | None
    tasks: list[SegmentTask] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)
    _remarks: list[str] = field(default_factory=list)
    # By base position: the segment files before others.
    _before: dict[int, SegmentFile] = field(default_factory=dict)
    _bad_places: int = 0

    def __post_init__(self) -> None:
        self._entry = self.recording.entry
        self._descriptor = self.recording.descriptor
        self._stop_position = self._descriptor.stop_position
        # Its end may advance during the check.
        self._is_written = self.recording.is_being_written

    def plan(self) -> list[SegmentTask]:
        """Check the descriptor and names; return the files to be checked."""
        damage = self.recording.damage or describe_problem(self._descriptor)
        if damage:
            self._found(f"its descriptor is damaged: {damage}")
            return []
        self._check_descriptor()
        try:
            if self.segments is None:
                segments = self.recording.segment_files()
            else:
                segments = own_segments(self._descriptor, self.segments)
                misfit = why_none_fits(self._descriptor, self.segments)
                if misfit and not self._is_written:
                    self._found(misfit, self._descriptor.start_position)
            self._find_end(segments)
            self._plan_segments(segments)
        except (AerotapeError, OSError) as error:
            self._found(str(error), path=str(getattr(error, "path", "") or ""))
        return self.tasks

    def reconsidered(
        self, task: SegmentTask, check: SegmentCheck
    ) -> tuple[SegmentTask, SegmentCheck]:
        """Return a check, made again if its first frame may be the last one of a session.

        A frame of a session without checksums is known by the one before it, in another file.
        """
        first = check.bad[0] if check.bad else None
        if first is None or first.kind != "checksum" or first.offset != task.start_offset:
            return task, check
        before = self._before.get(task.base_position)
        if before is None:
            return task, check
        segment = SegmentFile(task.path, task.base_position)
        with self.recording.local_copies([before, segment]) as [one, two]:
            before_task = segment_task(self._descriptor, one, self._stop_position)
            tasks = [before_task, replace(task, path=two.path)]
            return task, check_segments(tasks, self.checksum)[1]

    def finish(self, found: Sequence[tuple[SegmentTask, SegmentCheck]]) -> RecordingCheck:
        """Return the result of the recording's check."""
        for task, check in found:
            self._judge(task, check)
        checks = [check for _, check in found]
        passes = sum(check.checksum_passes for check in checks)
        other = sum(check.other_checksum_passes for check in checks)
        without = sum(check.without_checksum for check in checks)
        if passes + other and not self._entry.checksum:
            self._remarks.append("its descriptor has no checksum")
        return RecordingCheck(
            recording_id=self._entry.recording_id,
            state=RecordingState(self._entry.state).name,
            active=self._descriptor.is_active,
            start_position=self._descriptor.start_position,
            stop_position=self._stop_position,
            segments=len(checks),
            frames=sum(check.frames for check in checks),
            payload_bytes=sum(check.payload_bytes for check in checks),
            checksums=passes,
            other_checksums=other,
            unchecked_frames=without,
            payloads=self._payloads(passes + other, without),
            bad_places=self._bad_places,
            problems=tuple(self._problems),
            remarks=tuple(self._remarks),
            notes=tuple(self.recording.suspect_notes),
        )

    def _found(
        self,
        detail: str,
        position: int = NULL_VALUE,
        path: Path | str = "",
        offset: int = NULL_VALUE,
        length: int = 0,
    ) -> None:
        if len(self._problems) < _LISTED:
            self._problems.append(Problem(detail, position, str(path), offset, length))

    def _check_descriptor(self) -> None:
        if self.checksum == "none" or checksum_kind(self._entry) != "none":
            return
        if not self._entry.checksum:
            return
        if kind_before_stop(self._entry) != "none":
            self._remarks.append(
                "the descriptor's checksum was not renewed when its stop position was set"
            )
            return
        expected = _native.checksum(self.checksum, self._entry.body)
        self._found(
            f"the descriptor's checksum in the catalog is {self._entry.checksum}; "
            f"{self.checksum} of it is {expected}: it is damaged, or was changed by a program that "
            f"does not renew the checksum; if it is right, `checksum {self.checksum} "
            f"{self._entry.recording_id}` renews it"
        )

    def _payloads(self, checked: int, without: int) -> str:
        if self.checksum == "none":
            kind = checksum_kind(self._entry)
            if kind != "none":
                self._remarks.append(f"its payloads are checked with `-checksum {kind}`")
            return "not checked"
        if not without:
            return "checked"
        return "partly checked" if checked else "not checked"

    def _find_end(self, segments: Sequence[SegmentFile]) -> None:
        if not self._descriptor.is_active:
            return
        if self._is_written:
            self._stop_position = self.recording.recorded_position
            return
        if self.segments is None:
            end = self.recording.find_end(self.checksum)
        else:
            end = find_recording_end(self._descriptor, segments, self.checksum, holes=True)
        self._stop_position = end.position
        if end.damaged_positions and self.checksum == "none":
            count = len(end.damaged_positions)
            self._found(
                f"{count} frames are partly in holes of the file, at positions "
                f"{listed(end.damaged_positions, count)}: never wholly written, unless a copy "
                "made the holes",
                end.damaged_positions[0],
                str(end.segment.path) if end.segment else "",
            )
        if end.torn:
            path = str(end.segment.path) if end.segment else ""
            self._found(
                f"after its last whole frame: {end.torn}",
                end.position,
                path,
                end.offset,
                end.data_end - end.offset,
            )

    def _plan_segments(self, segments: Sequence[SegmentFile]) -> None:
        count, missing = missing_base_positions(self._descriptor, segments, self._stop_position)
        if count and self._is_written:
            # They may have been created since the files were listed.
            segments = self.recording.segment_files()
            count, missing = missing_base_positions(self._descriptor, segments, self._stop_position)
        if count:
            self._found(describe_missing(count, missing), missing[0])
        within = [
            segment
            for segment in segments
            if segment.base_position < self._stop_position
            or segment.base_position <= self._descriptor.start_position
        ]
        self._before = {after.base_position: before for before, after in pairwise(within)}
        for segment in self._chosen(within):
            # After the end of a recording that is being written more data may follow at any time.
            is_last = segment is within[-1] and not self._is_written
            self.tasks.append(
                segment_task(self._descriptor, segment, self._stop_position, past_end=is_last)
            )

    def _chosen(self, segments: Sequence[SegmentFile]) -> Sequence[SegmentFile]:
        if self.positions is None:
            return segments if self.all_segments else segments[-1:]
        begin, end = self.positions(self.recording)
        length = self._descriptor.segment_file_length
        return [s for s in segments if begin < s.base_position + length and s.base_position < end]

    def _judge(self, task: SegmentTask, check: SegmentCheck) -> None:
        path = str(task.path)
        if check.error:
            self._found(f"it cannot be read: {check.error}", task.base_position, path)
            return
        self._bad_places += check.bad_places
        for bad in check.bad:
            position = task.base_position + bad.offset
            detail = self._describe(task, bad, position)
            self._found(detail, position, path, bad.offset, bad.length)
        left = check.bad_places - len(check.bad)
        if left:
            self._found(
                f"{left} more bad places in {task.path.name}: "
                f"{check.checksum_failures} checksums fail there, {check.checksum_passes} are "
                f"right",
                task.base_position,
                path,
            )
        after = check.tail
        if after is not None and (after.end_offset > task.end_offset or after.end == "invalid"):
            position = task.base_position + task.end_offset
            frames = f"frames up to position {task.base_position + after.end_offset}"
            self._found(
                f"there are bytes after the stop position {position}: {after.problem or frames}",
                position,
                path,
                task.end_offset,
                after.end_offset - task.end_offset,
            )

    def _describe(self, task: SegmentTask, bad: BadFrame, position: int) -> str:
        if bad.kind == "checksum":
            return (
                f"checksum {self.checksum} fails for the frame at position {position}: {bad.detail}"
            )
        if bad.offset + bad.length == task.end_offset:
            return (
                f"frames end at position {position}, {bad.length} bytes before they should: "
                f"{bad.detail}"
            )
        return f"no good frame for {bad.length} bytes at position {position}: {bad.detail}"
