"""`archive.catalog`: the list of all recordings of an archive directory, mapped into memory.

The bytes and the growth of the file are those of the Java archive (`layout` describes them), so
either archive opens the other's file. There is one writer at a time, which the mark file ensures.
Readers may map the file at the same time; the order of stores here ensures that they never see an
incomplete entry, or a stop position before its timestamp.

Owns the changes of entries. The mapping is `mapped_file`'s, parsing `entries`', finding them
`lookup`'s.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.descriptor_checksum import (
    checksum_kind,
    checksum_of,
    kind_before_stop,
)
from aerotape.catalog.file.entries import (
    CatalogEntry,
    EntryPlace,
    read_entry,
    unknown_recording,
)
from aerotape.catalog.file.lookup import CatalogLookup
from aerotape.catalog.file.mapped_file import CatalogFile
from aerotape.catalog.layout import RecordingState
from aerotape.context import Closing
from aerotape.errors import CatalogError
from aerotape.frame_header import ChecksumName
from aerotape.protocol import NULL_VALUE

_SECTOR_LENGTH = 512
# How a field of a descriptor is stored, where it begins in that, and its value.
_Field = tuple[struct.Struct, int, int]


class Catalog(CatalogLookup, Closing):
    """An open catalog. Get one from `Catalog.open`; it is a context manager.

    Not safe for use from several threads: the archive's conductor owns it.

    Durability is the catalog sync level, as `aeron.archive.catalog.file.sync.level` has it:

    * 0: a change survives the end of this process, not that of the machine.
    * 1: data is forced to storage before a change returns (fdatasync).
    * 2: data and the file's metadata are (fsync).

    Changes to a recording whose entry is damaged are refused with CatalogError.
    """

    # ---- opening and closing -------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        archive_dir: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        capacity_bytes: int = layout.DEFAULT_CAPACITY_BYTES,
        sync_level: int = 0,
        checksum: ChecksumName = "none",
        lazily: bool = False,
    ) -> Catalog:
        """Open the catalog of an archive directory.

        Args:
            archive_dir: the directory.
            create: create the catalog when there is none.
            read_only: map for reading; every change raises CatalogError. The archive may run.
            capacity_bytes: smallest length of the file when opened for writing.
            sync_level: durability of changes, 0 to 2; see the class.
            checksum: checksum of each descriptor, the one that the archive records with.
            lazily: leave the file as it is until the first change, also its length and an empty
                one without a header.

        Raises:
            CatalogError: no catalog, one of another major version, or one with a damaged header.
        """
        path = Path(archive_dir) / layout.CATALOG_FILE_NAME
        if not layout.MIN_CAPACITY_BYTES <= capacity_bytes <= layout.MAX_CAPACITY_BYTES:
            raise CatalogError(
                f"catalog capacity {capacity_bytes} is not within {layout.MIN_CAPACITY_BYTES} and "
                f"{layout.MAX_CAPACITY_BYTES} bytes",
                path,
            )
        file = CatalogFile.open(
            path,
            create=create,
            read_only=read_only,
            capacity_bytes=capacity_bytes,
            sync_level=sync_level,
            lazily=lazily,
        )
        return cls._of(file, checksum)

    @classmethod
    def of_bytes(cls, path: Path, content: bytes) -> Catalog:
        """Read a catalog that was fetched from remote storage.

        Args:
            path: what it is called in errors.
            content: all of it.

        Raises:
            CatalogError: as `open`.
        """
        return cls._of(CatalogFile.of_bytes(path, content), "none")

    @classmethod
    def _of(cls, file: CatalogFile, checksum: ChecksumName) -> Catalog:
        try:
            return cls(file, checksum)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Force what was written to storage and close. Idempotent."""
        self._file.close()

    def compute_checksum(self, recording_id: int, checksum: ChecksumName | None = None) -> int:
        """Return the checksum that a recording's descriptor should have; 0 for "none"."""
        return checksum_of(self.entry(recording_id).body, checksum or self._checksum)

    # ---- changing ------------------------------------------------------------------------------

    def reserve(self) -> None:
        """Give a file that was opened lazily the length that was requested.

        Raises:
            CatalogError: it is read-only, or there is no storage for it.
        """
        self._file.check_writable()

    def avoid_ids(self, recording_ids: Iterable[int]) -> None:
        """Give no new recording one of these ids while the catalog is open."""
        self._avoided = frozenset(recording_ids)
        self._skip_avoided()

    def add_recording(
        self,
        *,
        start_position: int,
        start_timestamp_ms: int,
        initial_term_id: int,
        segment_file_length: int,
        term_buffer_length: int,
        mtu_length: int,
        session_id: int,
        stream_id: int,
        stripped_channel: str,
        original_channel: str,
        source_identity: str,
        stop_position: int = NULL_VALUE,
        stop_timestamp_ms: int = NULL_VALUE,
    ) -> int:
        """Add a recording and return its id. The file grows by half as often as needed.

        Raises:
            CatalogError: the catalog is full (2 GiB), read-only, or a value does not fit.
        """
        self._file.check_writable()
        recording_id = self._next_recording_id
        body = RecordingDescriptor(
            recording_id=recording_id,
            start_timestamp_ms=start_timestamp_ms,
            stop_timestamp_ms=stop_timestamp_ms,
            start_position=start_position,
            stop_position=stop_position,
            initial_term_id=initial_term_id,
            segment_file_length=segment_file_length,
            term_buffer_length=term_buffer_length,
            mtu_length=mtu_length,
            session_id=session_id,
            stream_id=stream_id,
            stripped_channel=stripped_channel,
            original_channel=original_channel,
            source_identity=source_identity,
        ).encode()
        frame = self._frame(body, RecordingState.VALID)
        offset, length = self._places.end_offset, len(frame) - layout.DESCRIPTOR_HEADER_LENGTH
        end = offset + len(frame)
        if end > len(self._file.data):
            self._file.grow(end)
        # The length is stored last: until then the entry does not exist, wherever the process is
        # killed. The next id is stored before, so that no other recording gets this one.
        self._file.store(offset + layout.STATE_OFFSET, frame[layout.STATE_OFFSET :])
        self._file.store(layout.NEXT_RECORDING_ID_OFFSET, layout.LONG.pack(recording_id + 1))
        # Also after a power cut, which may leave some sectors of an entry and not others.
        self._file.force()
        self._file.store(offset, layout.INT.pack(length))
        self._file.force()
        self._next_recording_id = recording_id + 1
        self._skip_avoided()
        self._places.append(EntryPlace(offset, length, recording_id), RecordingState.VALID)
        self._places.end_offset = end
        return recording_id

    def insert_recording(self, descriptor: RecordingDescriptor, state: RecordingState) -> None:
        """Add a recording that has an id already, which no entry may have; entries stay in order.

        Its checksum is of the kind that the entry before it carries. A new file takes the place of
        the old one, so that a crash leaves one or the other.

        Raises:
            CatalogError: the catalog is full, read-only, or a value does not fit; an entry is
                damaged or has this id.
        """
        self._file.check_writable()
        self.check_readable()
        if self.has_entry(descriptor.recording_id):
            raise CatalogError(
                f"there is a recording {descriptor.recording_id} in {self.path}", self.path
            )
        places, end_offset = self._places, self._places.end_offset
        index = bisect_left(places.ids, descriptor.recording_id)
        offset = places[index].offset if index < len(places) else end_offset
        checksum = self._checksum
        if index:
            checksum = checksum_kind(read_entry(self._file.data, places[index - 1]))
        frame = self._frame(descriptor.encode(), state, checksum)
        next_id = max(self._next_recording_id, descriptor.recording_id + 1)
        before = slice(layout.CATALOG_HEADER_LENGTH, offset)
        after = slice(offset, end_offset)
        self._file.rewrite((self._header(next_id), before, frame, after), end_offset + len(frame))
        self._find_entries()
        self._file.force_name()

    def force(self) -> None:
        """Force all changes to storage, at any sync level (CatalogError)."""
        self._file.force(at_least=1)

    def recording_stopped(self, recording_id: int, position: int, timestamp_ms: int) -> None:
        """Set stop position and timestamp of a valid recording (errors as `descriptor`)."""
        self._change(
            recording_id,
            (layout.LONG, layout.STOP_TIMESTAMP_OFFSET, timestamp_ms),
            (layout.LONG, layout.STOP_POSITION_OFFSET, position),
        )

    def extend_recording(
        self, recording_id: int, *, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """Make a stopped recording active again, with the session id of its new image.

        The ids of the request stay in the descriptor, as the Java archive leaves them there.
        """
        self._change(
            recording_id,
            (layout.LONG, layout.CONTROL_SESSION_ID_OFFSET, control_session_id),
            (layout.LONG, layout.CORRELATION_ID_OFFSET, correlation_id),
            (layout.LONG, layout.STOP_TIMESTAMP_OFFSET, NULL_VALUE),
            (layout.INT, layout.SESSION_ID_OFFSET, session_id),
            (layout.LONG, layout.STOP_POSITION_OFFSET, NULL_VALUE),
        )

    def set_start_position(self, recording_id: int, position: int) -> None:
        """Set the start of a valid recording (errors as `descriptor`)."""
        self._change(recording_id, (layout.LONG, layout.START_POSITION_OFFSET, position))

    def set_stop_position(self, recording_id: int, position: int) -> None:
        """Set the stop position of a valid recording; its stop timestamp stays.

        Errors are those of `descriptor`.
        """
        self._change(recording_id, (layout.LONG, layout.STOP_POSITION_OFFSET, position))

    def replace_channel(
        self, recording_id: int, *, stripped_channel: str, original_channel: str
    ) -> None:
        """Give a recording another channel (errors as `descriptor`).

        Where the entry has no room for it, all entries after it move and the file may grow: a new
        file replaces the old one, so that a crash leaves one or the other.

        Raises:
            CatalogError: the catalog is full, read-only, or a channel is not ASCII.
        """
        self._file.check_writable()
        entry = self._sound(recording_id)
        described = replace(
            entry.descriptor, stripped_channel=stripped_channel, original_channel=original_channel
        ).encode()
        # The fixed block stays as it is, with the fields that only mean something on the wire.
        strings = described[layout.DESCRIPTOR_BLOCK_LENGTH :]
        self._replace(entry, entry.body[: layout.DESCRIPTOR_BLOCK_LENGTH] + strings)

    def replace_recording(self, descriptor: RecordingDescriptor) -> None:
        """Replace the descriptor of the recording with its id (errors as `descriptor`).

        The ids of the last request stay in the entry. Room is made as by `replace_channel`.

        Raises:
            CatalogError: the catalog is full, read-only, or a value does not fit.
        """
        self._file.check_writable()
        entry = self._sound(descriptor.recording_id)
        kept = layout.RECORDING_ID_OFFSET
        self._replace(entry, entry.body[:kept] + descriptor.encode()[kept:])

    def set_end_in_any_state(self, recording_id: int, position: int, timestamp_ms: int) -> None:
        """As `recording_stopped`, also of a recording that is not valid.

        Raises:
            UnknownRecordingError: no entry of any state has this id.
        """
        self._put(
            self._any_place(recording_id),
            (layout.LONG, layout.STOP_TIMESTAMP_OFFSET, timestamp_ms),
            (layout.LONG, layout.STOP_POSITION_OFFSET, position),
        )
        self._file.force()

    def set_start_in_any_state(self, recording_id: int, position: int) -> None:
        """As `set_start_position`, also of a recording that is not valid."""
        place = self._any_place(recording_id)
        self._put(place, (layout.LONG, layout.START_POSITION_OFFSET, position))
        self._file.force()

    def change_state(self, recording_id: int, state: RecordingState) -> None:
        """Set the state of an entry, valid or not: hide it, or bring it back.

        Raises:
            UnknownRecordingError: no entry of any state has this id.
        """
        self._file.check_writable()
        place = self._any_place(recording_id)
        self._file.store(place.offset + layout.STATE_OFFSET, layout.INT.pack(state))
        self._file.force()
        self._places.states[self._places.index(recording_id)] = state

    def stored_state(self, recording_id: int) -> int:
        """Return the state in the entry of a recording, also one that is not valid.

        Raises:
            UnknownRecordingError: no entry of any state has this id.
        """
        place = self._any_place(recording_id)
        return int(layout.INT.unpack_from(self._file.data, place.offset + layout.STATE_OFFSET)[0])

    def update_checksum(self, entry: CatalogEntry, checksum: ChecksumName | None = None) -> None:
        """Put the checksum of its descriptor into an entry of whatever state."""
        self._file.check_writable()
        found = checksum_of(entry.body, checksum or self._checksum)
        self._file.store(entry.offset + layout.CHECKSUM_OFFSET, layout.INT.pack(found))
        self._file.force()

    @property
    def entry_count(self) -> int:
        """Number of entries, of recordings in any state."""
        return len(self._places)

    def compact(
        self, recording_ids: Collection[int] | None = None, capacity_bytes: int = 0
    ) -> None:
        """Remove entries, and the unused bytes after the last one.

        A new file replaces the old one: a crash leaves one or the other, and a process that has the
        old file open retains that.

        Args:
            recording_ids: recordings whose entries are removed; by default all that are not valid.
            capacity_bytes: smallest length of the new file.

        Raises:
            CatalogError: an entry is damaged, or the new file cannot be written.
        """
        self._file.check_writable()
        self.check_readable()
        places = self._places
        if recording_ids is None:
            states = zip(places, places.states, strict=True)
            retained = [place for place, state in states if state == RecordingState.VALID]
        else:
            removed = frozenset(recording_ids)
            retained = [place for place in places if place.recording_id not in removed]
        header = self._header(self._next_recording_id)
        frames = [slice(p.offset, p.offset + self._frame_length(p)) for p in retained]
        length = len(header) + sum(frame.stop - frame.start for frame in frames)
        self._file.rewrite((header, *frames), max(length, capacity_bytes), shrink=True)
        self._find_entries()
        self._file.force_name()

    # ---- within --------------------------------------------------------------------------------

    def _replace(self, entry: CatalogEntry, body: bytes) -> None:
        """Replace the body of an entry, moving those after it if it has become longer."""
        room = layout.align(layout.DESCRIPTOR_HEADER_LENGTH + entry.length, self._alignment)
        checksum = self._checksum_to_renew(self._any_place(entry.recording_id))
        frame = self._frame(body, RecordingState.VALID, checksum, least=room)
        # A power cut could leave part of what is stored in place, unless it is in one sector.
        first, last = entry.offset // _SECTOR_LENGTH, (entry.offset + room - 1) // _SECTOR_LENGTH
        is_in_place = len(frame) == room and (first == last or not self._file.is_forced)
        if is_in_place:
            self._file.store(entry.offset, frame)
        else:
            before = slice(0, entry.offset)
            end_offset = self._places.end_offset
            after = slice(entry.offset + room, end_offset)
            self._file.rewrite((before, frame, after), end_offset + len(frame) - room)
        self._find_entries()
        if is_in_place:
            self._file.force()
        else:
            self._file.force_name()

    def _frame(
        self,
        body: bytes,
        state: RecordingState,
        checksum: ChecksumName | None = None,
        least: int = 0,
    ) -> bytes:
        """Return an entry with its header and padding; `least` is its length at least, bytes."""
        length = layout.align(layout.DESCRIPTOR_HEADER_LENGTH + len(body), self._alignment)
        body = body.ljust(max(length, least) - layout.DESCRIPTOR_HEADER_LENGTH, b"\0")
        header = layout.DESCRIPTOR_HEADER.pack(
            len(body), state, checksum_of(body, checksum or self._checksum)
        )
        return header.ljust(layout.DESCRIPTOR_HEADER_LENGTH, b"\0") + body

    def _header(self, next_recording_id: int) -> bytes:
        return layout.CATALOG_HEADER.pack(
            self.version, layout.CATALOG_HEADER_LENGTH, next_recording_id, self._alignment
        ).ljust(layout.CATALOG_HEADER_LENGTH, b"\0")

    def _any_place(self, recording_id: int) -> EntryPlace:
        """Return the place of a recording's entry, whatever its state."""
        index = self._places.index(recording_id)
        if index < 0:
            raise unknown_recording(recording_id, (), self.path.parent)
        return self._places[index]

    def _change(self, recording_id: int, *fields: _Field) -> None:
        """Set fields of a valid recording's descriptor, in this order, and its checksum."""
        self._file.check_writable()
        self._sound_range(recording_id)
        self._put(self._any_place(recording_id), *fields)
        self._file.force()

    def _put(self, place: EntryPlace, *fields: _Field) -> None:
        """Set fields of an entry's descriptor, in this order, and its checksum."""
        self._file.check_writable()
        checksum = self._checksum_to_renew(place)
        for kind, offset, value in fields:
            self._file.store(place.body_offset + offset, kind.pack(value))
        if checksum != "none":
            found = checksum_of(read_entry(self._file.data, place).body, checksum)
            self._file.store(place.offset + layout.CHECKSUM_OFFSET, layout.INT.pack(found))

    def _checksum_to_renew(self, place: EntryPlace) -> ChecksumName:
        """Return the checksum of an entry that is changed: the catalog's, or the one it carries.

        So descriptors keep their checksums when an archive or a command without one changes them.
        """
        if self._checksum != "none":
            return self._checksum
        entry = read_entry(self._file.data, place)
        kind = checksum_kind(entry)
        return kind if kind != "none" else kind_before_stop(entry)
