"""Entries of a ledger in its recording's segment files: which one ends, or begins, at a position.

Entries are the messages of the recording, with consecutive ids. There is no index: the term that
holds an entry is found by the first entries of terms, and scanned. All functions block on files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.segment.term_search import last_term_before, terms_from_last
from aerotape.catalog.segment_files import segment_file_name
from aerotape.codecs import entry as entries
from aerotape.errors import EntryError, SegmentError, StorageError, reason_of
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.protocol import NULL_VALUE

_BATCH_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class EntryMark:
    """The end of an entry.

    Attributes:
        position: after its last frame, bytes; the start of the recording before the first entry.
        entry_id: its id, -1 before the first entry.
        length: payload bytes of the ledger up to and including it.
        last_add_confirmed: the id that the entry carries, -1 for none.
    """

    position: int
    entry_id: int = NULL_VALUE
    length: int = 0
    last_add_confirmed: int = NULL_VALUE


@dataclass(frozen=True, slots=True)
class LedgerRecording:
    """The recording of a ledger on disk.

    Attributes:
        archive_dir: the archive directory.
        descriptor: of the recording.
        digest_type: of the entries; None where their digests cannot be checked.
    """

    archive_dir: Path
    descriptor: RecordingDescriptor
    digest_type: entries.DigestType | None

    @property
    def start(self) -> EntryMark:
        """The mark before the first entry."""
        return EntryMark(self.descriptor.start_position)

    def last_entry(self, limit: int, known: EntryMark | None = None) -> EntryMark:
        """Return the last entry that ends at or before a position.

        Args:
            limit: the position, bytes: the end of a frame.
            known: the end of an entry, from which to search if it is not after `limit`.

        Raises:
            StorageError: a segment file cannot be read.
            SegmentError: it is damaged.
            EntryError: a message is not an entry.
        """
        if known is not None and known.position <= limit:
            return self._last_in(known.position, limit, from_boundary=True) or known
        for begin, end in self._terms_from_last(limit):
            if (found := self._last_in(begin, end)) is not None:
                return found
        return self.start

    def _terms_from_last(self, limit: int) -> Iterator[tuple[int, int]]:
        start, length = self.descriptor.start_position, self.descriptor.term_buffer_length
        return terms_from_last(start, limit, length)

    def _last_in(self, begin: int, limit: int, *, from_boundary: bool = False) -> EntryMark | None:
        last = None
        for batch in self._batches(begin, limit, limit, from_boundary):
            last = batch[-1]
        return None if last is None else _mark(last)

    def first_torn_position(self, limit: int, forced: int) -> int | None:
        """Return the position of the first entry that a power cut may have torn; None without one.

        It comes after the last sound entry, and was not known to be on storage. What is damaged
        and is followed by a sound entry is damage of another kind, which a reader meets.

        Args:
            limit: the end of the recording, bytes.
            forced: up to where the recording was forced to storage, bytes.

        Raises:
            StorageError: a segment file cannot be read.
        """
        first_torn_position = None
        if self.digest_type is None:
            return None
        for begin, end in self._terms_from_last(limit):
            if end <= forced:
                break
            found, is_sound = self._torn_in(begin, end, forced)
            first_torn_position = first_torn_position if found is None else found
            if is_sound:
                break
        return first_torn_position

    def _torn_in(self, begin: int, end: int, forced: int) -> tuple[int | None, bool]:
        """Return `first_torn_position` of one term, and whether it has a sound entry."""
        first_torn_position, is_sound, at = None, False, begin
        try:
            for position, at, entry in self._checked(begin, end):
                if entry is not None:
                    first_torn_position, is_sound = None, True
                elif first_torn_position is None and at > forced:
                    first_torn_position = position
        except SegmentError:
            if first_torn_position is None and at >= forced:
                first_torn_position = at
        return first_torn_position, is_sound

    def _checked(self, begin: int, end: int) -> Iterator[tuple[int, int, entries.Entry | None]]:
        """Iterate position and end of each entry, and the entry; None for a damaged one."""
        for batch in self._batches(begin, end, end, False):
            for found in batch:
                entry = None
                with suppress(EntryError):
                    entry = entries.decode(found[-1], digest_type=self.digest_type)
                yield found[0], found[1], entry

    def position_of(self, entry_id: int, limit: int) -> int:
        """Return the position of the first frame of an entry that ends before `limit`.

        Raises:
            StorageError: a segment file cannot be read.
            SegmentError: it is damaged, or the entry is not where its id says.
        """

        def is_before(begin: int, end: int) -> bool:
            first = self._first(begin, end)
            return first is not None and _entry_id(first) <= entry_id

        start, length = self.descriptor.start_position, self.descriptor.term_buffer_length
        begin = last_term_before(start, limit, length, is_before)
        next_id = None
        for batch in self._batches(begin, limit, limit, False):
            if next_id is None:
                next_id = _entry_id(batch[0])
            if entry_id < next_id + len(batch):
                found = batch[entry_id - next_id] if entry_id >= next_id else batch[0]
                if _entry_id(found) == entry_id:
                    return found[0]
                break
            next_id += len(batch)
        raise SegmentError(
            f"entry {entry_id} is not in recording {self.descriptor.recording_id}: its entries do "
            "not have consecutive ids",
            self.archive_dir,
            position=begin,
        )

    def damaged_end(self, position: int, limit: int) -> int | None:
        """Return the end of the entry that begins at a position, if it is damaged, bytes.

        None if it is sound, or cannot be checked. Raises as `last_entry`.
        """
        if self.digest_type is None:
            return None
        found = next(self._batches(position, limit, limit, True, 1))[0]
        with suppress(EntryError):
            entries.decode(found[-1], digest_type=self.digest_type)
            return None
        return found[1]

    def rewrite(self, position: int, end: int, message: bytes) -> None:
        """Replace a damaged entry by its message; it is on storage then.

        The headers of its frames stay.

        Args:
            position: where it begins, bytes.
            end: where it ends, bytes.

        Raises:
            StorageError: the segment file cannot be written.
            SegmentError: the message has another length.
        """
        base = segment_base(self.descriptor, position)
        path = self.archive_dir / segment_file_name(self.descriptor.recording_id, base)
        longest = self.descriptor.mtu_length - HEADER_LENGTH
        parts = [message[at : at + longest] for at in range(0, len(message), longest)] or [b""]
        ends = [align_frame(HEADER_LENGTH + len(part)) for part in parts]
        if position + sum(ends) != end:
            raise SegmentError(
                f"the entry at position {position} ends at {end}, and not at"
                f" {position + sum(ends)} as in another archive",
                path,
                position=position,
            )
        try:
            with open(path, "r+b", buffering=0, opener=open_no_follow) as file:
                at = position - base
                for part, length in zip(parts, ends, strict=True):
                    os.pwrite(file.fileno(), part, at + HEADER_LENGTH)
                    at += length
                os.fdatasync(file.fileno())
        except OSError as error:
            raise StorageError(f"cannot repair {path}: {reason_of(error)}", path) from error

    def confirmed_end(self, limit: int) -> int:
        """Return the end position of the last confirmed entry.

        That is the last add confirmed (LAC) in the last sound entry that ends at or before `limit`.
        Raises as `last_entry`.
        """
        last = self._last_sound(limit)
        if last.last_add_confirmed >= last.entry_id:
            return last.position
        return self.position_of(last.last_add_confirmed + 1, limit)

    def _last_sound(self, limit: int) -> EntryMark:
        if self.digest_type is None:
            return self.last_entry(limit)
        for begin, end in self._terms_from_last(limit):
            last = None
            with suppress(SegmentError):
                for _, at, entry in self._checked(begin, end):
                    if entry is not None:
                        last = EntryMark(at, entry.entry_id, entry.length, entry.last_add_confirmed)
            if last is not None:
                return last
        return self.start

    def first_message(self) -> bytes | None:
        """Return the first message, None when there is none."""
        begin = self.descriptor.start_position
        first = self._first(begin, begin + self.descriptor.segment_file_length)
        return None if first is None else first[-1]

    def _first(self, begin: int, limit: int) -> _Found | None:
        batch = next(self._batches(begin, limit, limit, False, 1), None)
        return None if batch is None else batch[0]

    def _batches(
        self, begin: int, end: int, limit: int, from_boundary: bool, rows: int = _BATCH_ROWS
    ) -> Iterator[list[_Found]]:
        if begin >= end:
            return
        part = ScanRange.of(
            self.archive_dir, self.descriptor, begin, end, limit, from_boundary=from_boundary
        )
        scan = _native.SegmentScan(part, batch_rows=rows)
        while (batch := scan.next_messages()) is not None:
            if batch:
                yield batch


# Position, end position, term id, term offset, flags, reserved value, payload.
_Found = tuple[int, int, int, int, int, int, bytes]


def _mark(found: _Found) -> EntryMark:
    header = entries.read_header(found[-1])
    return EntryMark(found[1], header.entry_id, header.length, header.last_add_confirmed)


def _entry_id(found: _Found) -> int:
    return entries.read_header(found[-1]).entry_id
