"""Migration of an archive directory of an old version to the current major version.

What changed with each major version:

* 1: a segment file is named by the position of its first byte. Before, segments were counted.
* 2: that position counts from the term of the recording's start.
* 3: entries of the catalog take up what they need. Before, each had 1024 bytes, as had the header.

Mark file and catalog each hold their version; that of the mark file decides which steps are due.
Each step creates an empty file that records it (``migration-<from>-to-<to>.dat``, versions as
numbers), as ArchiveTool's do. All names and entries are checked before anything is changed.

An interrupted migration can be run again unless it was interrupted within a step, between the
creation of its file and the change of the mark file's version. It is then refused, as ArchiveTool's
is: the names alone do not show how many segment files were renamed, so the directory must be
restored from a copy.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.file.entries import data_end, end_of_strings
from aerotape.catalog.file.mapped_file import check_length, map_for_reading
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.location import why_no_file
from aerotape.catalog.mark.layout import BLOCK_BEGIN, MESSAGE_HEADER, SCHEMA_ID, TEMPLATE_ID
from aerotape.catalog.mark.ownership import resolve
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment_files import (
    SEGMENT_SUFFIX,
    file_names,
    first_segment_base,
    open_regular_file,
    segment_file_name,
)
from aerotape.errors import CatalogError, MarkFileError, StorageError, StorageErrors
from aerotape.units import MAX_INT, MAX_LONG

_OLD_ALIGNMENT: Final = 1024
_UPDATED_SUFFIX: Final = ".updated"
_V1, _V2, _V3 = 1 << 16, 2 << 16, 3 << 16
_OWNED: Final = re.compile(rf"([0-9]+)-(.+)\{SEGMENT_SUFFIX}", re.ASCII | re.DOTALL)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step to the next major version.

    Attributes:
        version: the version it leads to.
        marker: the file that records it.
        renames: names of segment files, before and after, in the order in which it is done.
    """

    version: int
    marker: Path
    renames: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Migration:
    """The plan of a directory's migration.

    Attributes:
        mark_file_version: version of its mark file.
        catalog_version: version of its catalog.
        steps: the steps, none when the directory is of the current major version.
    """

    mark_file_version: int
    catalog_version: int
    steps: tuple[MigrationStep, ...]


def plan_migration(archive_dir: Path) -> Migration:
    """Plan the migration of a directory to the current major version.

    Raises:
        MarkFileError: there is no mark file that an archive has finished writing.
        CatalogError: there is no catalog, or an entry of it cannot be read.
        StorageError: a segment file has no valid name, two files would get the same name, or a
            migration was interrupted.
    """
    mark = _Mark.read(archive_dir)
    catalog = _OldCatalog(archive_dir / layout.CATALOG_FILE_NAME)
    names = set(file_names(archive_dir))
    steps = []
    reached = mark.version
    for version, new_position in (
        (_V1, _position_of_count),
        (_V2, _position_in_stream),
        (_V3, None),
    ):
        if version <= mark.version:
            continue
        # The first step of all goes by the version of the catalog, as that of the reference.
        source = catalog.version if version == _V1 else reached
        # An interrupted step may have changed the version of the catalog, and so this name's first.
        created = re.compile(rf"migration-[0-9]+-to-{version}\.dat", re.ASCII)
        if begun := sorted(filter(created.fullmatch, names)):
            raise StorageError(
                f"a migration of {archive_dir} was interrupted ({begun[0]} exists): restore the "
                f"directory from a copy",
                archive_dir / begun[0],
            )
        marker = archive_dir / f"migration-{source}-to-{version}.dat"
        renames = _renames(archive_dir, catalog.entries, names, new_position)
        steps.append(MigrationStep(version, marker, tuple(renames)))
        reached = version
    return Migration(mark.version, catalog.version, tuple(steps))


def migrate(archive_dir: Path) -> Migration:
    """Bring a directory to the current major version; return the plan that was carried out.

    No archive may be using the directory (`aerotape.catalog.mark.ownership.unused`).

    Raises:
        StorageError: as `plan_migration`, and nothing was changed; or a file cannot be written.
    """
    mark = _Mark.read(archive_dir)
    plan = plan_migration(archive_dir)
    catalog_path = archive_dir / layout.CATALOG_FILE_NAME
    with StorageErrors(f"cannot migrate {archive_dir}", archive_dir, names_file=True):
        if plan.steps:
            for path in (catalog_path, mark.path):
                os.close(open_no_follow(path))
        for step in plan.steps:
            # What may fail for want of space comes before there is no way back.
            catalog = _OldCatalog(catalog_path)
            is_due = step.version == _V3 and catalog.version < _V3
            updated = catalog.write_updated() if is_due else None
            os.close(open_no_follow(step.marker, os.O_WRONLY | os.O_CREAT))
            sync_directory(archive_dir)
            for source, target in step.renames:
                (archive_dir / source).rename(archive_dir / target)
            if updated is not None:
                updated.rename(catalog_path)
            elif step.version < _V3:
                _store_version(catalog_path, 0, step.version)
            sync_directory(archive_dir)
            _store_version(mark.path, mark.offset, step.version)
    return plan


def _store_version(path: Path, offset: int, version: int) -> None:
    with open(path, "r+b", opener=open_no_follow) as file:
        file.seek(offset)
        file.write(layout.INT.pack(version))
        file.flush()
        os.fsync(file.fileno())


# ---- the mark file -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mark:
    """The beginning of a mark file of any version; `offset` is where its header begins."""

    path: Path
    offset: int
    version: int

    @classmethod
    def read(cls, archive_dir: Path) -> _Mark:
        path = resolve(archive_dir)
        try:
            with open_regular_file(path) as file:
                data = file.read(MESSAGE_HEADER.size + BLOCK_BEGIN.size)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MarkFileError(why_no_file(archive_dir, path, "mark file"), path) from error
        except OSError as error:
            raise MarkFileError(f"cannot open mark file {path}: {error.strerror}", path) from error
        if len(data) < MESSAGE_HEADER.size + BLOCK_BEGIN.size:
            raise MarkFileError(f"{path} is too short for a mark file", path)
        # Late archives of version 3 put a message header before it.
        _, template_id, schema_id, _ = MESSAGE_HEADER.unpack_from(data)
        has_header = (template_id, schema_id) == (TEMPLATE_ID, SCHEMA_ID)
        offset = MESSAGE_HEADER.size if has_header else 0
        (version,) = layout.INT.unpack_from(data, offset)
        if version <= 0:
            raise MarkFileError(f"no archive has finished writing the mark file {path}", path)
        return cls(path, offset, version)


# ---- the catalog ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OldEntry:
    """An entry: where its header begins, how long the descriptor with its strings is, bytes."""

    offset: int
    length: int
    state: int
    descriptor: RecordingDescriptor


class _OldCatalog:
    """A catalog of any version up to the current one, read as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        errors = StorageErrors(f"cannot read catalog {path}", path, CatalogError)
        with errors, open_regular_file(path) as file:
            length = os.fstat(file.fileno()).st_size
            check_length(path, length)
            if length < layout.CATALOG_HEADER_LENGTH:
                raise CatalogError(f"catalog {path} is shorter than its header", path)
            self._data = map_for_reading(file.fileno(), length)
        self.version, _, self._next_recording_id, alignment = layout.CATALOG_HEADER.unpack_from(
            self._data
        )
        self._alignment = alignment or _OLD_ALIGNMENT
        if alignment < 0 or alignment & (alignment - 1):
            raise CatalogError(f"catalog {path} has a damaged header", path)
        self._first_offset = layout.CATALOG_HEADER_LENGTH if alignment else _OLD_ALIGNMENT

    @cached_property
    def entries(self) -> list[_OldEntry]:
        """Its entries; CatalogError for one that cannot be read."""
        return list(self._read_entries(self._first_offset))

    def _read_entries(self, offset: int) -> Iterator[_OldEntry]:
        while offset + layout.DESCRIPTOR_HEADER_LENGTH <= len(self._data):
            length, state, _ = layout.DESCRIPTOR_HEADER.unpack_from(self._data, offset)
            if length == 0 and data_end(self._data, offset) == offset:
                break
            begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
            limit = offset + layout.align(layout.DESCRIPTOR_HEADER_LENGTH + length, self._alignment)
            end = -1
            if length > 0 and begin + layout.DESCRIPTOR_BLOCK_LENGTH <= limit <= len(self._data):
                end = end_of_strings(self._data, begin, limit)
            # A length that is too long would hide the entry after it, one of zero all of them.
            if end < 0 or offset + layout.align(end - offset, self._alignment) != limit:
                raise CatalogError(
                    f"the entry at offset {offset} of catalog {self._path} is damaged: it cannot "
                    f"be migrated",
                    self._path,
                )
            descriptor = RecordingDescriptor.decode(self._data[begin:end])
            yield _OldEntry(offset, end - begin, state, descriptor)
            offset = limit

    def write_updated(self) -> Path:
        """Write it as one of version 3, no longer than it must be; return the file."""
        last_id = self.entries[-1].descriptor.recording_id if self.entries else -1
        header = layout.CATALOG_HEADER.pack(
            _V3,
            layout.CATALOG_HEADER_LENGTH,
            self._next_recording_id or last_id + 1,
            layout.DEFAULT_ALIGNMENT,
        ).ljust(layout.CATALOG_HEADER_LENGTH, b"\0")
        updated = self._path.with_name(self._path.name + _UPDATED_SUFFIX)
        try:
            with open(updated, "wb", opener=open_no_follow) as file:
                file.write(header)
                for entry in self.entries:
                    file.write(self._frame(entry))
                file.flush()
                os.fchmod(file.fileno(), stat.S_IMODE(self._path.stat().st_mode))
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                updated.unlink()
            raise
        return updated

    def _frame(self, entry: _OldEntry) -> bytes:
        header_length = layout.DESCRIPTOR_HEADER_LENGTH
        length = layout.align(header_length + entry.length, layout.DEFAULT_ALIGNMENT)
        frame = bytearray(self._data[entry.offset : entry.offset + length])
        layout.INT.pack_into(frame, 0, length - header_length)
        return bytes(frame)


# ---- names of segment files ----------------------------------------------------------------------


def _position_of_count(descriptor: RecordingDescriptor, count: int) -> int | None:
    if count > MAX_INT:
        return None
    segment_length = descriptor.segment_file_length
    return count * segment_length + (descriptor.start_position & -segment_length)


def _position_in_stream(descriptor: RecordingDescriptor, position: int) -> int | None:
    if descriptor.term_buffer_length == descriptor.segment_file_length:
        return position
    return position + (first_segment_base(descriptor))


def _renames(
    archive_dir: Path,
    entries: list[_OldEntry],
    names: set[str],
    new_position: Callable[[RecordingDescriptor, int], int | None] | None,
) -> list[tuple[str, str]]:
    """Return the names before and after of files to be renamed; `names` becomes what is then."""
    renames: list[tuple[str, str]] = []
    if new_position is None:
        return renames
    by_recording: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(names):
        if match := _OWNED.fullmatch(name):
            by_recording.setdefault(match[1], []).append((name, match[2]))
    for entry in entries:
        if entry.state == RecordingState.INVALID:
            continue
        recording_id = entry.descriptor.recording_id
        for name, number in by_recording.get(str(recording_id), []):
            position = None
            if _NUMBER.fullmatch(number):
                position = new_position(entry.descriptor, int(number))
            if position is None or position > MAX_LONG:
                raise StorageError(
                    f"{archive_dir / name} has no name of a segment file: move it away",
                    archive_dir / name,
                )
            target = segment_file_name(recording_id, position)
            if target == name:
                continue
            if target in names:
                raise StorageError(
                    f"{name} would become {target}, and there is such a file in {archive_dir}",
                    archive_dir / target,
                )
            names.remove(name)
            names.add(target)
            renames.append((name, target))
    return renames
