"""The format of an exported recording: one file, for storage or for import into another archive.

The file is read and written from front to back. Numbers are little endian.

| bytes | what |
| --- | --- |
| 8 | ``AEROTAPE`` |
| 4 | version of this format, 1 without a time index and 2 with one |
| 4 | length of the header |
| header | the recording, as a JSON object: the fields of `RecordingDescriptor`, `content_length`, \
and in version 2 `time_points_length` |
| `content_length` | the recorded bytes from start to stop position, frame after frame |
| `time_points_length` | the points of its time index, as `time_index_file` describes them |
| 32 | SHA-256 of all bytes before |

Frames stand there as in segment files, with their checksums if they were recorded with any.
The file is valid only as a whole, with the right digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.catalog.durability import sync_directory
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.time_index.points import NO_POINTS, POINT_LENGTH, TimePoints
from aerotape.errors import StorageError, StorageErrors

MAGIC: Final = b"AEROTAPE"
VERSION: Final = 1
VERSION_WITH_TIME_INDEX: Final = 2
_PREFIX: Final = struct.Struct("<8sII")
_DIGEST_LENGTH: Final = 32
_MAX_HEADER_LENGTH: Final = 1 << 20
_CHUNK_LENGTH: Final = 1 << 20

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in total."""


@dataclass(frozen=True, slots=True)
class RecordingFileHeader:
    """The header of an exported recording.

    Attributes:
        descriptor: the recording, with a stop position.
        content_length: from start to stop position, bytes.
        time_points_length: of the points of its time index, bytes.
    """

    descriptor: RecordingDescriptor
    content_length: int
    time_points_length: int = 0

    def encode(self) -> bytes:
        """Return the bytes before the content."""
        fields: dict[str, Any] = dataclasses.asdict(self.descriptor)
        fields["content_length"] = self.content_length
        version = VERSION
        if self.time_points_length:
            version = VERSION_WITH_TIME_INDEX
            fields["time_points_length"] = self.time_points_length
        text = json.dumps(fields, ensure_ascii=True).encode("ascii")
        return _PREFIX.pack(MAGIC, version, len(text)) + text


def write_recording_file(
    path: Path,
    header: RecordingFileHeader,
    content: Iterator[bytes],
    time_points: bytes = b"",
    progress: Progress = lambda done, total: None,
) -> None:
    """Write a recording's file; it gets its name when it is complete and on storage.

    Args:
        path: the file, which must not exist.
        header: the recording.
        content: its bytes.
        time_points: the points of its time index, of the length in the header.
        progress: called for each piece.

    Raises:
        StorageError: the file exists, or cannot be written; nothing is left of it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        try:
            with open(temporary, "xb", opener=open_no_follow) as file:
                done = 0
                begin = header.encode()
                digest.update(begin)
                file.write(begin)
                for piece in content:
                    digest.update(piece)
                    file.write(piece)
                    done += len(piece)
                    progress(done, header.content_length)
                if done != header.content_length:
                    raise StorageError(
                        f"{done} bytes were read of recording {header.descriptor.recording_id} "
                        f"instead of {header.content_length}: is it being changed?",
                        path,
                    )
                digest.update(time_points)
                file.write(time_points)
                file.write(digest.digest())
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, this does not replace an existing file.
            os.link(temporary, path)
            sync_directory(path.parent)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
    except FileExistsError as error:
        raise StorageError(f"{path} exists: name another file", path) from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", path) from error


class RecordingFileReader:
    """Reads such a file front to back. A context manager.

    Attributes:
        header: what it says of its recording.
        time_points: its time index, once the end of the content has come.
    """

    def __init__(self, path: Path) -> None:
        """Open a file and read its header (StorageError)."""
        self._path = path
        self.time_points = NO_POINTS
        self._digest = hashlib.sha256()
        with StorageErrors(f"cannot open {path}", path):
            self._file: IO[bytes] = path.open("rb")
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> RecordingFileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def content(self, progress: Progress = lambda done, total: None) -> Iterator[bytes]:
        """Iterate the recorded bytes in pieces; the digest is checked after the last.

        The content is verified only when the iteration is complete.

        Raises:
            StorageError: the file is cut short or altered, or cannot be read.
        """
        left = total = self.header.content_length
        while left:
            piece = self._read(min(left, _CHUNK_LENGTH))
            if not piece:
                raise self._refuse(f"it ends {left} bytes before the recording does")
            self._digest.update(piece)
            left -= len(piece)
            progress(total - left, total)
            yield piece
        encoded = self._read(self.header.time_points_length)
        self._digest.update(encoded)
        expected = self._digest.digest()
        found = self._read(_DIGEST_LENGTH)
        if len(found) < _DIGEST_LENGTH:
            raise self._refuse("it is cut short")
        if found != expected:
            raise self._refuse("it has been altered: its digest is not that of its bytes")
        if self._read(1):
            raise self._refuse("there are bytes after its end")
        points, damage = TimePoints.parse(encoded)
        if damage or len(encoded) != len(points) * POINT_LENGTH:
            raise self._refuse(f"its time index is damaged: {damage or 'a point is incomplete'}")
        self.time_points = points

    def _read_header(self) -> RecordingFileHeader:
        prefix = self._read(_PREFIX.size)
        if len(prefix) < _PREFIX.size or not prefix.startswith(MAGIC):
            raise self._refuse("it is not an exported recording")
        _, version, length = _PREFIX.unpack(prefix)
        if version not in (VERSION, VERSION_WITH_TIME_INDEX):
            raise self._refuse(
                f"its format has version {version}, this reads {VERSION} and "
                f"{VERSION_WITH_TIME_INDEX}"
            )
        text = self._read(min(length, _MAX_HEADER_LENGTH + 1))
        if len(text) < length or length > _MAX_HEADER_LENGTH:
            raise self._refuse("its header is cut short or altered")
        self._digest.update(prefix)
        self._digest.update(text)
        try:
            fields: dict[str, Any] = json.loads(text)
            content_length = fields.pop("content_length")
            points_length = fields.pop("time_points_length") if version > VERSION else 0
            descriptor = RecordingDescriptor(**fields)
            descriptor.encode()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._refuse(f"its header makes no sense: {error}") from error
        if problem := describe_problem(descriptor):
            raise self._refuse(f"its header makes no sense: {problem}")
        if descriptor.is_active or (
            content_length != descriptor.stop_position - descriptor.start_position
        ):
            raise self._refuse("its header makes no sense: its length is not that of the recording")
        if points_length not in range(os.fstat(self._file.fileno()).st_size + 1):
            raise self._refuse("it is too short for its time index")
        return RecordingFileHeader(descriptor, content_length, points_length)

    def _read(self, length: int) -> bytes:
        with StorageErrors(f"cannot read {self._path}", self._path):
            return self._file.read(length)

    def _refuse(self, reason: str) -> StorageError:
        return StorageError(f"{self._path} cannot be imported: {reason}", self._path)
