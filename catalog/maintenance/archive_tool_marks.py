"""States and stop positions that a verification sets in the catalog, as ArchiveTool does.

That tool checks less than `verify`, and treats more as an error: it considers all files that are
named for a recording, wherever they lie, and takes the end of the frames in the last of them for
the recording's, whatever the catalog says. A recording with an error becomes INVALID, so that no
client sees it; an INVALID one without an error becomes VALID. Segment files are not changed, unless
the last frame of a recording may be torn and the caller wants it cut off.

Where ArchiveTool would hide sound data this does not: frames without a checksum, or with one of the
other kind, are not an error. A recording whose descriptor has a wrong checksum stays as it is: the
descriptor may be damaged, or ArchiveTool, which does not renew the checksum, has changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.descriptor_checksum import checksum_kind, kind_before_stop
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.maintenance.orphans import OwnedFile, index_owned_files
from aerotape.catalog.maintenance.verify import Verification
from aerotape.catalog.recovery.quarantine import Part, Quarantine
from aerotape.catalog.recovery.stop_position import PAGE_LENGTH, frames_in_holes
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.segment.checks import SegmentTask, check_segments, segment_task
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment_files import SegmentFile, first_segment_base
from aerotape.errors import AerotapeError
from aerotape.frame_header import FRAME_ALIGNMENT, ChecksumName, align_frame
from aerotape.protocol import NULL_VALUE

if TYPE_CHECKING:
    from aerotape._native import SegmentCheck

TornFrame = Callable[[Path, int], bool]
"""Decides whether to cut off a frame that may be torn: file, and its offset there, bytes."""


@dataclass(frozen=True, slots=True)
class Marking:
    """The change of a recording's entry in the catalog.

    Attributes:
        recording_id: the recording.
        state_before: its state.
        state: its state afterwards.
        stop_position_before: its stop position, -1 when it has none.
        stop_position: its stop position afterwards.
        renewed: the checksum of the descriptor that is renewed, of what it was before it got its
            stop position; "none" when none is.
        reason: why it is INVALID; "" when it is not.
        cut_off: file and offset, bytes, of the frame to be cut off; None when none is.
        after_stop: file and number of the bytes that stay in it after a stop position that was
            lowered, up to the last that is not zero; None when there are none.
    """

    recording_id: int
    state_before: RecordingState
    state: RecordingState
    stop_position_before: int
    stop_position: int
    renewed: ChecksumName = "none"
    reason: str = ""
    cut_off: tuple[Path, int] | None = None
    after_stop: tuple[Path, int] | None = None

    @property
    def changes(self) -> bool:
        """Whether the entry is not as it is to be."""
        before = (self.state_before, self.stop_position_before)
        is_same = before == (self.state, self.stop_position) and self.renewed == "none"
        return not is_same or self.cut_off is not None

    @property
    def hides(self) -> bool:
        """Whether it is INVALID afterwards, and was not before."""
        return self.state is RecordingState.INVALID is not self.state_before


def decide(
    found: Verification,
    archive_dir: Path,
    *,
    all_segments: bool,
    checksum: ChecksumName,
    cut_off: TornFrame,
    keeps_end: Callable[[RecordingDescriptor], bool] = lambda _: False,
) -> list[Marking]:
    """Decide the new state of each recording that was checked; damaged entries stay as they are.

    Args:
        found: the check, with the same arguments.
        archive_dir: the directory with the segment files.
        all_segments: whether all segment files are checked, or the last ones.
        checksum: that of frames, or "none".
        cut_off: decides about frames that may be torn.
        keeps_end: whether the end of a recording is known elsewhere: it stays as it is.

    Raises:
        StorageError: the directory cannot be read.
    """
    index = index_owned_files(archive_dir)
    return [
        _Decision(
            entry,
            index.get(entry.recording_id, []),
            found.segments,
            all_segments,
            checksum,
            cut_off,
        ).make()
        for entry in found.entries
        if not entry.damage
        and not keeps_end(entry.descriptor)
        # Impossible lengths are damage to the catalog, which stays as it is.
        and (_position_problem(entry.descriptor) or not describe_problem(entry.descriptor))
    ]


def apply(catalog: Catalog, archive_dir: Path, marking: Marking, now_ms: int) -> None:
    """Change a recording's entry as it was decided; its checksum is renewed.

    Raises:
        StorageError: the frame that may be torn cannot be copied to quarantine or cut off.
        CatalogError: the catalog cannot be written.
    """
    if marking.cut_off is not None:
        _cut_off(archive_dir, catalog, marking, *marking.cut_off, now_ms)
    if marking.stop_position != marking.stop_position_before:
        catalog.set_end_in_any_state(marking.recording_id, marking.stop_position, now_ms)
    elif marking.renewed != "none":
        catalog.update_checksum(_entry(catalog, marking.recording_id), marking.renewed)
    if marking.state != marking.state_before:
        catalog.change_state(marking.recording_id, marking.state)


def _cut_off(
    archive_dir: Path, catalog: Catalog, marking: Marking, path: Path, offset: int, now_ms: int
) -> None:
    """Copy the bytes after `offset` to quarantine and erase them."""
    recording_id = marking.recording_id
    entry = _entry(catalog, recording_id)

    def note(name: str) -> SuspectNote:
        detail = f"the last frame may be torn: it is in {name}, the recording ends before it"
        return SuspectNote("suspect torn tail", detail, marking.stop_position, now_ms, name)

    removed = Quarantine(archive_dir, recording_id, now_ms, "the last frame may be torn")
    tail = Part(path, offset, path.stat().st_size)
    removed.remove_tail(tail, note, segment_length=entry.descriptor.segment_file_length)


def _entry(catalog: Catalog, recording_id: int) -> CatalogEntry:
    return next(entry for entry in catalog.entries() if entry.recording_id == recording_id)


def _position_problem(descriptor: RecordingDescriptor) -> str:
    """Describe impossible positions of a recording; "" when they are possible."""
    start, stop = descriptor.start_position, descriptor.stop_position
    if start < 0 or start % FRAME_ALIGNMENT:
        return f"its start position {start} cannot be"
    if not descriptor.is_active and (stop < start or stop % FRAME_ALIGNMENT):
        return f"its stop position {stop} cannot be"
    return ""


@dataclass
class _Decision:
    """The decision about one recording."""

    entry: CatalogEntry
    files: Sequence[OwnedFile]
    segments: Mapping[Path, tuple[SegmentTask, SegmentCheck]]
    all_segments: bool
    checksum: ChecksumName
    asks: TornFrame
    _cut_off: tuple[Path, int] | None = None
    _after_stop: tuple[Path, int] | None = None
    # Offset in the last file up to which no frame may be torn.
    _asked_from: int = 0
    _is_left: bool = False

    def __post_init__(self) -> None:
        self._descriptor = self.entry.descriptor

    def make(self) -> Marking:
        state = before = RecordingState(self.entry.state)
        stop_position = self._descriptor.stop_position
        renewed = self._renewed()
        if renewed is None:
            return Marking(self.entry.recording_id, before, state, stop_position, stop_position)
        try:
            reason, stop_position = self._judge()
        except (AerotapeError, OSError) as error:
            reason, stop_position = str(error), NULL_VALUE
        if reason:
            state, stop_position = RecordingState.INVALID, self._descriptor.stop_position
            # Perhaps the descriptor is wrong and the frame good.
            self._cut_off = None
        elif self._is_left:
            stop_position, self._cut_off = self._descriptor.stop_position, None
        elif self.files:
            state = RecordingState.VALID
        return Marking(
            recording_id=self.entry.recording_id,
            state_before=before,
            state=state,
            stop_position_before=self._descriptor.stop_position,
            stop_position=stop_position,
            renewed=renewed,
            reason=reason,
            cut_off=self._cut_off,
            after_stop=self._after_stop if stop_position < self._descriptor.stop_position else None,
        )

    def _judge(self) -> tuple[str, int]:
        """Return the reason why the recording is invalid, or "" and its end."""
        descriptor = self._descriptor
        if problem := _position_problem(descriptor):
            return problem, NULL_VALUE
        named = [(file.path, file.base_position) for file in self.files]
        positions = {path: base for path, base in named if base is not None and base >= 0}
        if len(positions) < len(named):
            path = next(path for path, _ in named if path not in positions)
            return f"{path.name} has no name of a segment file", NULL_VALUE
        if not positions:
            return "", descriptor.start_position
        last = max(positions, key=positions.__getitem__)
        end = positions[last] + descriptor.segment_file_length - 1
        if max(descriptor.start_position, descriptor.stop_position) > end:
            return f"it goes beyond {last.name}, its last segment file", NULL_VALUE
        stop_position = max(positions[last] + self._end_offset(last, positions[last]), 0)
        for path in sorted(positions) if self.all_segments else [last]:
            if fault := self._fault(path, positions[path]):
                return fault, NULL_VALUE
        # Once it has a stop position, no start looks for frames that a power cut has taken.
        segment = SegmentFile(last, positions[last])
        self._is_left = (
            descriptor.is_active
            and self.checksum == "none"
            and bool(frames_in_holes(descriptor, segment, self._asked_from))
        )
        stop_position = max(stop_position, descriptor.start_position)
        if stop_position < descriptor.stop_position and self._cut_off is None:
            offset = stop_position - positions[last]
            length = find_data_end(last, offset) - offset
            self._after_stop = (last, length) if length else None
        return "", stop_position

    def _renewed(self) -> ChecksumName | None:
        """Return the descriptor's checksum to renew; None if the descriptor may be damaged."""
        if self.checksum == "none" or not self.entry.checksum:
            return "none"
        if checksum_kind(self.entry) != "none":
            return "none"
        kind = kind_before_stop(self.entry)
        return None if kind == "none" else kind

    def _fault(self, path: Path, base_position: int) -> str:
        if self._is_clean(path):
            return ""
        found = self._reference(path, base_position)
        is_fault = found.invalid_offset >= 0 and self.checksum != "none"
        if is_fault and not self._fails_checksum(path, base_position):
            found = self._reference(path, base_position, checksum="none")
        offset = found.invalid_offset
        # What will be cut off is not checked.
        is_cut_off = self._cut_off is not None and (
            path == self._cut_off[0] and offset >= self._cut_off[1]
        )
        if offset < 0 or is_cut_off:
            return ""
        return f"{path.name}, offset {offset}: {found.invalid}"

    def _fails_checksum(self, path: Path, base_position: int) -> bool:
        """Whether a frame has a wrong checksum, rather than none or one of the other kind."""
        if path in self.segments:
            _, check = self.segments[path]
        else:
            task = self._task(path, base_position)
            [check] = check_segments([task], self.checksum)
        return check.checksum_failures > 0

    def _is_clean(self, path: Path) -> bool:
        """Whether our check has found nothing but good frames, up to an unwritten one."""
        if path not in self.segments:
            return False
        task, check = self.segments[path]
        if check.error or check.bad_places:
            return False
        if task.end_offset == self._descriptor.segment_file_length:
            return True
        after = check.tail
        return after is not None and (
            after.end_offset == task.end_offset < check.file_length and after.end == "unwritten"
        )

    def _end_offset(self, path: Path, base_position: int) -> int:
        """Decide about a frame that may be torn; return the end of the last file's frames."""
        if self._is_clean(path):
            task, check = self.segments[path]
            end, begin = task.end_offset, check.last_frame_offset
            aligned = align_frame(max(check.last_frame_length, 0))
            if begin < 0 or begin // PAGE_LENGTH == (begin + aligned - 1) // PAGE_LENGTH:
                self._asked_from = end
                return end
            doubtful = self._reference(path, base_position, begin).doubtful_offset
        else:
            reference = self._reference(path, base_position)
            end, doubtful = reference.end_offset, reference.doubtful_offset
        self._asked_from = end if doubtful < 0 else doubtful
        if doubtful >= 0 and self.asks(path, doubtful):
            self._cut_off = (path, doubtful)
            return doubtful
        return end

    def _reference(
        self,
        path: Path,
        base_position: int,
        start_offset: int | None = None,
        checksum: ChecksumName | None = None,
    ) -> _native.ReferenceCheck:
        task = self._task(path, base_position)
        if start_offset is not None:
            task = replace(task, start_offset=start_offset)
        return _native.reference_check(task, checksum=checksum or self.checksum)

    def _task(self, path: Path, base_position: int) -> SegmentTask:
        """Describe a check of a whole segment file, wherever it lies."""
        descriptor = self._descriptor
        end = base_position + descriptor.segment_file_length
        task = segment_task(descriptor, SegmentFile(path, base_position), end)
        is_first = base_position == first_segment_base(descriptor)
        return task if is_first else replace(task, start_offset=0)
