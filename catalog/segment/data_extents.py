"""The data of a segment file: the bytes that are not zero, found without reading its holes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from aerotape.catalog.durability import write_at
from aerotape.errors import StorageErrors

_CHUNK_LENGTH = 1 << 20


def find_data_end(path: Path, start_offset: int) -> int:
    """Return the offset after the last byte from `start_offset` on that is not zero.

    `start_offset` itself when there is none. Holes are passed over, for segment files are mostly
    sparse.

    Raises:
        StorageError: the file cannot be read.
    """
    end = start_offset
    for offset, chunk in _data_chunks(path, start_offset):
        written = chunk.rstrip(b"\0")
        if written:
            end = offset + len(written)
    return end


def holds_data(path: Path) -> bool:
    """Whether a byte of a file is not zero; it is read up to the first piece with one.

    Raises:
        StorageError: the file cannot be read.
    """
    return any(chunk.strip(b"\0") for _, chunk in _data_chunks(path, 0))


def _data_chunks(path: Path, start_offset: int) -> Iterator[tuple[int, bytes]]:
    """Read a file from an offset on without its holes, in pieces (StorageError)."""
    with StorageErrors(f"cannot read {path}", path), path.open("rb", buffering=0) as file:
        number = file.fileno()
        yield from data_chunks(number, os.fstat(number).st_size, start_offset)


def data_chunks(file: int, length: int, start_offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Read an open file up to `length` without its holes, in pieces, or to its end (OSError)."""
    offset = start_offset
    while offset < length:
        try:
            offset = os.lseek(file, offset, os.SEEK_DATA)
            hole = min(os.lseek(file, offset, os.SEEK_HOLE), length)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole is left
            hole = length  # a file system that does not report holes: all of it is data
        while offset < hole:
            chunk = os.pread(file, min(hole - offset, _CHUNK_LENGTH), offset)
            if not chunk:
                return  # cut short meanwhile
            yield offset, chunk
            offset += len(chunk)


def copy_data(
    source: int, target: int, length: int, progress: Callable[[int], object] | None = None
) -> None:
    """Copy the data of an open file up to `length` into another one, and leave its holes.

    Args:
        source: the file.
        target: a file of this length that is a hole.
        length: bytes.
        progress: called with the offset up to which the file is copied, bytes.

    Raises:
        OSError: the files cannot be read or written, or the source is shorter.
    """
    for offset, chunk in data_chunks(source, length):
        end = write_at(target, chunk, offset)
        if progress is not None:
            progress(end)
    if os.fstat(source).st_size < length:
        raise OSError(errno.EIO, "it was cut short meanwhile")
