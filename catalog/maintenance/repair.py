"""Repair of recordings: carries out the plans of `repair_plan`.

The order of steps makes it safe to be killed at any point. First the damaged bytes go to quarantine
(`Quarantine.remove`), then gaps are filled with padding. The catalog is changed last: until then
the damage can be found again, and a second repair continues from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import checked_entries
from aerotape.catalog.framing import padding_header
from aerotape.catalog.maintenance.repair_plan import RepairPlan, plan_repair
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery.quarantine import Part, Quarantine
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.catalog.recovery.trailing_segment import make_if_lacking
from aerotape.catalog.segment.checks import ByteProgress
from aerotape.catalog.segment.hard_links import break_hard_link
from aerotape.catalog.segment_files import (
    SegmentFile,
    index_segment_files,
    segment_ranges,
)
from aerotape.errors import StorageErrors
from aerotape.frame_header import ChecksumName

_MAX_PADDING_BYTES = 1 << 20
"""ArchiveTool reads frames up to that length; a replay refuses more than an eighth of a term."""
_ZEROS = bytes(1 << 20)


def plan_repairs(
    catalog: Catalog,
    archive_dir: Path,
    recording_id: int | None = None,
    checksum: ChecksumName = "none",
    *,
    cut_at_damage: bool = False,
    keeps_end: Callable[[RecordingDescriptor], bool] = lambda _: False,
    progress: ByteProgress | None = None,
) -> Iterator[RepairPlan]:
    """Plan the repair of recordings, one after the other.

    Args:
        catalog: the catalog.
        archive_dir: the directory with the segment files.
        recording_id: one recording, which becomes valid; or None for all valid ones, and those
            marked invalid that have damage.
        checksum: checksum that frames were recorded with, "none" to check headers alone.
        cut_at_damage: end recordings before their first damage.
        keeps_end: whether the end of a recording is known elsewhere, and does not change.
        progress: called some times a second, for each recording.

    Raises:
        UnknownRecordingError: no recording has this id.
        StorageError: the directory cannot be read.
    """
    entries = checked_entries(catalog.entries(), recording_id, archive_dir)
    index, _ = index_segment_files(archive_dir)
    for entry in entries:
        yield plan_repair(
            entry,
            index.get(entry.recording_id, []),
            checksum,
            cut_at_damage=cut_at_damage,
            brings_back=recording_id is not None,
            keeps_end=keeps_end(entry.descriptor),
            progress=progress,
        )


def repair(catalog: Catalog, archive_dir: Path, plan: RepairPlan, now_ms: int) -> Path | None:
    """Carry out a plan; return the folder of the copies, None when nothing was removed.

    Args:
        catalog: open for writing; no archive uses the directory.
        archive_dir: the directory with the segment files.
        plan: created just now.
        now_ms: epoch milliseconds.

    Raises:
        StorageError: a file cannot be written; nothing is lost, and it can be repeated.
        CatalogError: the catalog cannot be written.
    """
    if not plan.is_needed:
        return None
    folder = None
    errors = StorageErrors(
        f"cannot repair recording {plan.recording_id} (removed data was copied before, and the "
        "repair can be repeated)",
        archive_dir,
        names_file=True,
    )
    if plan.takes_out:
        removed = Quarantine(archive_dir, plan.recording_id, now_ms, "repair")
        folder = removed.folder
        with errors:
            removed.remove(
                _suspect_notes(plan, removed.name_of(folder), now_ms),
                tail=plan.cut,
                segment_length=plan.descriptor.segment_file_length,
                segments=plan.moved,
                overwritten=list(_overwritten(archive_dir, plan)),
                **_details(plan),
            )
            _fill_damages(archive_dir, plan)
    if plan.made is not None:
        with errors:
            make_if_lacking(plan.made, plan.descriptor.segment_file_length)
    _describe(catalog, plan, now_ms)
    return folder


# ---- copies --------------------------------------------------------------------------------------


def _overwritten(archive_dir: Path, plan: RepairPlan) -> Iterator[Part]:
    """Iterate the existing parts of files that will be overwritten with padding."""
    for segment, offset, end in _filled(archive_dir, plan):
        path = segment.path
        length = path.stat().st_size if path.exists() else 0
        if length > offset:
            yield Part(path, offset, min(end, length))


def _details(plan: RepairPlan) -> dict[str, Any]:
    descriptor = plan.descriptor
    return {
        "damages": [
            {"position": d.begin, "end_position": d.end, "detail": d.detail} for d in plan.damages
        ],
        "filled_with_padding": [{"position": d.begin, "end_position": d.end} for d in plan.filled],
        "before": {
            "state": plan.state_before.name,
            "start_position": descriptor.start_position,
            "stop_position": descriptor.stop_position,
            "stop_timestamp_ms": descriptor.stop_timestamp_ms,
        },
        "after": {
            "state": plan.state.name,
            "start_position": plan.start_position,
            "stop_position": plan.stop_position,
        },
    }


def _suspect_notes(plan: RepairPlan, name: str, now_ms: int) -> list[SuspectNote]:
    notes = []
    for damage in plan.damages:
        kept = plan.start_position <= damage.begin < plan.stop_position
        became = "is padding now" if kept else "is outside the recording now"
        detail = f"positions {damage.begin} to {damage.end}: {damage.detail}; it {became}"
        notes.append(SuspectNote("repaired", detail, damage.begin, now_ms, name))
    return notes


# ---- segment files -------------------------------------------------------------------------------


def _fill_damages(archive_dir: Path, plan: RepairPlan) -> None:
    made = False
    for segment, offset, end in _filled(archive_dir, plan):
        made = made or not segment.path.exists()
        _fill(segment, plan.descriptor, offset, end)
    if made:
        sync_directory(archive_dir)


def _filled(archive_dir: Path, plan: RepairPlan) -> Iterator[tuple[SegmentFile, int, int]]:
    """Iterate the files that get padding, with the offsets of its begin and end."""
    for damage in plan.filled:
        yield from segment_ranges(archive_dir, plan.descriptor, damage.begin, damage.end)


def _fill(segment: SegmentFile, descriptor: RecordingDescriptor, offset: int, end: int) -> None:
    """Overwrite a range of a segment file with padding frames; a missing file is created."""
    path, base = segment.path, segment.base_position
    if path.exists():
        break_hard_link(path)
    file = open_no_follow(path, os.O_RDWR | os.O_CREAT)
    try:
        length = os.fstat(file).st_size
        # No zeros where nothing was written: segment files are sparse.
        at, written = offset, min(end, length)
        while at < written:
            at += os.pwrite(file, _ZEROS[: written - at], at)
        if length < descriptor.segment_file_length:
            os.ftruncate(file, descriptor.segment_file_length)
        longest = min(_MAX_PADDING_BYTES, descriptor.term_buffer_length // 8)
        while offset < end:
            header = padding_header(descriptor, base + offset, base + end, longest)
            os.pwrite(file, header.encode(), offset)
            offset += header.frame_length
        os.fsync(file)
    finally:
        os.close(file)


# ---- the catalog ---------------------------------------------------------------------------------


def _describe(catalog: Catalog, plan: RepairPlan, now_ms: int) -> None:
    """Store start, end and state in the catalog."""
    recording_id, descriptor = plan.recording_id, plan.descriptor
    if plan.start_position != descriptor.start_position:
        catalog.set_start_in_any_state(recording_id, plan.start_position)
    if plan.stop_position != descriptor.stop_position:
        timestamp_ms = now_ms if descriptor.is_active else descriptor.stop_timestamp_ms
        catalog.set_end_in_any_state(recording_id, plan.stop_position, timestamp_ms)
    if plan.state != plan.state_before:
        catalog.change_state(recording_id, plan.state)
