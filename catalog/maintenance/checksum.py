"""Computation of checksums for a directory that was recorded without, or with another one.

A frame stores its checksum in place of the session id, a catalog entry in its header. The contents
are not checked: a new checksum covers damage that the old one would have shown. So the previous
values are counted, and where other frames of the recording had right ones, those with neither a
right one nor the session id are reported. The catalog has only the session id of the last image:
frames recorded without checksums before an extension, or added by a migration, may have another
one and are reported as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aerotape import _native
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, entry_damage
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.maintenance.verify import Problem
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.catalog.segment_files import (
    SegmentFile,
    first_segment_base,
    index_segment_files,
    missing_base_positions,
    segment_file_name,
)
from aerotape.errors import UnknownRecordingError
from aerotape.frame_header import max_frame_length


@dataclass(frozen=True, slots=True)
class ChecksumOutcome:
    """The changes to one recording.

    Attributes:
        recording_id: the recording; -1 if damage to the catalog hides its id.
        descriptor_changed: whether the checksum in the catalog was another one.
        segments: segment files read.
        frames: data frames in them.
        frames_changed: those that had another checksum or none.
        frames_wrong: those of them that had neither kind of right checksum nor the recording's
            session id, while others had right checksums: they had a wrong one, or are of an earlier
            session without checksums.
        problems: what could not be done.
    """

    recording_id: int
    descriptor_changed: bool
    segments: int
    frames: int
    frames_changed: int
    frames_wrong: int
    problems: tuple[Problem, ...]


def write_checksums(
    catalog: Catalog,
    archive_dir: Path,
    recording_id: int | None = None,
    *,
    all_segments: bool = False,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[ChecksumOutcome]:
    """Give the catalog's checksum to descriptors and data frames, up to the first empty place.

    A file that has other names too is copied before it is first written to (`break_hard_link`).

    Args:
        catalog: open with the checksum to write; for reading suffices for a dry run.
        archive_dir: the directory with the segment files.
        recording_id: one valid recording, or None for all, also those that are not valid.
        all_segments: every segment file, not only the last one of each recording.
        dry_run: report what would change, and change nothing.
        progress: called some times a second with the bytes done.

    Raises:
        UnknownRecordingError: no valid recording has this id.
        StorageError: the directory cannot be read, or a file with other names cannot be copied;
            then no checksum has changed.
        CatalogError: the catalog cannot be written.
    """
    entries = [
        entry
        for entry in catalog.entries()
        if recording_id is None
        or (entry.recording_id == recording_id and entry.state == RecordingState.VALID)
    ]
    if recording_id is not None and not entries:
        raise UnknownRecordingError(
            f"no valid recording with id {recording_id} in archive directory {archive_dir}",
            recording_id,
        )
    index, _ = index_segment_files(archive_dir)
    runs = []
    for entry in entries:
        files = index.get(entry.recording_id, [])
        chosen = files if all_segments else files[-1:]
        runs.append(_Run(entry, entry_damage(entry), chosen, files))
    tasks = [task for run in runs for task in run.tasks()]
    if not dry_run:
        for task in tasks:
            if task.path.is_file():  # others are reported in the result
                break_hard_link(task.path)
    done = iter(
        _native.rewrite_checksums(
            tasks, checksum=catalog.checksum, dry_run=dry_run, progress=progress
        )
    )
    return [run.finish(catalog, [next(done) for _ in run.tasks()], dry_run) for run in runs]


@dataclass(frozen=True, slots=True)
class _Task:
    """A segment file to go through, from an offset in bytes on."""

    path: Path
    start_offset: int
    session_id: int
    max_frame_length: int


@dataclass(frozen=True, slots=True)
class _Run:
    """The work on one recording."""

    entry: CatalogEntry
    damage: str
    files: list[SegmentFile]
    all_files: list[SegmentFile]

    def tasks(self) -> list[_Task]:
        """Return the segment files to read."""
        if self.damage:
            return []
        descriptor = self.entry.descriptor
        first_base = first_segment_base(descriptor)
        begin = descriptor.start_position - first_base
        return [
            _Task(
                file.path,
                begin if file.base_position == first_base else 0,
                descriptor.session_id,
                max_frame_length(descriptor.mtu_length),
            )
            for file in self.files
        ]

    def finish(
        self, catalog: Catalog, results: Sequence[_native.RewrittenSegment], dry_run: bool
    ) -> ChecksumOutcome:
        """Give the descriptor its checksum too, and return what was done."""
        entry = self.entry
        if self.damage:
            problem = Problem(f"left as it is, its descriptor is damaged: {self.damage}")
            return ChecksumOutcome(entry.recording_id, False, 0, 0, 0, 0, (problem,))
        changed = entry.checksum != _native.checksum(catalog.checksum, entry.body)
        if changed and not dry_run:
            catalog.update_checksum(entry)
        problems = self._missing()
        for file, result in zip(self.files, results, strict=True):
            what = result.problem or (
                f"its file cannot be worked on: {result.error}"
                if result.error
                else self._why_short(file, result.end_offset)
            )
            if what:
                position = file.base_position + result.end_offset
                problems.append(Problem(what, position, str(file.path), result.end_offset))
        frames, frames_changed = sum(r.frames for r in results), sum(r.changed for r in results)
        changed_kind = sum(result.changed_kind for result in results)
        wrong = frames_changed - changed_kind - sum(result.without for result in results)
        was_kept = frames > frames_changed or changed_kind > 0
        return ChecksumOutcome(
            entry.recording_id,
            changed,
            len(self.files),
            frames,
            frames_changed,
            wrong if was_kept else 0,
            tuple(problems),
        )

    def _missing(self) -> list[Problem]:
        """Tell of segment files that are not there, as verify does."""
        descriptor = self.entry.descriptor
        start, stop = descriptor.start_position, descriptor.stop_position
        if self.entry.state == RecordingState.DELETED or stop == start:
            return []
        if not self.files:
            return [Problem("it has no segment files", start)]
        count, missing = missing_base_positions(descriptor, self.all_files, stop)
        if not count:
            return []
        name = segment_file_name(self.entry.recording_id, missing[0])
        return [Problem(f"{count} segment files are missing, the first is {name}", missing[0])]

    def _why_short(self, file: SegmentFile, end_offset: int) -> str:
        """Say that the frames of a file end too early, so that none after that was processed."""
        descriptor, base = self.entry.descriptor, file.base_position
        end = min(descriptor.stop_position - base, descriptor.segment_file_length)
        is_within = first_segment_base(descriptor) <= base
        if end_offset >= end or not is_within or self.entry.state == RecordingState.DELETED:
            return ""
        return f"its frames end {end - end_offset} bytes too early: none after that got a checksum"
