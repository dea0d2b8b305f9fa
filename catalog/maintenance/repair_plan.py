"""Repair plans: what must change to make a damaged recording whole. Changes nothing.

A recording is one range of positions from a start to a stop. Bytes that cannot be proved good are
copied to quarantine and removed:

* A bad **end** is cut off: the recording stops after its last good frame.
* A bad **middle** is filled with padding frames, as Aeron itself fills gaps of unreliable streams.
  All good frames keep their positions, and readers and replays see no message in the padding. A
  missing segment file is created again with nothing but padding.
* Of a bad **beginning** whole segments are removed, as if they had been purged; the rest is filled.

A recording that `keeps_end` is not cut: a bad end is filled, too. Others know positions in it, and
which of it was on storage, as of a ledger.

With `cut_at_damage` the recording ends before the first damage instead, and the rest is only
retained as a copy.

A hidden recording (INVALID) becomes valid with its repair. One without damage was hidden for
another reason, by an operator for example: it becomes valid only when its id was given.

A recording without a good frame is left alone: it is more likely that its descriptor is wrong, or
that its file system is not mounted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.file.entries import CatalogEntry, entry_damage
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.recovery.quarantine import Part
from aerotape.catalog.recovery.stop_position import find_recording_end, frames_in_holes
from aerotape.catalog.recovery.trailing_segment import next_segment_path
from aerotape.catalog.segment.checks import ByteProgress, check_recording
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment_files import (
    SegmentFile,
    first_segment_base,
    lacks_blank_segment,
    own_segments,
    segment_file_name,
    why_none_fits,
)
from aerotape.errors import StorageError
from aerotape.frame_header import ChecksumName

_MAX_MISSING_SEGMENTS = 1024
"""Most segment files that are created, so that a wrong name does not fill the disk with padding."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A run of positions without a good frame.

    Attributes:
        begin: position of its first byte.
        end: position after its last.
        detail: what is wrong there.
    """

    begin: int
    end: int
    detail: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The changes that repair one recording.

    Attributes:
        recording_id: the recording; -1 when damage to the catalog leaves open which it is.
        descriptor: its descriptor.
        state_before: its state.
        state: its state afterwards.
        start_position: its start position afterwards.
        stop_position: its stop position afterwards.
        damages: what is wrong with it, in order of positions.
        filled: the damages, or what remains of them, that become padding.
        moved: segment files that are moved to quarantine as a whole.
        cut: the bytes after the recording's end in its last file.
        made: segment file without frames to create after the last one; None when it exists.
        refused: why the recording cannot be repaired; "" when it can, or is whole.
        stays_hidden: whether it is INVALID without damage, and remains so.
    """

    recording_id: int
    descriptor: RecordingDescriptor
    state_before: RecordingState
    state: RecordingState
    start_position: int
    stop_position: int
    damages: tuple[Damage, ...] = ()
    filled: tuple[Damage, ...] = ()
    moved: tuple[Path, ...] = ()
    cut: Part | None = None
    made: Path | None = None
    refused: str = ""
    stays_hidden: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the plan changes anything."""
        return not self.refused and bool(
            self.filled or self.moved or self.cut or self.made or self.changes_catalog
        )

    @property
    def changes_catalog(self) -> bool:
        """Whether start, end or state change."""
        before = (self.descriptor.start_position, self.descriptor.stop_position, self.state_before)
        return before != (self.start_position, self.stop_position, self.state)

    @property
    def takes_out(self) -> bool:
        """Whether bytes are taken out of segment files."""
        return bool(self.filled or self.moved or self.cut)


def plan_repair(
    entry: CatalogEntry,
    segments: Sequence[SegmentFile],
    checksum: ChecksumName = "none",
    *,
    cut_at_damage: bool = False,
    brings_back: bool = True,
    keeps_end: bool = False,
    progress: ByteProgress | None = None,
) -> RepairPlan:
    """Check a recording and decide how to repair it.

    Args:
        entry: its entry in the catalog, valid or invalid.
        segments: its segment files, ascending.
        checksum: checksum that it was recorded with, "none" to go by headers alone.
        cut_at_damage: end the recording before the first damage.
        brings_back: make it VALID also when it is hidden and has no damage.
        keeps_end: its end is known elsewhere, and does not change.
        progress: called some times a second.
    """
    return _Planning(
        entry, segments, checksum, cut_at_damage, brings_back, keeps_end, progress
    ).run()


@dataclass(slots=True)
class _Planning:
    entry: CatalogEntry
    segments: Sequence[SegmentFile]
    checksum: ChecksumName
    cut_at_damage: bool
    brings_back: bool
    keeps_end: bool
    progress: ByteProgress | None
    _end: int = field(init=False, default=0)
    _after_stop: Part | None = field(init=False, default=None)
    _beyond: list[Path] = field(init=False, default_factory=list)
    _good_frames: int = field(init=False, default=0)
    _unverified: bool = field(init=False, default=False)
    _unlisted: bool = field(init=False, default=False)

    def run(self) -> RepairPlan:
        descriptor = self.entry.descriptor
        if damage := entry_damage(self.entry):
            return self._refuse(f"its descriptor is damaged: {damage}")
        if self.keeps_end and descriptor.is_active:
            return self._refuse("it has no stop position: start the archive, which knows its end")
        if self.keeps_end and self.cut_at_damage:
            return self._refuse("its end is known elsewhere: repair it without --cut")
        try:
            own = own_segments(descriptor, self.segments)
            if misfit := why_none_fits(descriptor, self.segments):
                return self._refuse(misfit)
            stop, found = self._find_end(own)
            damages = _merge(sorted([*found, *self._damages(own, stop)], key=lambda d: d.begin))
        except (StorageError, OSError) as error:
            return self._refuse(str(error))
        if stop > descriptor.start_position and not own:
            return self._refuse("it has no segment files")
        if damages and not self._good_frames:
            return self._refuse("none of its frames is good: is its descriptor right?", damages)
        if self._unverified:
            return self._refuse(
                f"no frame carries checksum {self.checksum}: was it recorded without?"
            )
        self._end = stop
        return self._decide(own, stop, damages)

    def _refuse(self, reason: str, damages: Sequence[Damage] = ()) -> RepairPlan:
        return replace(self._as_it_is(), damages=tuple(damages), refused=reason)

    def _as_it_is(self) -> RepairPlan:
        descriptor = self.entry.descriptor
        state = RecordingState(self.entry.state)
        return RepairPlan(
            recording_id=self.entry.recording_id,
            descriptor=descriptor,
            state_before=state,
            state=state,
            start_position=descriptor.start_position,
            stop_position=descriptor.stop_position,
        )

    # ---- looking ---------------------------------------------------------------------------------

    def _find_end(self, own: Sequence[SegmentFile]) -> tuple[int, list[Damage]]:
        """Return the end of the recording, and the damage after it."""
        descriptor = self.entry.descriptor
        if not descriptor.is_active:
            return descriptor.stop_position, []
        end = find_recording_end(descriptor, own, self.checksum, holes=True)
        self._beyond = [segment.path for segment in end.beyond]
        found = []
        if end.segment is not None and self.checksum == "none" and end.damaged_positions:
            base = end.segment.base_position
            found = [
                Damage(base + begin, base + end_of_frame, "a frame that is partly in a hole")
                for begin, end_of_frame in frames_in_holes(descriptor, end.segment, end.offset)
            ]
        if end.segment is None or not end.torn:
            return end.position, found
        self._after_stop = Part(end.segment.path, end.offset, end.data_end)
        length = max(end.data_end - end.offset, 0)
        return end.position, [*found, Damage(end.position, end.position + length, end.torn)]

    def _damages(self, own: Sequence[SegmentFile], stop: int) -> Iterator[Damage]:
        descriptor = self.entry.descriptor
        length = descriptor.segment_file_length
        within = [segment for segment in own if segment.base_position < stop]
        results = check_recording(descriptor, within, stop, self.checksum, self.progress)
        self._good_frames = sum(c.frames - c.checksum_failures for _, c in results)
        passes = sum(c.checksum_passes + c.other_checksum_passes for _, c in results)
        failures = sum(check.checksum_failures for _, check in results)
        self._unverified = failures > 1 and not passes
        self._unlisted = any(check.bad_places > len(check.bad) for _, check in results)
        expected = first_segment_base(descriptor)
        for task, check in results:
            if task.base_position > expected:
                yield _missing(descriptor, expected, task.base_position)
            expected = task.base_position + length
            for bad in check.bad:
                begin = task.base_position + bad.offset
                yield Damage(begin, begin + bad.length, bad.detail)
            if check.tail is not None and self._after_stop is None:
                # Also after a gap: verify lowers the stop position to a page that was lost.
                data_end = find_data_end(task.path, task.end_offset)
                if data_end > task.end_offset:
                    self._after_stop = Part(task.path, task.end_offset, data_end)
                    end = task.base_position + data_end
                    yield Damage(stop, end, "bytes after the stop position")
        if stop > max(expected, descriptor.start_position):
            yield _missing(descriptor, expected, stop)

    # ---- deciding --------------------------------------------------------------------------------

    def _decide(
        self, own: Sequence[SegmentFile], stop: int, damages: Sequence[Damage]
    ) -> RepairPlan:
        descriptor = self.entry.descriptor
        start, state = descriptor.start_position, RecordingState(self.entry.state)
        if state is RecordingState.INVALID and not damages and not self.brings_back:
            return replace(self._as_it_is(), stays_hidden=True)
        within = [damage for damage in damages if damage.begin < stop]
        if self._unlisted and not self.cut_at_damage:
            return self._refuse("it is damaged in too many places to be filled", damages)
        is_end_bad = bool(within) and within[-1].end >= stop and not self.keeps_end
        if within and (self.cut_at_damage or is_end_bad):
            stop = within[0 if self.cut_at_damage else -1].begin
            within = [damage for damage in within if damage.begin < stop]
        if within and within[0].begin <= start:
            # Whole segments at the beginning are removed while nothing in them is good.
            base = self._base(within[0].end)
            if base > start:
                start = base
                rest = within[0]
                within[0:1] = [Damage(start, rest.end, rest.detail)] if rest.end > start else []
        missing = self._count_missing(own, within)
        if missing > _MAX_MISSING_SEGMENTS:
            return self._refuse(f"{missing} of its segment files are missing", damages)
        moved, cut = self._outside(own, start, stop)
        return RepairPlan(
            recording_id=self.entry.recording_id,
            descriptor=descriptor,
            state_before=state,
            # As ArchiveTool's verify, which hides damaged recordings.
            state=RecordingState.VALID if own else state,
            start_position=start,
            stop_position=stop,
            damages=tuple(damages),
            filled=tuple(within),
            moved=tuple(moved),
            cut=cut,
            made=self._next_segment(own, start, stop),
        )

    def _next_segment(self, own: Sequence[SegmentFile], start: int, stop: int) -> Path | None:
        """Return the file to create after a full last segment; None when it exists."""
        if not own:
            return None
        after = replace(self.entry.descriptor, start_position=start, stop_position=stop)
        path = next_segment_path(own[0].path.parent, after)
        return path if path is not None and lacks_blank_segment(path) else None

    def _outside(
        self, own: Sequence[SegmentFile], start: int, stop: int
    ) -> tuple[list[Path], Part | None]:
        """Find the files outside the recording, and the bytes after its end in its last one."""
        first, last = self._base(start), self._base(stop)
        moved = [segment.path for segment in own if segment.base_position < first]
        moved += [
            segment.path
            for segment in own
            if last < segment.base_position < self._end or segment.path in self._beyond
        ]
        cut = self._after_stop
        if stop < self._end:
            path = next((segment.path for segment in own if segment.base_position == last), None)
            cut = None
            if path is not None:
                cut = Part(path, stop - last, find_data_end(path, stop - last))
        return moved, cut if cut and cut.end > cut.offset else None

    def _base(self, position: int) -> int:
        return segment_base(self.entry.descriptor, position)

    def _count_missing(self, own: Sequence[SegmentFile], filled: Sequence[Damage]) -> int:
        length = self.entry.descriptor.segment_file_length
        present = {segment.base_position for segment in own}
        count = 0
        for damage in filled:
            bases = range(self._base(damage.begin), damage.end, length)
            count += len(bases) - sum(base in bases for base in present)
        return count


def _missing(descriptor: RecordingDescriptor, base: int, end: int) -> Damage:
    name = segment_file_name(descriptor.recording_id, base)
    return Damage(max(base, descriptor.start_position), end, f"there is no {name}")


def _merge(damages: Sequence[Damage]) -> list[Damage]:
    merged: list[Damage] = []
    for damage in damages:
        if merged and damage.begin <= merged[-1].end:
            before = merged[-1]
            merged[-1] = Damage(before.begin, max(before.end, damage.end), before.detail)
        else:
            merged.append(damage)
    return merged
