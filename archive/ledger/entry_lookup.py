"""Entries of a ledger in its recording's segment files: which one ends, or begins, at a position.

Entries are the messages of the recording, with consecutive ids. There is no index: the term that
holds an entry is found by the first entries of terms, and scanned. All functions block on files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.segment.scan_range import ScanRange
from aerotape.catalog.segment.term_search import last_term_before, terms_from_last
from aerotape.codecs import entry as entries
from aerotape.errors import EntryError, SegmentError
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

    def torn_at(self, limit: int) -> int | None:
        """Return the position of the first entry that a power cut has damaged; None without one.

        After a power cut, entries that were not forced to storage may have lost any of their
        pages. Entries up to the LAC in the last sound entry were forced: an error in one of them is
        damage of another kind, and is not returned.

        Args:
            limit: the end of the recording, bytes.

        Raises:
            StorageError: a segment file cannot be read.
        """
        if self.digest_type is None:
            return None
        begin, confirmed = self._first_to_check(limit)
        # Entries before the first sound one of a later term are confirmed.
        expected = 0 if begin == self.descriptor.start_position else None
        end = begin
        try:
            for position, end_position, entry in self._checked(begin, limit):
                is_wrong = entry is None or expected not in (None, entry.entry_id)
                if is_wrong and expected is not None and expected > confirmed:
                    return position
                if entry is not None:
                    expected = entry.entry_id + 1
                elif expected is not None:
                    expected += 1
                end = end_position
        except SegmentError:
            return end if expected is not None and expected > confirmed else None
        return None

    def _first_to_check(self, limit: int) -> tuple[int, int]:
        """Find the entries that a power cut may have damaged: those not known to be confirmed.

        Returns:
            The start of the term of the first of these entries, or of an earlier term; and the id
            of the last confirmed entry, -1 for none.
        """
        confirmed = None
        for begin, end in self._terms_from_last(limit):
            ids: list[tuple[int, int]] = []
            with suppress(SegmentError):
                for _, _, entry in self._checked(begin, end):
                    if entry is not None:
                        ids[1:] = [(entry.entry_id, entry.last_add_confirmed)]
            if ids and confirmed is None:
                confirmed = ids[-1][1]
            if ids and confirmed is not None and ids[0][0] <= confirmed + 1:
                return begin, confirmed
        return self.descriptor.start_position, NULL_VALUE if confirmed is None else confirmed

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

    def carried_end(self, limit: int) -> int:
        """Return the end position of the last confirmed entry.

        That is the last add confirmed (LAC) in the last entry that ends at or before `limit`.
        Raises as `last_entry`.
        """
        last = self.last_entry(limit)
        if last.last_add_confirmed >= last.entry_id:
            return last.position
        return self.position_of(last.last_add_confirmed + 1, limit)

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
