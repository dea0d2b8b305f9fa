"""Entries of a ledger in its recording's segment files: which one ends, or begins, at a position.

Entries are the messages of the recording, with consecutive ids. There is no index: a term that may
hold the entry is found by the first entries of terms, and scanned. All functions block on files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aerotape import _native
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.codecs import entry as entries
from aerotape.errors import EntryError, SegmentError
from aerotape.frame_header import max_frame_length
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
class _Range:
    """A range of a recording, as `_native.SegmentScan` reads it."""

    archive_dir: str
    recording_id: int
    start_position: int
    term_length: int
    segment_length: int
    initial_term_id: int
    session_id: int
    stream_id: int
    max_frame_length: int
    from_position: int
    to_position: int
    limit_position: int
    from_boundary: bool


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
        start, length = self.descriptor.start_position, self.descriptor.term_buffer_length
        term = (limit - 1) // length * length
        while limit > start and term + length > start:
            found = self._last_in(max(term, start), limit)
            if found is not None:
                return found
            limit, term = min(limit, term), term - length
        return self.start

    def _last_in(self, begin: int, limit: int, *, from_boundary: bool = False) -> EntryMark | None:
        last = None
        for batch in self._batches(begin, limit, limit, from_boundary):
            last = batch[-1]
        return None if last is None else _mark(last)

    def torn_at(self, limit: int) -> int | None:
        """Return where the part begins that did not reach storage whole; None if all did.

        After a power cut, entries that were not forced to storage may have lost any of their
        pages. Entries up to the LAC that the last sound entry carries were forced: what is wrong
        with them is damage, and not the beginning of that part.

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
            A position at or before the first of these entries: the start of its term or of an
            earlier one. And the id of the last confirmed entry, -1 for none.
        """
        length, start = self.descriptor.term_buffer_length, self.descriptor.start_position
        confirmed = None
        for term in range((limit - 1) // length * length, start - length, -length):
            ids: list[tuple[int, int]] = []
            with suppress(SegmentError):
                for _, _, entry in self._checked(max(term, start), min(limit, term + length)):
                    if entry is not None:
                        ids[1:] = [(entry.entry_id, entry.last_add_confirmed)]
            if ids and confirmed is None:
                confirmed = ids[-1][1]
            if ids and confirmed is not None and ids[0][0] <= confirmed + 1:
                return max(term, start), confirmed
        return start, NULL_VALUE if confirmed is None else confirmed

    def _checked(self, begin: int, end: int) -> Iterator[tuple[int, int, entries.Entry | None]]:
        """Iterate over positions and ends of entries, and the entries that are sound."""
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
        length, start = self.descriptor.term_buffer_length, self.descriptor.start_position
        low, high = start // length, max((limit - 1) // length, start // length)
        # The last term whose first entry is not after the one that is searched for.
        while low < high:
            middle = (low + high + 1) // 2
            first = self._first(max(middle * length, start), limit)
            if first is not None and _entry_id(first) <= entry_id:
                low = middle
            else:
                high = middle - 1
        next_id = None
        for batch in self._batches(max(low * length, start), limit, limit, False):
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
            position=low * length,
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
        descriptor = self.descriptor
        if begin >= end:
            return
        scan = _native.SegmentScan(
            _Range(
                str(self.archive_dir),
                descriptor.recording_id,
                descriptor.start_position,
                descriptor.term_buffer_length,
                descriptor.segment_file_length,
                descriptor.initial_term_id,
                descriptor.session_id,
                descriptor.stream_id,
                max_frame_length(descriptor.mtu_length),
                begin,
                end,
                limit,
                from_boundary,
            ),
            batch_rows=rows,
        )
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
