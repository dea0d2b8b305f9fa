"""Entries of a ledger in its recording's segment files: which one ends, or begins, at a position.

Entries are the messages of the recording, with consecutive ids. There is no index: the term that
holds an entry is found by the first entries of terms, and scanned. All functions block on files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from aerotape.archive.features.ledger.entry_scan import EntryScan, Found, Part
from aerotape.catalog.descriptor import RecordingDescriptor, segment_base
from aerotape.catalog.framing import framed_length
from aerotape.catalog.no_follow import open_no_follow
from aerotape.catalog.recovery.quarantine import erase_tail
from aerotape.catalog.recovery.stop_position import PAGE_LENGTH
from aerotape.catalog.segment.data_extents import find_data_end
from aerotape.catalog.segment.term_search import last_term_before, terms_from_last
from aerotape.catalog.segment_files import (
    list_segment_files,
    segment_file_name,
    segment_file_size,
)
from aerotape.codecs import entry as entries
from aerotape.codecs.generated.ledger_control import DigestType
from aerotape.errors import DamagedEntryError, EntryError, SegmentError
from aerotape.frame_header import HEADER_LENGTH, align_frame
from aerotape.protocol import NULL_VALUE

# Of the header of an entry of version 1, and of that of version 2 with the longest digest, bytes.
_MIN_HEADER_LENGTH: Final = 32
_MAX_PREFIX_LENGTH: Final = 48 + max(entries.DIGEST_LENGTHS.values())


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
class LedgerRecording(EntryScan):
    """The recording of a ledger on disk."""

    @classmethod
    def of(
        cls, archive_dir: Path, descriptor: RecordingDescriptor, digest_type: DigestType
    ) -> LedgerRecording:
        """Return the recording with this descriptor, with the digests of a ledger."""
        # Without the password an HMAC cannot be checked.
        kind = None if digest_type is DigestType.HMAC else digest_type.name
        return cls(archive_dir, descriptor, cast("entries.DigestType | None", kind))

    @property
    def start(self) -> EntryMark:
        """The mark before the first entry."""
        return EntryMark(self.descriptor.start_position)

    def last_entry(self, limit: int, known: EntryMark | None = None) -> EntryMark:
        """Return the last entry that ends at or before a position, also if it is damaged.

        The id of a damaged one follows from that of the last sound one. A damaged part at the end
        counts as those that their own headers show, and for the rest as the most entries that may
        have been there, so that no id is used again.

        Args:
            limit: the position, bytes: the end of a frame.
            known: the end of an entry, from which to search if it is not after `limit`.

        Raises:
            StorageError: a segment file cannot be read.
        """
        mark = self.start if known is None or known.position > limit else known
        with suppress(SegmentError):
            batch = self._last_batch(limit, mark)
            is_sound = not batch or self.sound(batch[-1][-1]) is not None
            at = batch[-1][1] if batch else mark.position
            if is_sound and not self.is_damaged(at, limit):
                return self._last_of(batch) if batch else mark
        return self._last_past_damage(limit, mark)

    def _last_batch(self, limit: int, known: EntryMark) -> list[Found]:
        """Return the last messages between an entry and a position."""
        last: list[Found] = []
        for begin, end in self._terms_from_last(limit):
            for batch in self.batches(max(begin, known.position), end, from_boundary=True):
                last = batch
            if last or begin <= known.position:
                break
        return last

    def _last_of(self, batch: list[Found]) -> EntryMark:
        """Return the last entry of some that follow each other."""
        mark = _mark(batch[-1])
        if self.digest_type not in (None, "DUMMY") or len(batch) < 3:
            return mark
        # Its digest cannot be checked: consecutive ids of others show whether its own is damaged.
        before = _entry_id(batch[-2])
        if before == _entry_id(batch[-3]) + 1:
            return replace(mark, entry_id=before + 1)
        return mark

    def _last_past_damage(self, limit: int, known: EntryMark) -> EntryMark:
        damaged: list[Part] = []
        for begin, end in self._terms_from_last(limit):
            sound: Part | None = None
            after: list[Part] = []
            for part in self.parts(max(begin, known.position), end):
                sound, after = (part, []) if part.header is not None else (sound, [*after, part])
            damaged[:0] = after
            if sound is not None and (header := sound.header) is not None:
                known = EntryMark(
                    sound.end, header.entry_id, header.length, header.last_add_confirmed
                )
            if known.position >= begin:
                break
        last = known
        length: int | None = known.length
        for part in damaged:
            last, length = self._past(part, last, length)
        return replace(last, last_add_confirmed=known.last_add_confirmed)

    def _past(
        self, part: Part, last: EntryMark, length: int | None
    ) -> tuple[EntryMark, int | None]:
        """Return the last of the entries that a damaged part has had, after another entry.

        Args:
            length: payload bytes of the ledger up to that one; None: not known. Likewise returned.
        """
        at, mark = part.position, last
        while at < part.end and length is not None:
            found = self._entry_after(replace(mark, position=at, length=length))
            if found is None or found.position > part.end:
                break
            # The next one confirms a length: a wrong one would pass over others.
            is_last = found.position == part.end
            if not is_last and (part.is_message or self._entry_after(found) is None):
                break
            at, mark, length = found.position, found, found.length
        if at < part.end:
            shortest = align_frame(HEADER_LENGTH + _MIN_HEADER_LENGTH + self._digest_length)
            count = max((part.end - at) // shortest, int(at == part.position))
            last_id = mark.entry_id + (1 if part.is_message else count)
            mark, length = replace(mark, entry_id=last_id), None
        return replace(mark, position=part.end), length

    @property
    def _digest_length(self) -> int:
        # Those that cannot be checked are HMAC.
        return entries.DIGEST_LENGTHS[self.digest_type or "HMAC"]

    def _entry_after(self, last: EntryMark) -> EntryMark | None:
        """Return the entry after another one, by the header in the frame that begins there.

        Its frames are damaged; None if that is no such header.
        """
        position = last.position
        base = segment_base(self.descriptor, position)
        path = self.archive_dir / segment_file_name(self.descriptor.recording_id, base)
        with suppress(OSError, EntryError), open(path, "rb", 0, opener=open_no_follow) as file:
            data = os.pread(file.fileno(), _MAX_PREFIX_LENGTH, position - base + HEADER_LENGTH)
            header = entries.read_header(data)
            if header.entry_id == last.entry_id + 1 and header.length >= last.length:
                payload = header.length - last.length
                length = header.digest_offset + self._digest_length + payload
                end = position + framed_length(length, self.descriptor.mtu_length)
                return EntryMark(end, header.entry_id, header.length)
        return None

    def _terms_from_last(self, limit: int) -> Iterator[tuple[int, int]]:
        start, length = self.descriptor.start_position, self.descriptor.term_buffer_length
        return terms_from_last(start, limit, length)

    def first_torn_position(
        self, limit: int, forced: int, *, is_killed: bool = False
    ) -> int | None:
        """Return the position of the first entry that a power cut may have torn; None without one.

        It comes after the last sound entry, and was not known to be on storage. What is damaged
        and is followed by a sound entry is damage of another kind, which a reader meets.

        Args:
            limit: the end of the recording, bytes.
            forced: up to where the recording was forced to storage, bytes.
            is_killed: only its process was killed, not the machine: a write ends at a page.

        Raises:
            StorageError: a segment file cannot be read.
        """
        if self.digest_type is None:
            return None
        if is_killed:
            return self._cut_short(limit, forced)
        first_torn_position = None
        for begin, end in self._terms_from_last(limit):
            if end <= forced:
                break
            found, is_sound = self._torn_in(begin, end, forced)
            first_torn_position = first_torn_position if found is None else found
            if is_sound:
                break
        return first_torn_position

    def _cut_short(self, limit: int, forced: int) -> int | None:
        """Return the position of the last entry if its write was killed; else None."""
        last = None
        for begin, end in self._terms_from_last(limit):
            for part in self.parts(begin, end):
                last = part
            if last is not None:
                break
        # One of several frames without the last of them is no message.
        if last is None or last.header is not None or not last.is_message or last.end <= forced:
            return None
        return last.position if self._is_cut_short(last.position, last.end) else None

    def _is_cut_short(self, position: int, end: int) -> bool:
        """Whether nothing is between two positions from some page on: the write was killed.

        Raises:
            StorageError: the segment file cannot be read.
        """
        base = segment_base(self.descriptor, position)
        path = self.archive_dir / segment_file_name(self.descriptor.recording_id, base)
        data_end = find_data_end(path, position - base)
        return -(-data_end // PAGE_LENGTH) * PAGE_LENGTH < end - base

    def _torn_in(self, begin: int, end: int, forced: int) -> tuple[int | None, bool]:
        """Return `first_torn_position` of one term, and whether it has a sound entry."""
        first_torn_position, is_sound = None, False
        for part in self.parts(begin, end):
            if part.header is not None:
                first_torn_position, is_sound = None, True
            elif first_torn_position is None and self._may_be_torn(part, forced):
                first_torn_position = part.position
        return first_torn_position, is_sound

    def _may_be_torn(self, part: Part, forced: int) -> bool:
        """Whether a damaged part was not on storage; an entry may have been, but for its end."""
        if part.position >= forced:
            return True
        # Else a wrong length reaches beyond what was on storage.
        has_frame = (forced - part.position) % self.descriptor.mtu_length == 0
        return part.is_message and part.end > forced and has_frame

    def position_of(
        self, entry_id: int, limit: int, last_id: Callable[[], int] | None = None
    ) -> int:
        """Return the position of the first frame of an entry that ends before `limit`.

        Args:
            entry_id: of the entry.
            limit: the end of the recording, bytes.
            last_id: returns that of the last entry before that, which may be damaged; None:
                that of `last_entry`.

        Raises:
            StorageError: a segment file cannot be read.
            SegmentError: there is no such entry.
            DamagedEntryError: the entry is damaged, and its frames are not there.
        """
        with suppress(SegmentError, EntryError):
            found = self._message_of(entry_id, limit)
            if found is not None and self.sound(found[-1]) is not None:
                return found[0]
        return self._position_past_damage(entry_id, limit, last_id)

    def _message_of(self, entry_id: int, limit: int) -> Found | None:
        """Return the message of an entry if all have consecutive ids."""

        def is_before(begin: int, end: int) -> bool:
            first = self._first(begin, end)
            return first is not None and _entry_id(first) <= entry_id

        next_id = None
        for batch in self.batches(self._term_of(limit, is_before), limit):
            if next_id is None:
                next_id = _entry_id(batch[0])
            if entry_id < next_id + len(batch):
                found = batch[entry_id - next_id] if entry_id >= next_id else batch[0]
                return found if _entry_id(found) == entry_id else None
            next_id += len(batch)
        return None

    def _term_of(self, limit: int, is_before: Callable[[int, int], bool]) -> int:
        start, length = self.descriptor.start_position, self.descriptor.term_buffer_length
        return last_term_before(start, limit, length, is_before)

    def _position_past_damage(
        self, entry_id: int, limit: int, find_last: Callable[[], int] | None
    ) -> int:
        def is_before(begin: int, end: int) -> bool:
            headers = (part.header for part in self.parts(begin, end))
            first = next((header for header in headers if header is not None), None)
            return first is not None and first.entry_id <= entry_id

        begin, next_id = self._term_of(limit, is_before), 0
        damaged: list[Part] = []
        damaged_begin, until = begin, limit
        last_id = None
        for part in self._parts_from(begin, limit):
            if part.header is None:
                damaged.append(part)
            elif part.header.entry_id == entry_id:
                return part.position
            elif part.header.entry_id > entry_id:
                last_id, until = part.header.entry_id - 1, part.position
                break
            else:
                damaged, next_id, damaged_begin = [], part.header.entry_id + 1, part.end
        recording_id = self.descriptor.recording_id
        if last_id is None:
            last_id = find_last() if find_last else self.last_entry(limit).entry_id
        if not next_id <= entry_id <= last_id:
            raise SegmentError(
                f"entry {entry_id} is not in recording {recording_id}",
                self.archive_dir,
                position=begin,
            )
        exact = last_id - next_id + 1 == len(damaged)
        if exact and (part := damaged[entry_id - next_id]).is_message:
            return part.position
        error = DamagedEntryError(
            f"entry {entry_id} is damaged: its frames in recording {recording_id} are not whole"
        )
        # From where the last sound entry ends, there may be padding.
        error.begin, error.end = damaged_begin, until
        raise error

    def _parts_from(self, begin: int, limit: int) -> Iterator[Part]:
        length = self.descriptor.term_buffer_length
        while begin < limit:
            end = min(limit, (begin & -length) + length)
            yield from self.parts(begin, end)
            begin = end

    def damaged_end(self, position: int, limit: int) -> int | None:
        """Return the end of the entry that begins at a position, if it is damaged, bytes.

        None if it is sound, or cannot be checked. Raises as `last_entry`.
        """
        if self.digest_type is None:
            return None
        found = next(self.batches(position, limit, from_boundary=True, rows=1))[0]
        return None if self.sound(found[-1]) is not None else found[1]

    def has_lost_end(self, end: int) -> bool:
        """Whether a part of the segment file in which the recording ends is not there.

        What was recorded in that part is lost, up to `end` or after it: files have their full
        length from the begin on.

        Args:
            end: of the recording, bytes.

        Raises:
            StorageError: the segment file cannot be read.
        """
        if end == self.descriptor.start_position:
            return False
        base = segment_base(self.descriptor, end - 1)
        path = self.archive_dir / segment_file_name(self.descriptor.recording_id, base)
        length = segment_file_size(path) if path.exists() else 0
        return length < self.descriptor.segment_file_length

    def erase(self, position: int) -> None:
        """Erase all after a position, bytes; that is on storage then (StorageError)."""
        for segment in list_segment_files(self.archive_dir, self.descriptor.recording_id):
            offset = max(position - segment.base_position, 0)
            if offset < self.descriptor.segment_file_length:
                erase_tail(segment.path, offset)

    def confirmed_end(self, limit: int) -> int:
        """Return the end position of the last confirmed entry.

        That is the last add confirmed (LAC) in the last sound entry that ends at or before `limit`.
        Raises as `last_entry`.
        """
        last = self._last_sound(limit)
        if last.last_add_confirmed >= last.entry_id:
            return last.position
        try:
            return self.position_of(last.last_add_confirmed + 1, limit)
        except DamagedEntryError as damaged:
            return damaged.begin

    def _last_sound(self, limit: int) -> EntryMark:
        if self.digest_type is None:
            return self.last_entry(limit)
        for begin, end in self._terms_from_last(limit):
            last = None
            for part in self.parts(begin, end):
                last = part if part.header is not None else last
            if last is not None and (header := last.header) is not None:
                return EntryMark(
                    last.end, header.entry_id, header.length, header.last_add_confirmed
                )
        return self.start

    def first_message(self) -> bytes | None:
        """Return the first message, None when there is none."""
        begin = self.descriptor.start_position
        first = self._first(begin, begin + self.descriptor.segment_file_length)
        return None if first is None else first[-1]

    def _first(self, begin: int, limit: int) -> Found | None:
        batch = next(self.batches(begin, limit, rows=1), None)
        return None if batch is None else batch[0]


def _mark(found: Found) -> EntryMark:
    header = entries.read_header(found[-1])
    return EntryMark(found[1], header.entry_id, header.length, header.last_add_confirmed)


def _entry_id(found: Found) -> int:
    return entries.read_header(found[-1]).entry_id
