"""The file `archive.catalog`: opened, mapped, grown, rewritten, forced to storage.

It is read through the mapping and changed by writes, which the mapping shows at once. A store into
the mapping would wait for a disk that stands still with the interpreter held, and end the process
where there is no storage.

Does not interpret entries (`entries` and `catalog` do). A file that is not empty and not a catalog
of a known version is left exactly as it was found.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from aerotape.catalog import layout
from aerotape.catalog.durability import reserve, sync_directory, write_at
from aerotape.catalog.location import why_no_file
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment.data_extents import data_chunks
from aerotape.errors import CatalogError, ClosedError, StorageErrors

_CHUNK_LENGTH = 1 << 20
_ZEROS = bytes(_CHUNK_LENGTH)
# Of a catalog without entries.
_HEADER = layout.CATALOG_HEADER.pack(
    layout.SEMANTIC_VERSION, layout.CATALOG_HEADER_LENGTH, 0, layout.DEFAULT_ALIGNMENT
)


class CatalogFile:
    """A mapped catalog file with a good header.

    Attributes:
        path: the file.
        read_only: whether it is mapped for reading only.
    """

    def __init__(
        self,
        path: Path,
        file_descriptor: int,
        mapping: mmap.mmap,
        *,
        read_only: bool,
        sync_level: int,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._fd = file_descriptor
        self._map = mapping
        self._sync_level = sync_level
        self._closed = False
        # The length to have once it is changed, while it is as it was found; else None.
        self._to_prepare: int | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool,
        read_only: bool,
        capacity_bytes: int,
        sync_level: int,
        lazily: bool = False,
    ) -> Self:
        """Open and map the file; an empty one, or one of zeros, gets a header.

        Args:
            path: the file.
            create: create it if it does not exist.
            read_only: map it for reading.
            capacity_bytes: the length to have at least, with all its storage.
            sync_level: see `force`.
            lazily: leave it as it is until `check_writable` announces the first change.

        Raises:
            CatalogError: it does not exist, is not a file, of another major version, or damaged.
        """
        try:
            if read_only:
                # Opening a pipe of that name must not wait for a writer.
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            else:
                descriptor = open_no_follow(path, os.O_RDWR | (os.O_CREAT if create else 0))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CatalogError(why_no_file(path.parent, path, "catalog"), path) from error
        except OSError as error:
            raise CatalogError(f"cannot open catalog {path}: {error.strerror}", path) from error
        return cls._opened(path, descriptor, read_only, capacity_bytes, sync_level, lazily)

    @classmethod
    def of_bytes(cls, path: Path, content: bytes) -> Self:
        """Read a catalog that was fetched from remote storage; errors name it `path`."""
        descriptor = os.memfd_create(layout.CATALOG_FILE_NAME, os.MFD_CLOEXEC)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        return cls._opened(path, descriptor, read_only=True, capacity_bytes=0, sync_level=0)

    @classmethod
    def _opened(
        cls,
        path: Path,
        descriptor: int,
        read_only: bool,
        capacity_bytes: int,
        sync_level: int,
        lazily: bool = False,
    ) -> Self:
        """Map an open file, which is closed again when that fails."""
        errors = StorageErrors(f"cannot map catalog {path}", path, CatalogError)
        try:
            with errors:
                existing = _check(path, descriptor, read_only)
                length = max(existing, capacity_bytes)
                if read_only:
                    mapping = map_for_reading(descriptor, existing)
                elif lazily:
                    mapping = _map_unchanged(descriptor, existing)
                else:
                    reserve(path, descriptor, length, "catalog", CatalogError)
                    mapping = _map_file(descriptor, length)
        except BaseException:
            os.close(descriptor)
            raise
        file = cls(path, descriptor, mapping, read_only=read_only, sync_level=sync_level)
        if lazily:
            file._to_prepare = length
        try:
            file._initialise()
        except BaseException:
            file._unmap()
            raise
        return file

    def _initialise(self) -> None:
        if not self.is_as_found:
            with suppress(OSError):
                self.path.with_name(layout.REWRITTEN_FILE_NAME).unlink()
        version, length, _, alignment = layout.CATALOG_HEADER.unpack_from(self._map)
        if version == 0:
            if self.read_only:
                raise CatalogError(f"catalog {self.path} has not been initialised yet", self.path)
            self.store(0, _HEADER)
            # Whatever the sync level: if a power cut took its header or name and left entries or
            # segment files, it would be of no use.
            self.force(at_least=2)
            self.force_name()
        elif (
            alignment < 32 or alignment & (alignment - 1) or length != layout.CATALOG_HEADER_LENGTH
        ):
            raise CatalogError(
                f"catalog {self.path} has a damaged header: length {length}, alignment {alignment}",
                self.path,
            )

    @property
    def is_as_found(self) -> bool:
        """Whether nothing may be stored yet: it is read-only, or was opened lazily."""
        return self.read_only or self._to_prepare is not None

    @property
    def data(self) -> mmap.mmap:
        """The mapped file; another one after `grow` (ClosedError)."""
        if self._closed:
            raise ClosedError(f"catalog {self.path} is closed")
        return self._map

    @property
    def has_grown(self) -> bool:
        """Whether another process has extended the file since it was mapped."""
        return os.fstat(self._fd).st_size > len(self._map)

    @property
    def is_forced(self) -> bool:
        """Whether `force` does something at this sync level."""
        return self._sync_level > 0

    def check_writable(self) -> None:
        """Prepare for `store`. Call this before reading offsets from `data` that will change.

        Raises:
            CatalogError: it was opened read-only, or there is no storage for it.
            ClosedError: it was closed.
        """
        _ = self.data
        if self.read_only:
            raise CatalogError(f"catalog {self.path} was opened read-only", self.path)
        if self._to_prepare is not None:
            reserve(self.path, self._fd, self._to_prepare, "catalog", CatalogError)
            with StorageErrors(f"cannot map catalog {self.path}", self.path, CatalogError):
                mapping = _map_file(self._fd, self._to_prepare)
            self._map.close()
            self._map, self._to_prepare = mapping, None
            self._initialise()

    def store(self, offset: int, data: bytes) -> None:
        """Write bytes, after `check_writable`; other threads run meanwhile (CatalogError)."""
        with StorageErrors(f"cannot write catalog {self.path}", self.path, CatalogError):
            write_at(self._fd, data, offset)

    def force(self, at_least: int = 0) -> None:
        """Force changes to storage as the sync level requires (CatalogError).

        Args:
            at_least: a sync level that is used where that of the catalog is lower.
        """
        level = max(self._sync_level, at_least)
        with self._forcing():
            if level == 1:
                os.fdatasync(self._fd)
            elif level > 1:
                os.fsync(self._fd)

    def _forcing(self) -> StorageErrors:
        return StorageErrors(
            f"cannot force catalog {self.path} to storage", self.path, CatalogError
        )

    def grow(self, required_bytes: int) -> None:
        """Make the file at least so long, by half as often as needed.

        Raises:
            CatalogError: that is more than a catalog may have, or than the storage has.
        """
        self._check_capacity(required_bytes)
        length = len(self._map)
        capacity = layout.next_capacity(length, required_bytes)
        try:
            os.posix_fallocate(self._fd, 0, capacity)
            os.fsync(self._fd)
            grown = _map_file(self._fd, capacity)
        except OSError as error:
            # Release what was allocated.
            with suppress(OSError):
                os.ftruncate(self._fd, length)
            raise CatalogError(
                f"catalog {self.path} cannot grow to {capacity} bytes: {error.strerror}",
                self.path,
            ) from error
        self._map.close()
        self._map = grown

    def _check_capacity(self, required_bytes: int) -> None:
        if required_bytes > layout.MAX_CAPACITY_BYTES:
            raise CatalogError(
                f"catalog {self.path} is full: it cannot grow beyond "
                f"{layout.MAX_CAPACITY_BYTES} bytes",
                self.path,
            )

    def rewrite(
        self, pieces: Iterable[bytes | slice], required_bytes: int, *, shrink: bool = False
    ) -> None:
        """Replace this file atomically by another one: a crash leaves one or the other.

        A process that has the old file open retains it. Until `force_name`, a power cut may bring
        the old one back.

        Args:
            pieces: the content of the new file: bytes, or ranges of this one.
            required_bytes: the length to have at least; it grows as `grow` does.
            shrink: the new file is no longer than that.

        Raises:
            CatalogError: as `grow`; the file is then as it was.
        """
        self._check_capacity(required_bytes)
        capacity = required_bytes
        if not shrink:
            capacity = layout.next_capacity(len(self._map), required_bytes)
        written = self.path.with_name(layout.REWRITTEN_FILE_NAME)
        descriptor = -1
        try:
            descriptor = open_no_follow(written, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(self._fd).st_mode))
            os.posix_fallocate(descriptor, 0, capacity)
            offset = 0
            for piece in pieces:
                with (
                    memoryview(self._map if isinstance(piece, slice) else piece) as whole,
                    whole[piece if isinstance(piece, slice) else slice(None)] as part,
                ):
                    offset = write_at(descriptor, part, offset)
            # Whatever the sync level: without this, what a rename leaves after a power cut may be
            # an empty file, and all recordings lost.
            os.fsync(descriptor)
            mapping = _map_file(descriptor, capacity)
            written.rename(self.path)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            with suppress(OSError):
                written.unlink()
            raise CatalogError(
                f"catalog {self.path} cannot be rewritten: {error.strerror}", self.path
            ) from error
        self._map.close()
        os.close(self._fd)
        self._map, self._fd = mapping, descriptor

    def force_name(self) -> None:
        """Force the file's name to storage, after `rewrite` (CatalogError)."""
        with self._forcing():
            sync_directory(self.path.parent)

    def close(self) -> None:
        """Force what was stored to storage and close. Idempotent."""
        if not self._closed:
            try:
                with self._forcing():
                    if not self.is_as_found:
                        os.fsync(self._fd)
            finally:
                self._unmap()

    def _unmap(self) -> None:
        self._closed = True
        self._map.close()
        os.close(self._fd)


def _check(path: Path, descriptor: int, read_only: bool) -> int:
    """Check that the file may be opened, and return its length; nothing is changed."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise CatalogError(f"catalog {path} is not a regular file", path)
    check_length(path, status.st_size)
    header = os.pread(descriptor, layout.CATALOG_HEADER_LENGTH, 0)
    if len(header) < layout.CATALOG_HEADER_LENGTH and (read_only or any(header)):
        raise CatalogError(
            f"catalog {path} is {len(header)} bytes long, less than its header", path
        )
    if not any(header):
        if not read_only and not _is_blank(descriptor):
            raise CatalogError(
                f"catalog {path} has lost its header, there are entries after it; restore the "
                f"catalog from a copy",
                path,
            )
        return status.st_size
    (version,) = layout.INT.unpack_from(header)
    if version >> 16 != layout.MAJOR_VERSION:
        raise CatalogError(
            f"catalog {path} is of version {layout.version_string(version)}; this archive reads "
            f"{layout.MAJOR_VERSION}.x: see `aerotape tool DIR migrate`",
            path,
        )
    return status.st_size


def check_length(path: Path, length: int) -> None:
    """Refuse a file that is longer than a catalog can be, whatever is in it (CatalogError)."""
    if length > layout.MAX_CAPACITY_BYTES:
        raise CatalogError(
            f"catalog {path} is {length} bytes long, more than the {layout.MAX_CAPACITY_BYTES} "
            "that a catalog can have: restore the catalog from a copy",
            path,
        )


def _is_blank(descriptor: int) -> bool:
    offset = 0
    while chunk := os.pread(descriptor, _CHUNK_LENGTH, offset):
        if chunk != _ZEROS[: len(chunk)]:
            return False
        offset += len(chunk)
    return True


def _map_unchanged(descriptor: int, length: int) -> mmap.mmap:
    """Map a file for reading; for one without a header yet, memory with one."""
    if any(os.pread(descriptor, layout.CATALOG_HEADER_LENGTH, 0)):
        return map_for_reading(descriptor, length)
    mapping = _map_memory(max(length, layout.MIN_CAPACITY_BYTES))
    mapping[: len(_HEADER)] = _HEADER
    return mapping


def _map_file(descriptor: int, length: int) -> mmap.mmap:
    return mmap.mmap(descriptor, length, prot=mmap.PROT_READ)


def lent(data: mmap.mmap) -> memoryview:
    """Return a mapping for native functions, which copy memory that may be written."""
    return memoryview(data).toreadonly()


def _map_memory(length: int) -> mmap.mmap:
    """Map memory of zeros, which is allocated where something is stored."""
    # Private, for reading a page of shared memory allocates it.
    return mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def map_for_reading(descriptor: int, length: int) -> mmap.mmap:
    """Map a file unchanged; one with holes, as Java creates them, is copied.

    On a full disk of some kinds (tmpfs) even a load from a hole would be SIGBUS.
    """
    if os.lseek(descriptor, 0, os.SEEK_HOLE) >= length:
        return _map_file(descriptor, length)
    copy = _map_memory(length)
    for offset, chunk in data_chunks(descriptor, length):
        copy[offset : offset + len(chunk)] = chunk
    return copy
