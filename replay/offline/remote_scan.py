"""Scanning a recording whose segment files are in remote storage.

The native scan requests bytes when it has consumed those it has. They are fetched ahead, in pieces
of a few megabytes, by threads that wait for the network while the scan runs; so memory depends
neither on the recording nor on its terms, and nothing is stored on disk. Only the bytes that the
range needs are fetched: from the start of the term in which it begins, to the end of the last
message that begins in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from aerotape import _native
from aerotape.catalog.descriptor import segment_base_position
from aerotape.catalog.remote.object_folder import ObjectFile, ObjectFolder
from aerotape.catalog.segment_files import segment_file_name
from aerotape.errors import StorageError
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    from aerotape.replay.offline.reader import RecordingRange

_T = TypeVar("_T")

PIECE_LENGTH: Final = 4 << 20
"""Bytes fetched at once."""
PIECES_AHEAD: Final = 4
"""Maximum number of fetches in progress or waiting to be scanned."""
_REST_LENGTH: Final = 128 << 10
"""Bytes fetched at once for the rest of a message that ends after the range."""


class RemoteScan:
    """A native scan that is fed with fetched bytes (see `aerotape.replay.offline.reader.Scan`).

    A failed fetch is a SegmentError, as a failed read of a local file is.
    """

    def __init__(self, scan: _native.SegmentScan, part: RecordingRange, place: UrlPath) -> None:
        """Prepare the scan of a range, created with `given`; nothing is fetched yet.

        Raises:
            ConfigurationError: the storage is not supported.
        """
        self._scan = scan
        self._pieces = _Pieces(ObjectFolder(place, part.storage), part)

    @property
    def schema(self) -> Any:
        """Schema of the batches (Arrow's C interface)."""
        return self._scan.schema

    @property
    def rows(self) -> int:
        """Messages returned so far."""
        return self._scan.rows

    @property
    def dropped_messages(self) -> int:
        """Damaged messages left out so far, in mode DROPMALFORMED."""
        return self._scan.dropped_messages

    @property
    def skipped_fragments(self) -> int:
        """Fragments of incomplete messages so far."""
        return self._scan.skipped_fragments

    @property
    def unfinished_fragments(self) -> int:
        """Fragments of a message that has begun but not ended at the limit."""
        return self._scan.unfinished_fragments

    def next_batch(self) -> Any:
        """Return the next batch, None at the end (SegmentError)."""
        return self._fed(self._scan.next_batch)

    def next_messages(self) -> list[tuple[int, int, int, int, int, int, bytes]] | None:
        """Return the next messages, None at the end (SegmentError)."""
        return self._fed(self._scan.next_messages)

    def _fed(self, step: Callable[[], _T | None]) -> _T | None:
        while True:
            result = step()
            if result is not None:
                return result
            wanted = self._scan.wanted
            if wanted is None:
                self._pieces.close()
                return None
            try:
                data = self._pieces.next(wanted)
            except StorageError as error:
                self._pieces.close()
                self._scan.refuse(str(error))
            else:
                self._scan.give(data)


class _Piece(NamedTuple):
    """Bytes of one segment file."""

    base_position: int
    position: int
    length: int


class _Pieces:
    """The bytes of a range in order, fetched ahead."""

    def __init__(self, folder: ObjectFolder, part: RecordingRange) -> None:
        self._folder = folder
        self._part = part
        self._next_position = -1
        self._fetches: deque[tuple[_Piece, Future[bytes]]] = deque()
        self._opened: tuple[int, Future[ObjectFile]] | None = None
        self._ended = ""
        self._threads: ThreadPoolExecutor | None = None

    def next(self, position: int) -> bytes:
        """Return the bytes from `position` on, which follows the previous bytes (StorageError)."""
        if self._ended:
            raise StorageError(self._ended)
        if self._next_position < 0:
            self._next_position = position
        part = self._part
        end = min(part.to_position, part.limit_position)
        while len(self._fetches) < PIECES_AHEAD and (left := end - self._next_position) > 0:
            self._submit(self._plan(min(left, PIECE_LENGTH)))
        if not self._fetches:  # the rest of a message that began in the range
            self._submit(self._plan(min(part.limit_position - self._next_position, _REST_LENGTH)))
        piece, fetch = self._fetches.popleft()
        data = fetch.result()
        if len(data) < piece.length:
            # The bytes read so far may contain whole messages.
            self._ended = (
                f"segment file ends at offset {piece.position + len(data) - piece.base_position} "
                f"and the recording reaches position {part.limit_position}; was it "
                "truncated, or is the copy incomplete?"
            )
        return data

    def close(self) -> None:
        """Cancel pending fetches and stop the threads."""
        for _, fetch in self._fetches:
            fetch.cancel()
        self._fetches.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        self._opened = None

    def _plan(self, length: int) -> _Piece:
        """Plan the next piece, of at most so many bytes."""
        begin = self._next_position
        part = self._part
        base = segment_base_position(
            part.start_position, begin, part.term_length, part.segment_length
        )
        length = min(length, base + part.segment_length - begin)
        self._next_position = begin + length
        return _Piece(base, begin, length)

    def _submit(self, piece: _Piece) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(PIECES_AHEAD, thread_name_prefix="aerotape-fetch")
        if self._opened is None or self._opened[0] != piece.base_position:
            opening = self._threads.submit(self._open, piece.base_position)
            self._opened = (piece.base_position, opening)
        fetch = self._threads.submit(_fetch, self._opened[1], piece)
        self._fetches.append((piece, fetch))

    def _open(self, base_position: int) -> ObjectFile:
        return self._folder.open(segment_file_name(self._part.recording_id, base_position))


def _fetch(opening: Future[ObjectFile], piece: _Piece) -> bytes:
    # Opening was submitted first, so a thread is doing it or it is done.
    try:
        return opening.result().read_at(piece.position - piece.base_position, piece.length)
    except FileNotFoundError:
        raise StorageError(
            "cannot open segment file: it does not exist; was it deleted, or is the copy "
            "incomplete?"
        ) from None
