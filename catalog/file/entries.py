"""Entries of a catalog: their parsing, and the search for them when some are damaged.

Entries form a chain: each states its length, and the next begins after it on the catalog's
alignment. One damaged length would therefore hide all recordings after it, and, worse, the next
recording would overwrite them. So where the chain breaks, the search continues at the next place
that can only be an entry, and the bytes before it count as one damaged entry. Recording ids ascend;
an id that does not is damaged, and is known when just one is missing there.

A damaged entry is reported and retains its bytes; the other recordings are served.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import lt
from typing import NamedTuple

from aerotape._native import sound_entries
from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor, describe_problem
from aerotape.catalog.file.mapped_file import lent
from aerotape.catalog.layout import RecordingState, state_name
from aerotape.errors import UnknownRecordingError
from aerotape.protocol import NULL_VALUE

_MIN_ENTRY_LENGTH = layout.DESCRIPTOR_HEADER_LENGTH + layout.DESCRIPTOR_BLOCK_LENGTH
_STATES = frozenset(state.value for state in RecordingState)
_VALID = RecordingState.VALID.value
_CHUNK_LENGTH = 1 << 20
_ZEROS = bytes(_CHUNK_LENGTH)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An entry of the catalog file, of whatever state.

    Attributes:
        recording_id: the recording, -1 when the damage leaves open which it is.
        offset: where its descriptor header begins in the file, bytes.
        length: length of the descriptor with its padding, without its header, bytes.
        state: VALID for recordings; entries of any other state are hidden.
        checksum: as stored; 0 when the archive that wrote it uses none.
        descriptor: the recording; of a damaged one, the figures as they stand and what could be
            read of the strings.
        body: the bytes that the checksum is over: the descriptor with its padding.
        damage: what is wrong with the entry, empty when it can be read.
    """

    recording_id: int
    offset: int
    length: int
    state: int
    checksum: int
    descriptor: RecordingDescriptor
    body: bytes = field(repr=False)
    damage: str = ""

    @property
    def state_name(self) -> str:
        """Name of the state; its number where it has none."""
        return layout.state_name(self.state)


class EntryPlace(NamedTuple):
    """The place of an entry in the file.

    Attributes:
        offset: of its descriptor header, bytes.
        length: of its descriptor with padding, bytes; what the header should say.
        recording_id: the recording, -1 if damage hides its id.
        damage: what is wrong with its header or its id, empty when nothing is.
    """

    offset: int
    length: int
    recording_id: int
    damage: str = ""

    @property
    def body_offset(self) -> int:
        """Offset of its descriptor in the file, bytes."""
        return self.offset + layout.DESCRIPTOR_HEADER_LENGTH


class EntryPlaces:
    """The places of all entries in a catalog, in the order of the file.

    In arrays, because there may be millions. Recording ids ascend, so that one is found by
    bisection.

    Attributes:
        ids: recording ids. An entry that damage hides the id of has that of the entry before it,
            or -1.
        offsets: of the descriptors in the file, bytes; -1 for a damaged entry.
        lengths: of the descriptors with padding, bytes; what the headers say.
        states: RecordingState of each entry; INVALID where damage hides the recording id, VALID
            where only the state is damaged.
        end_offset: offset in the file at which the next entry goes, bytes.
    """

    def __init__(self) -> None:
        self.ids = array("q")
        self.offsets = array("q")
        self.lengths = array("q")
        self.states = bytearray()
        self.end_offset = layout.CATALOG_HEADER_LENGTH
        self._damaged: dict[int, EntryPlace] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> EntryPlace:
        if self.offsets[index] < 0:
            return self._damaged[index]
        offset = self.offsets[index] - layout.DESCRIPTOR_HEADER_LENGTH
        return EntryPlace(offset, self.lengths[index], self.ids[index])

    def __iter__(self) -> Iterator[EntryPlace]:
        return map(self.__getitem__, range(len(self)))

    def index(self, recording_id: int) -> int:
        """Return the index of a recording's entry, -1 if there is none."""
        ids, index = self.ids, bisect_left(self.ids, recording_id)
        is_found = recording_id >= 0 and index < len(ids) and ids[index] == recording_id
        return index if is_found else -1

    def valid_index(self, recording_id: int) -> int:
        """Return the index of a valid recording's entry, -1 if there is none."""
        ids, index = self.ids, bisect_left(self.ids, recording_id)
        is_found = index < len(ids) and ids[index] == recording_id
        return index if is_found and self.states[index] == _VALID else -1

    def unidentified(self) -> list[EntryPlace]:
        """Return the entries that damage hides the recording ids of."""
        places = (self._damaged[index] for index in sorted(self._damaged))
        return [place for place in places if place.recording_id < 0]

    def append(self, place: EntryPlace, state: int) -> None:
        """Add the entry at the end of the file."""
        self.ids.append(place.recording_id)
        self.offsets.append(place.body_offset)
        self.lengths.append(place.length)
        self.states.append(_effective_state(state))
        if place.damage:
            self._mark(len(self) - 1, place)

    def extend_by_sound(self, data: mmap.mmap, alignment: int) -> None:
        """Add entries from the end on, up to the first that is not sound."""
        found, self.end_offset = sound_entries(lent(data), self.end_offset, alignment)
        ids, offsets, lengths, states = found
        self.ids.frombytes(ids)
        self.offsets.frombytes(offsets)
        self.lengths.frombytes(lengths)
        self.states += states

    def check_ids(self, next_recording_id: int) -> None:
        """Mark entries whose ids do not ascend, and work out which they were if possible."""
        ids = self.ids
        if not ids or (
            ids[0] >= 0 and ids[-1] <= next_recording_id and all(map(lt, ids, islice(ids, 1, None)))
        ):
            return
        last_id, begin = NULL_VALUE, 0
        for index, recording_id in enumerate(ids):
            following = ids[index + 1] if index + 1 < len(ids) else None
            if not _is_out_of_order(recording_id, last_id, following, next_recording_id):
                self._identify(range(begin, index), last_id, recording_id)
                last_id, begin = recording_id, index + 1
        self._identify(range(begin, len(ids)), last_id, max(next_recording_id, last_id + 1))

    def _identify(self, doubtful: range, last_id: int, next_id: int) -> None:
        """Give entries between two recordings their ids if just as many are missing there."""
        is_known = len(doubtful) == next_id - last_id - 1
        for number, index in enumerate(doubtful):
            damage = f"its recording id reads {self.ids[index]}, between {last_id} and {next_id}"
            recording_id = last_id + 1 + number if is_known else NULL_VALUE
            self._mark(index, self[index]._replace(recording_id=recording_id, damage=damage))
            self.ids[index] = recording_id if is_known else last_id
            if not is_known:
                self.states[index] = RecordingState.INVALID

    def _mark(self, index: int, place: EntryPlace) -> None:
        self._damaged[index], self.offsets[index] = place, -1


def read_entry(data: mmap.mmap, place: EntryPlace) -> CatalogEntry:
    """Read the entry at a place; damage is reported in the entry, never raised."""
    offset, length, known_damage = place.offset, place.length, place.damage
    _, state, checksum = layout.DESCRIPTOR_HEADER.unpack_from(data, offset)
    begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
    body = data[begin : begin + length]
    descriptor, damage = RecordingDescriptor.decode_damaged(body)
    if known_damage:
        state, damage = _effective_state(state), known_damage
    return CatalogEntry(
        place.recording_id, offset, length, state, checksum, descriptor, body, damage
    )


def end_of_strings(data: mmap.mmap | bytes, body_offset: int, limit: int) -> int:
    """Return the offset after a descriptor's strings, -1 when they reach beyond `limit`."""
    end = body_offset + layout.DESCRIPTOR_BLOCK_LENGTH
    for _ in range(3):
        if end + layout.VAR_LENGTH.size > limit:
            return -1
        end += layout.VAR_LENGTH.size + layout.VAR_LENGTH.unpack_from(data, end)[0]
    return end if end <= limit else -1


def entry_damage(entry: CatalogEntry) -> str:
    """Describe the damage of an entry: it cannot be read or has impossible figures; else ""."""
    return entry.damage or describe_problem(entry.descriptor)


def unknown_recording(
    recording_id: int, entries: Iterable[CatalogEntry], archive_dir: object
) -> UnknownRecordingError:
    """Return the error for an id that no recording of the expected state has, with its state."""
    text = f"no recording with id {recording_id} in archive directory {archive_dir}"
    for entry in entries:
        if entry.recording_id == recording_id:
            text += f": it is {state_name(entry.state)}"
            if entry.state == RecordingState.INVALID:
                text += ", which `aerotape tool` changes with `mark-valid` or `repair`"
    return UnknownRecordingError(text, recording_id)


def checked_entries(
    entries: Iterable[CatalogEntry], recording_id: int | None, archive_dir: object
) -> list[CatalogEntry]:
    """Choose the entries of valid and hidden recordings: of one, or of all for None.

    Raises:
        UnknownRecordingError: there is no such recording with this id.
    """
    everything = list(entries)
    chosen = [
        entry
        for entry in everything
        if recording_id in (None, entry.recording_id)
        and entry.state in (RecordingState.VALID, RecordingState.INVALID)
    ]
    if recording_id is not None and not chosen:
        raise unknown_recording(recording_id, everything, archive_dir)
    return chosen


def _effective_state(state: int) -> int:
    """The state of a damaged entry: VALID for one that is not a known value."""
    return state if state in _STATES else _VALID


# ---- the chain -----------------------------------------------------------------------------------


def find_places(data: mmap.mmap, alignment: int, *, growing: bool) -> EntryPlaces:
    """Find all entries of a catalog.

    Args:
        data: the whole file; its header has been found good.
        alignment: the catalog's.
        growing: another process may be adding entries; one that reaches beyond `data` is one
            for which the file has grown since it was mapped.
    """
    places = EntryPlaces()
    while True:
        places.extend_by_sound(data, alignment)
        offset = places.end_offset
        if offset + _MIN_ENTRY_LENGTH > len(data):
            break
        (length,) = layout.INT.unpack_from(data, offset)
        end = _end_by_header(data, offset, alignment)
        damaged = end < 0
        if end < 0:
            if growing and length >= layout.DESCRIPTOR_BLOCK_LENGTH:
                break
            end = _next_entry(data, offset, alignment)
            if end < 0 and length == 0:
                # The end; or an entry that was being added, whose place the next one takes.
                break
            if end < 0:
                # Its length is unknown; what is added must follow all its bytes.
                used = max(data_end(data, offset) - offset, _MIN_ENTRY_LENGTH)
                end = offset + layout.align(used, alignment)
        else:
            needed = _end_by_strings(data, offset, end, alignment)
            if needed < 0 and not _is_end(data, end) and not _is_entry(data, end, alignment):
                # It claims too little, unless the next one is damaged too.
                found = _next_entry(data, offset, alignment)
                damaged, end = found >= 0, max(found, end)
            elif 0 <= needed < end and _is_entry(data, needed, alignment):
                damaged, end = True, needed
        actual = end - offset - layout.DESCRIPTOR_HEADER_LENGTH
        _, state, _ = layout.DESCRIPTOR_HEADER.unpack_from(data, offset)
        damage = "" if state in _STATES else f"its state {state} is not a valid one"
        if damaged:
            damage = f"its header claims {length} bytes, there are {actual}"
        place = EntryPlace(offset, actual if damaged else length, _id(data, offset), damage)
        places.append(place, state)
        places.end_offset = end
    # Read after the entries, for a writer raises it before it adds one.
    (next_id,) = layout.LONG.unpack_from(data, layout.NEXT_RECORDING_ID_OFFSET)
    places.check_ids(next_id)
    return places


def _id(data: mmap.mmap, offset: int) -> int:
    begin = offset + layout.DESCRIPTOR_HEADER_LENGTH + layout.RECORDING_ID_OFFSET
    return int(layout.LONG.unpack_from(data, begin)[0])


def _end_by_header(data: mmap.mmap, offset: int, alignment: int) -> int:
    """Return the offset after an entry according to its header, -1 if that is impossible."""
    (length,) = layout.INT.unpack_from(data, offset)
    end = offset + layout.align(layout.DESCRIPTOR_HEADER_LENGTH + length, alignment)
    return end if length >= layout.DESCRIPTOR_BLOCK_LENGTH and end <= len(data) else -1


def _end_by_strings(data: mmap.mmap, offset: int, limit: int, alignment: int) -> int:
    """Return the offset after an entry's strings, -1 when it is greater than `limit`."""
    end = end_of_strings(data, offset + layout.DESCRIPTOR_HEADER_LENGTH, limit)
    return end if end < 0 else offset + layout.align(end - offset, alignment)


def _is_end(data: mmap.mmap, offset: int) -> bool:
    return offset + _MIN_ENTRY_LENGTH > len(data) or layout.INT.unpack_from(data, offset)[0] == 0


def _is_entry(data: mmap.mmap, offset: int, alignment: int) -> bool:
    """Whether the bytes there can only be an entry."""
    if offset + _MIN_ENTRY_LENGTH > len(data):
        return False
    end = _end_by_header(data, offset, alignment)
    _, state, _ = layout.DESCRIPTOR_HEADER.unpack_from(data, offset)
    reserved = offset + layout.DESCRIPTOR_HEADER.size
    return (
        end >= 0
        and state in _STATES
        and not any(data[reserved : offset + layout.DESCRIPTOR_HEADER_LENGTH])
        and _id(data, offset) >= 0
        and _end_by_strings(data, offset, end, alignment) == end
    )


def _next_entry(data: mmap.mmap, offset: int, alignment: int) -> int:
    """Find the first entry after `offset`, -1 when there is none."""
    limit = data_end(data, offset)
    candidates = range(offset + alignment, limit, alignment)
    return next((at for at in candidates if _is_entry(data, at, alignment)), -1)


def data_end(data: mmap.mmap, offset: int) -> int:
    """Return the offset after the last byte from `offset` on that is not zero."""
    end = len(data)
    while end > offset:
        begin = max(end - _CHUNK_LENGTH, offset)
        chunk = data[begin:end]
        if chunk != _ZEROS[: len(chunk)]:
            return begin + len(chunk.rstrip(b"\0"))
        end = begin
    return offset


def _is_out_of_order(
    recording_id: int, last_id: int, following: int | None, next_recording_id: int
) -> bool:
    if recording_id <= last_id:
        return True
    if following is not None:
        return last_id < following < recording_id
    return last_id < next_recording_id < recording_id
