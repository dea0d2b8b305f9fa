"""Orphaned files: which segment files are named for a recording and lie outside it.

A segment file is *orphaned* when its base position precedes the segment of the start position (it
was detached) or is after that of the stop position.

Which files are a recording's is taken more widely here than where they are read: all whose name
begins with its id and ends in ``.rec``, as in Aeron's ArchiveTool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.file.catalog import Catalog
from aerotape.catalog.file.entries import CatalogEntry, entry_damage
from aerotape.catalog.recovery.owned_files import find_leftovers
from aerotape.catalog.recovery.stop_position import walk
from aerotape.catalog.recovery.suspect_marks import suspect_ids
from aerotape.catalog.segment.placement import begins_with_frame, continues_at, misplacement
from aerotape.catalog.segment_files import (
    SEGMENT_SUFFIX,
    SegmentFile,
    file_names,
    first_segment_base,
)
from aerotape.errors import StorageError, StorageErrors
from aerotape.units import MAX_LONG

_OWNED = re.compile(rf"([0-9]+)-(.*)\{SEGMENT_SUFFIX}", re.ASCII | re.DOTALL)
_POSITION = re.compile(r"-?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class OwnedFile:
    """A file that is named for a recording.

    Attributes:
        path: the file.
        base_position: position in the stream of its first byte; None when its name has none.
    """

    path: Path
    base_position: int | None


def index_owned_files(archive_dir: Path) -> dict[int, list[OwnedFile]]:
    """List the files of a directory by the recording they are named for, in order of names.

    Raises:
        StorageError: the directory cannot be read.
    """
    index: dict[int, list[OwnedFile]] = {}
    for name in sorted(file_names(archive_dir)):
        match = _OWNED.fullmatch(name)
        if match is None or int(match[1]) > MAX_LONG:
            continue
        position = int(match[2]) if _POSITION.fullmatch(match[2]) else None
        if position is not None and abs(position) > MAX_LONG:
            position = None
        index.setdefault(int(match[1]), []).append(OwnedFile(archive_dir / name, position))
    return index


def delete_files(paths: Iterable[Path]) -> None:
    """Delete files, ignoring those that no longer exist (StorageError)."""
    for path in paths:
        with StorageErrors(f"cannot delete {path}", path):
            path.unlink(missing_ok=True)


# ---- orphaned segments ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Orphans:
    """The orphaned segment files of a directory.

    Attributes:
        paths: the files.
        undecided: entries so damaged that their files are not known.
        kept: files that look orphaned by their names, and why they must not be deleted.
        leftovers: files and folders of ours, such as time indexes, of recordings that are in the
            catalog no more and have no segment files.
    """

    paths: list[Path]
    undecided: list[CatalogEntry]
    kept: list[tuple[Path, str]]
    leftovers: list[Path]


def find_orphans(catalog: Catalog, archive_dir: Path, recording_id: int | None = None) -> Orphans:
    """Find the orphaned segment files of one recording, of whatever state, or of all.

    Files that only damage makes look orphaned are left: all of a suspect recording, files after a
    stop position at which its frames continue, and files that hold frames of another place.

    Raises:
        StorageError: the directory cannot be read.
    """
    index = index_owned_files(archive_dir)
    marked = suspect_ids(archive_dir)
    found = Orphans([], [], [], [])
    for entry in catalog.entries():
        if recording_id not in (None, entry.recording_id):
            continue
        if entry_damage(entry):
            found.undecided.append(entry)
        else:
            owned = index.get(entry.recording_id, [])
            is_marked = entry.recording_id in marked
            for file in owned:
                if not _is_orphaned(file, entry):
                    continue
                reason = _why_kept(file, entry, owned, is_marked=is_marked)
                if reason:
                    found.kept.append((file.path, reason))
                else:
                    found.paths.append(file.path)
    # An entry that cannot be read may be of any recording.
    if recording_id is None and not any(catalog.unidentified_entries()):
        found.leftovers.extend(find_leftovers(archive_dir, catalog.all_recording_ids()))
    return found


def _why_kept(
    file: OwnedFile, entry: CatalogEntry, owned: Sequence[OwnedFile], *, is_marked: bool
) -> str:
    if is_marked:
        return "its recording is marked as suspect"
    descriptor = entry.descriptor
    if (reason := why_not_its(file, descriptor)) or file.base_position is None:
        return reason
    start, stop = descriptor.start_position, descriptor.stop_position
    if file.base_position < start:
        if not continues_at(descriptor, file.path, file.base_position, file.base_position):
            return ""
        # Segments are detached up to where one begins, and that one stays.
        begin = first_segment_base(descriptor)
        if start != begin:
            return f"the start position {start} is not where a segment begins"
        if all(other.base_position not in _around(descriptor, begin) for other in owned):
            return f"there is no segment file at the start position {start}: is that right?"
        return ""
    if descriptor.is_active:
        return ""
    if file.base_position < stop:
        # Only in another order of segments than that of the start position.
        return f"what is before the stop position {stop} may be in it: is the start position right?"
    for other in owned:
        base = other.base_position
        if (
            base is not None
            and base <= stop < base + descriptor.segment_file_length
            and _end_of_frames(descriptor, other.path, base) > stop
        ):
            return (
                f"the frames of its recording continue after the stop position {stop} "
                "(`repair` takes them out and keeps a copy)"
            )
    return ""


def _around(descriptor: RecordingDescriptor, begin: int) -> tuple[int, int]:
    """Return the base of the first segment, and of the one before, where an empty one may end."""
    return begin, begin - descriptor.segment_file_length


def why_not_its(file: OwnedFile, descriptor: RecordingDescriptor) -> str:
    """Describe content of a file that contradicts its name, or return ""."""
    if file.base_position is not None:
        return misplacement(descriptor, file.path, file.base_position)
    if begins_with_frame(descriptor, file.path):
        return "it begins with a frame, and its name says no position: rename it"
    return ""


def _end_of_frames(descriptor: RecordingDescriptor, path: Path, base_position: int) -> int:
    try:
        return base_position + walk(descriptor, SegmentFile(path, base_position)).end_offset
    except (StorageError, OSError):
        return base_position


def _is_orphaned(file: OwnedFile, entry: CatalogEntry) -> bool:
    if file.base_position is None:
        return True
    descriptor = entry.descriptor

    if file.base_position < segment_base(descriptor, descriptor.start_position):
        return True
    # Where a recording without a stop position ends is not known.
    return not descriptor.is_active and file.base_position > segment_base(
        descriptor, descriptor.stop_position
    )
