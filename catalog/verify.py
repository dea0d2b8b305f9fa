"""Checks of recordings: is what the catalog says on disk, and is every frame what it should be?

Changes nothing, unlike Aeron's ArchiveTool, whose `verify` sets stop positions and states: a
check must be safe to run on the only copy, and on a running archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aerotape import _native
from aerotape.catalog.descriptor import NULL_VALUE
from aerotape.catalog.directory import ArchiveDirectory, Recording
from aerotape.catalog.layout import ChecksumName, RecordingState
from aerotape.catalog.segments import SegmentFile
from aerotape.catalog.stop_position import missing_base_positions, walk
from aerotape.errors import AerotapeError, UnknownRecordingError

_LISTED = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a recording.

    Attributes:
        detail: what it is, for people.
        position: where in the recording, or -1.
        path: the file it is in, or "".
    """

    detail: str
    position: int = NULL_VALUE
    path: str = ""


@dataclass(frozen=True, slots=True)
class RecordingCheck:
    """The result of checking one recording.

    Attributes:
        recording_id: the recording; -1 when damage to the catalog leaves open which it is.
        state: VALID, or INVALID for one that was marked so.
        active: it has no stop position.
        start_position: its start position.
        stop_position: its stop position, or for an active one where its whole frames end.
        segments: segment files looked into.
        frames: frames looked at.
        payload_bytes: bytes of their payloads.
        checksums: checksums that were right.
        problems: what is wrong; empty when the recording is sound.
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
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    directory: ArchiveDirectory,
    recording_id: int | None = None,
    *,
    all_segments: bool = False,
    checksum: ChecksumName = "none",
    progress: Callable[[int], None] = lambda done: None,
) -> list[RecordingCheck]:
    """Check recordings, as ArchiveTool's verify does but without changing anything.

    Args:
        directory: the archive directory.
        recording_id: one recording, or None for all that are valid or were marked invalid.
        all_segments: look into every segment file, not only the last of each recording.
        checksum: checksum of frames and of descriptors to check, "none" for neither.
        progress: called with the number of recordings done.

    Raises:
        UnknownRecordingError: no recording has this id.
        CatalogError: the catalog cannot be read.
    """
    entries = [
        entry
        for entry in directory.entries()
        if recording_id in (None, entry.recording_id)
        and entry.state in (RecordingState.VALID, RecordingState.INVALID)
    ]
    if recording_id is not None and not entries:
        raise UnknownRecordingError(
            f"no recording with id {recording_id} in archive directory {directory.path}",
            recording_id,
        )
    checks = []
    for done, recording in enumerate(directory.recordings_of(entries), start=1):
        checks.append(_Check(recording, all_segments, checksum).run())
        progress(done)
    return checks


class _Check:
    """The check of one recording."""

    def __init__(
        self,
        recording: Recording,
        all_segments: bool,
        checksum: ChecksumName,
    ) -> None:
        self._recording = recording
        self._entry = recording.entry
        self._descriptor = recording.descriptor
        self._all_segments = all_segments
        self._checksum: ChecksumName = checksum
        self._problems: list[Problem] = []
        self._stop_position = self._descriptor.stop_position
        self._segments = self._frames = self._payload_bytes = self._checksums = 0

    def run(self) -> RecordingCheck:
        for note in self._recording.suspect_notes:
            self._found(f"marked as suspect: {note.detail}", note.position)
        if self._recording.damage:
            self._found(f"its descriptor is damaged: {self._recording.damage}")
        else:
            try:
                self._check_descriptor()
                self._check_segments()
            except (AerotapeError, OSError) as error:
                self._found(str(error), path=str(getattr(error, "path", "") or ""))
        return RecordingCheck(
            recording_id=self._entry.recording_id,
            state=RecordingState(self._entry.state).name,
            active=self._descriptor.is_active,
            start_position=self._descriptor.start_position,
            stop_position=self._stop_position,
            segments=self._segments,
            frames=self._frames,
            payload_bytes=self._payload_bytes,
            checksums=self._checksums,
            problems=tuple(self._problems),
        )

    def _found(self, detail: str, position: int = NULL_VALUE, path: str = "") -> None:
        self._problems.append(Problem(detail, position, path))

    def _check_descriptor(self) -> None:
        if self._checksum == "none":
            return
        expected = _native.checksum(self._checksum, self._entry.body)
        if expected != self._entry.checksum:
            self._found(
                f"the descriptor's checksum in the catalog is {self._entry.checksum}; "
                f"{self._checksum} of it is {expected}"
            )

    def _check_segments(self) -> None:
        segments = self._recording.segment_files()
        if self._descriptor.is_active:
            self._stop_position = self._recording.recorded_position
            if not self._recording.is_being_written:
                end = self._recording.find_end(self._checksum)
                self._stop_position = end.position
                if end.torn:
                    path = str(end.segment.path) if end.segment else ""
                    self._found(f"behind its last whole frame: {end.torn}", end.position, path)
        count, missing = missing_base_positions(self._descriptor, segments, self._stop_position)
        if count:
            listed = ", ".join(str(base) for base in missing)
            more = " …" if count > len(missing) else ""
            self._found(
                f"{count} segment files are missing, with base positions {listed}{more}",
                missing[0],
            )
        within = [
            segment
            for segment in segments
            if segment.base_position < self._stop_position
            or segment.base_position <= self._descriptor.start_position
        ]
        for segment in within if self._all_segments else within[-1:]:
            self._check_segment(segment)

    def _check_segment(self, segment: SegmentFile) -> None:
        length = self._descriptor.segment_file_length
        expected = min(self._stop_position - segment.base_position, length)
        # Behind the end of a recording that is being written there may be more every moment.
        limit = expected if self._descriptor.is_active else length
        with self._recording.local_copies([segment]) as [copy]:
            found = walk(self._descriptor, copy, self._checksum, limit)
        self._segments += 1
        self._frames += found.frames
        self._payload_bytes += found.payload_bytes
        self._checksums += found.checksum_passes
        path = str(segment.path)
        end = segment.base_position + found.end_offset
        if found.end_offset < expected:
            reason = found.problem or {
                "unwritten": "nothing was written there",
                "file-end": "the file ends there",
            }.get(found.end, found.end)
            self._found(
                f"frames end at position {end}, {expected - found.end_offset} bytes before they "
                f"should: {reason}",
                end,
                path,
            )
        elif found.end_offset > expected or found.end == "invalid":
            behind = segment.base_position + expected
            self._found(
                f"there are bytes behind the stop position {behind}: "
                f"{found.problem or f'frames up to position {end}'}",
                behind,
                path,
            )
        for offset in found.failed_offsets[:_LISTED]:
            position = segment.base_position + offset
            self._found(
                f"checksum {self._checksum} fails for the frame at position {position}",
                position,
                path,
            )
        if found.checksum_failures > _LISTED:
            self._found(
                f"checksum {self._checksum} fails for {found.checksum_failures} of "
                f"{found.checksum_failures + found.checksum_passes} frames of the segment",
                segment.base_position,
                path,
            )
