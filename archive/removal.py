"""Removal of recorded data, for clients and for the archive itself.

A recording is truncated, purged, or loses its first segments, unless what would be removed is in
use. What a feature protects is for the caller to check (`archive.control.feature`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.archive.recording.truncation import check_frame, check_truncation, cut_back
from aerotape.catalog.descriptor import segment_base
from aerotape.catalog.durability import force_names
from aerotape.catalog.forcing import force_catalog
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.quarantine import clear_marks
from aerotape.catalog.segment.placement import split_by_place
from aerotape.catalog.segment_files import list_files_to_delete
from aerotape.catalog.time_index_upkeep import cut_after, remove_indexes
from aerotape.errors import ArchiveError, StorageError
from aerotape.protocol import NULL_POSITION, ErrorCode

if TYPE_CHECKING:
    from aerotape.archive.recording.recordings import Recordings
    from aerotape.archive.recording.segments.deletion import Deletion
    from aerotape.archive.recording.segments.operations import SegmentOperations
    from aerotape.archive.replay.replay_session import Replays
    from aerotape.archive.replication.replications import Replications
    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.catalog import Catalog


def check_known(catalog: Catalog, recording_id: int) -> None:
    """Raise ArchiveError if a recording does not exist."""
    if not catalog.has_recording(recording_id):
        raise ArchiveError(f"unknown recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING)


@dataclass(eq=False, kw_only=True)
class Removals:
    """Removes recorded data. For the conductor's thread."""

    archive_dir: Path
    catalog: Catalog
    recordings: Recordings
    replays: Replays
    replications: Replications
    segments: SegmentOperations

    def truncate(self, recording_id: int, position: int) -> Deletion:
        """End a stopped recording at a position, and its replays.

        Raises:
            ArchiveError: it is refused, with the reference's error code.
            StorageError: the segment file with the position cannot be read.
        """
        check_known(self.catalog, recording_id)
        descriptor = self.catalog.descriptor(recording_id)
        check_truncation(descriptor, position)
        self.segments.locks.check_free({recording_id})
        check_frame(self.archive_dir, descriptor, position)
        self.catalog.set_stop_position(recording_id, position)
        return self.segments.deletions.delete(
            recording_id,
            partial(_cut_back, self.archive_dir, descriptor, position),
            is_ready=self.replays.end_all(recording_id),
            # An extension must not meet files that a power cut has brought back.
            finish=lambda: force_names(self.archive_dir),
            end_position=descriptor.stop_position,
        )

    def purge(self, recording_id: int, *, is_forced: bool = False) -> Deletion:
        """Remove a recording that is not in use.

        Args:
            is_forced: whether the catalog shows that on storage before a file is deleted, so that
                a power cut leaves no recording without files.

        Raises:
            ArchiveError: it is in use, or unknown.
        """
        check_known(self.catalog, recording_id)
        in_use = self._why_in_use(recording_id)
        if in_use:
            raise ArchiveError(in_use, ErrorCode.ACTIVE_RECORDING)
        self.segments.locks.check_free({recording_id})
        descriptor = self.catalog.entry(recording_id).descriptor
        left: list[str] = []

        def find_files() -> list[Path]:
            if is_forced:
                force_catalog(self.archive_dir)
            files = list_files_to_delete(self.archive_dir, recording_id)
            own, others = split_by_place(descriptor, files[::-1])
            left.extend(others)
            return own

        self.catalog.change_state(recording_id, RecordingState.DELETED)
        return self.segments.deletions.delete(
            recording_id, find_files, finish=partial(_forget, self.archive_dir, recording_id, left)
        )

    def purge_segments(self, recording_id: int, new_start_position: int) -> Deletion:
        """Delete the segments before a position (ArchiveError: as `check_detach`, or held)."""
        self.check_detach(recording_id, new_start_position)
        return self.segments.purge(recording_id, new_start_position)

    def check_detach(self, recording_id: int, position: int) -> None:
        """Refuse a new start position that is invalid or beyond data in use.

        Raises:
            ArchiveError: it is not a segment boundary, not after the first segment, or after the
                segment that is written to or replayed.
        """
        check_known(self.catalog, recording_id)
        descriptor = self.segments.descriptor(recording_id)

        def refuse(problem: str) -> ArchiveError:
            return ArchiveError(f"{problem} for recording {recording_id}")

        if position != segment_base(descriptor, position):
            raise refuse(f"invalid segment start: newStartPosition={position}")
        lower_bound = (
            segment_base(descriptor, descriptor.start_position) + descriptor.segment_file_length
        )
        if position < lower_bound:
            raise refuse(f"invalid detach: newStartPosition={position} lowerBound={lower_bound}")
        end_position = descriptor.stop_position
        if end_position == NULL_POSITION:
            recording = self.recordings.session(recording_id)
            if recording is None:
                raise refuse(
                    f"invalid detach: newStartPosition={position} cannot be checked, the stop"
                    " position is not known"
                )
            end_position = recording.position
        upper_bound = segment_base(descriptor, end_position)
        if position > upper_bound:
            raise refuse(
                f"invalid detach: in use, newStartPosition={position} upperBound={upper_bound}"
            )
        replay = self.replays.lowest(recording_id)
        if replay is not None and position > segment_base(descriptor, replay.position):
            raise refuse(
                f"invalid detach: replay in progress -  state={replay.state}"
                f" newStartPosition={position}"
                f" upperBound={segment_base(descriptor, replay.position)}"
                f" sessionId={replay.session_id}"
                f" streamId={replay.request.stream_id} channel={replay.channel}"
            )

    def _why_in_use(self, recording_id: int) -> str:
        """Return the reason why a recording cannot be purged; empty when it can."""
        # Includes replays to another archive that replicates it.
        if self.replays.is_replayed(recording_id):
            return f"cannot purge recording with active replay {recording_id}"
        # Not by its stop position: a damaged recording without one can be purged.
        if self.recordings.session(recording_id) is not None:
            return f"cannot purge active recording {recording_id}"
        # It may have stopped while the source is queried.
        if recording_id in self.replications.recording_ids():
            return (
                f"cannot purge active recording {recording_id}: it is being replicated to;"
                " stop the replication"
            )
        return ""


def _cut_back(archive_dir: Path, descriptor: RecordingDescriptor, position: int) -> list[Path]:
    paths = cut_back(archive_dir, descriptor, position)
    cut_after(archive_dir, descriptor.recording_id, position)
    return paths


def _forget(archive_dir: Path, recording_id: int, left: list[str]) -> None:
    clear_marks(archive_dir, recording_id)
    remove_indexes(archive_dir, recording_id)
    if left:
        raise StorageError("; ".join(left), archive_dir)
