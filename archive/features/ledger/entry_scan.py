"""Entries of a ledger in its recording's segment files, one after another, also past damage.

A frame is found by the length of the preceding one, so a damaged header hides those that follow.
The scan continues at the next frame that states its place in the stream. What is in between, or was
no complete entry, is one damaged part: it may have been several entries.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.segment_files import segment_file_name
from aerotape.codecs import entry as entries
from aerotape.errors import EntryError, SegmentError, StorageError, reason_of
from aerotape.frame_header import FRAME_ALIGNMENT, align_frame, max_frame_length

_BATCH_ROWS: Final = 4_096
_SLICE_BYTES: Final = 1 << 26
_FIRST_LOOK_BYTES: Final = 1 << 16

# Position, end position, term id, term offset, flags, reserved value, payload.
Found = tuple[int, int, int, int, int, int, bytes]


class Part(NamedTuple):
    """An entry, or a part of the recording that has none although it should.

    Attributes:
        position: where it begins, bytes.
        end: where it ends, bytes.
        header: of a sound entry; None: damaged.
        is_message: whether its frames are sound, so that it is one entry.
    """

    position: int
    end: int
    header: entries.Entry | entries.EntryHeader | None
    is_message: bool


@dataclass(frozen=True, slots=True)
class EntryScan:
    """The entries of a recording on disk. All functions block on files.

    Attributes:
        archive_dir: the archive directory.
        descriptor: of the recording.
        digest_type: of the entries; None where their digests cannot be checked.
    """

    archive_dir: Path
    descriptor: RecordingDescriptor
    digest_type: entries.DigestType | None

    def sound(self, message: bytes) -> entries.Entry | entries.EntryHeader | None:
        """Return the header of an entry; None if it is damaged."""
        with suppress(EntryError):
            if self.digest_type is None:
                return entries.read_header(message)
            return entries.decode(message, digest_type=self.digest_type)
        return None

    def parts(self, begin: int, end: int) -> Iterator[Part]:
        """Iterate over the entries and damaged parts of a term, or of a part of one.

        Args:
            begin: position of a frame, bytes.
            end: likewise, or that of the end.

        Raises:
            StorageError: a segment file cannot be read.
        """
        last = Part(begin, begin, None, False)
        for part in self._messages(begin, end):
            if part.position > last.end:
                yield from self._with_rest(last, part.position)
            else:
                yield from self._one(last)
            last = part
        yield from self._with_rest(last, end)

    def _messages(self, begin: int, end: int) -> Iterator[Part]:
        at: int | None = begin
        while at is not None:
            at = yield from self._messages_from(at, end)

    def _messages_from(self, begin: int, end: int) -> Generator[Part, None, int | None]:
        """Yield messages; return where to continue within one whose length is wrong."""
        for batch in self._sound_batches(begin, end):
            for found in batch:
                part = Part(found[0], found[1], self.sound(found[-1]), True)
                if part.header is None and (inside := self._sound_in(part, end)) is not None:
                    yield Part(part.position, inside, None, False)
                    return inside
                yield part
        return None

    def _sound_in(self, part: Part, end: int) -> int | None:
        """Return where a sound entry begins within a damaged message, bytes; None without one."""
        begin, room = part.position + FRAME_ALIGNMENT, _FIRST_LOOK_BYTES
        # The first message there is mostly the next one: it decides.
        while True:
            limit, room = min(end, part.end + room), room * 8
            for batch in self._sound_batches(begin, limit):
                for found in batch:
                    if found[0] >= part.end:
                        return None
                    if self.sound(found[-1]) is not None:
                        return found[0]
            if limit == end or room > self.descriptor.term_buffer_length:
                return None

    @staticmethod
    def _one(part: Part) -> Iterator[Part]:
        if part.end > part.position:
            yield part

    def _with_rest(self, last: Part, end: int) -> Iterator[Part]:
        """Yield a part, and what follows up to the next message if that is damaged."""
        if not self.is_damaged(last.end, end):
            yield from self._one(last)
            return
        if last.header is None and last.end > last.position:
            counts = self._counts(last.end, end)
            if not (counts.gap_count or counts.unfinished_fragments):
                # Frames without a begin: the last ones of the damaged entry.
                yield Part(last.position, end, None, False)
                return
        yield from self._one(last)
        yield Part(last.end, end, None, False)

    def is_damaged(self, begin: int, end: int) -> bool:
        """Whether there is more between two entries than padding and an unfinished one.

        A writer that ends in an entry leaves some of its first frames, which are as long as frames
        can be.
        """
        if begin >= end:
            return False
        counts = self._counts(begin, end)
        if counts.gap_count or counts.skipped_fragments or counts.messages:
            return True
        longest = align_frame(max_frame_length(self.descriptor.mtu_length))
        unfinished = end - begin - counts.padding_bytes - counts.filler_bytes
        return unfinished != counts.unfinished_fragments * longest

    def batches(
        self, begin: int, end: int, *, from_boundary: bool = False, rows: int = _BATCH_ROWS
    ) -> Iterator[list[Found]]:
        """Iterate over messages that begin and end between two positions.

        Raises:
            StorageError: a segment file cannot be read.
            SegmentError: it is damaged.
        """
        if begin >= end:
            return
        scan = _native.SegmentScan(self._range(begin, end, from_boundary), batch_rows=rows)
        while (batch := scan.next_messages()) is not None:
            if batch:
                yield batch

    def _sound_batches(self, begin: int, end: int) -> Iterator[list[Found]]:
        """As `batches`, also past damage."""
        try:
            yield from self.batches(begin, end, from_boundary=True)
            return
        except SegmentError as error:
            at = max(begin, error.position)
        gaps = self._counts(at, end).gaps
        for gap, following in pairwise(gaps):
            yield from self.batches(gap[1], following[0], from_boundary=True)
        if gaps:
            # Not all are listed.
            yield from self._sound_batches(gaps[-1][1], end)

    def _counts(self, begin: int, end: int) -> _native.RecordingCounts:
        counting = _native.RecordingPass(self._range(begin, end, True), [])
        while not counting.advance(_SLICE_BYTES):
            pass
        counts = counting.counts()
        for position, until, kind, problem in counts.gaps:
            if kind == "missing":
                self._check_missing(position, until, problem)
        return counts

    def _check_missing(self, position: int, until: int, problem: str) -> None:
        """Refuse a part that is there and cannot be read now (StorageError)."""
        base = segment_base(self.descriptor, position)
        path = self.archive_dir / segment_file_name(self.descriptor.recording_id, base)
        try:
            length = min(until - base, self.descriptor.segment_file_length)
            found = path.stat()
            is_there = not S_ISREG(found.st_mode) or found.st_size >= length
        except FileNotFoundError:
            is_there = not self.archive_dir.exists()
        except OSError as error:
            raise StorageError(f"cannot read {path}: {reason_of(error)}", path) from error
        if is_there:
            raise StorageError(f"cannot read {path}: {problem}", path)

    def _range(self, begin: int, end: int, from_boundary: bool) -> ScanRange:
        return ScanRange.of(
            self.archive_dir, self.descriptor, begin, end, end, from_boundary=from_boundary
        )
