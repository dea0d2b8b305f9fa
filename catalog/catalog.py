"""`archive.catalog`: the list of all recordings of an archive directory, mapped into memory.

The bytes and the way they grow are those of the Java archive (`layout` describes them), so
either may open the other's file. One writer at a time: the mark file sees to that. Readers may
map the file while a writer is at work; the order of stores here keeps them from seeing an entry
before it is whole, and a stop position before its timestamp.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from aerotape.catalog import layout
from aerotape.catalog.descriptor import NULL_VALUE, RecordingDescriptor
from aerotape.catalog.layout import RecordingState
from aerotape.errors import CatalogError, ClosedError, UnknownRecordingError

ChecksumName = Literal["none", "crc-32", "crc-32c"]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An entry of the catalog file, of whatever state.

    Attributes:
        offset: where its descriptor header begins in the file, bytes.
        length: length of the descriptor with its padding, without its header, bytes.
        state: VALID for recordings; anything else is kept but hidden.
        checksum: as stored; 0 when the archive that wrote it keeps none.
        descriptor: the recording.
        body: the bytes that the checksum is over: the descriptor with its padding.
    """

    offset: int
    length: int
    state: int
    checksum: int
    descriptor: RecordingDescriptor
    body: bytes = field(repr=False)


class Catalog:
    """An open catalog. Get one from `Catalog.open`; it is a context manager.

    Not safe for use from several threads: the archive's conductor owns it.

    Durability is the catalog sync level, as `aeron.archive.catalog.file.sync.level` has it:

    * 0: a change survives the end of this process, not that of the machine.
    * 1: data is forced to storage before a change returns (fdatasync).
    * 2: data and the file's metadata are (fsync).
    """

    def __init__(
        self,
        path: Path,
        file_descriptor: int,
        mapping: mmap.mmap,
        *,
        read_only: bool,
        sync_level: int,
        checksum: ChecksumName,
    ) -> None:
        self._path = path
        self._fd = file_descriptor
        self._map = mapping
        self._read_only = read_only
        self._sync_level = sync_level
        self._checksum: ChecksumName = checksum
        self._closed = False
        self._alignment = layout.DEFAULT_ALIGNMENT
        self._next_recording_id = 0
        self._end_offset = layout.CATALOG_HEADER_LENGTH
        self._offsets: dict[int, int] = {}
        self._ids: list[int] = []

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
    ) -> Catalog:
        """Open the catalog of an archive directory.

        Args:
            archive_dir: the directory.
            create: make the catalog when there is none.
            read_only: map for reading; every change raises CatalogError. The archive may run.
            capacity_bytes: smallest length of the file when opened for writing.
            sync_level: durability of changes, 0 to 2; see the class.
            checksum: checksum kept over each descriptor, as the archive records with.

        Raises:
            CatalogError: no catalog, one of another major version, or a damaged one.
        """
        path = Path(archive_dir) / layout.CATALOG_FILE_NAME
        if not layout.MIN_CAPACITY_BYTES <= capacity_bytes <= layout.MAX_CAPACITY_BYTES:
            raise CatalogError(
                f"catalog capacity {capacity_bytes} is not within {layout.MIN_CAPACITY_BYTES} and "
                f"{layout.MAX_CAPACITY_BYTES} bytes",
                path,
            )
        flags = os.O_RDONLY if read_only else os.O_RDWR | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except FileNotFoundError as error:
            raise CatalogError(f"no catalog at {path}: is this an archive directory?", path) from (
                error
            )
        except OSError as error:
            raise CatalogError(f"cannot open catalog {path}: {error.strerror}", path) from error
        try:
            existing = os.fstat(descriptor).st_size
            if read_only and existing < layout.CATALOG_HEADER_LENGTH:
                raise CatalogError(
                    f"catalog {path} is {existing} bytes long, less than its header", path
                )
            if existing >= layout.CATALOG_HEADER_LENGTH:
                # Before anything is changed: a file of another version is left as it is.
                _check_header(path, os.pread(descriptor, layout.CATALOG_HEADER_LENGTH, 0))
            capacity = existing if read_only else max(existing, capacity_bytes)
            if not read_only:
                _allocate(descriptor, capacity)
            mapping = _map(descriptor, capacity, read_only)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError):
                raise CatalogError(f"cannot map catalog {path}: {error}", path) from error
            raise
        catalog = cls(
            path,
            descriptor,
            mapping,
            read_only=read_only,
            sync_level=sync_level,
            checksum=checksum,
        )
        try:
            catalog._load()
        except BaseException:
            catalog._unmap()
            raise
        return catalog

    def _load(self) -> None:
        version, length, next_recording_id, alignment = layout.CATALOG_HEADER.unpack_from(self._map)
        if version == 0:
            if self._read_only:
                raise CatalogError(f"catalog {self._path} has not been initialised yet", self._path)
            layout.CATALOG_HEADER.pack_into(
                self._map,
                0,
                layout.SEMANTIC_VERSION,
                layout.CATALOG_HEADER_LENGTH,
                0,
                layout.DEFAULT_ALIGNMENT,
            )
            self._force()
            return
        if alignment < 32 or alignment & (alignment - 1) or length != layout.CATALOG_HEADER_LENGTH:
            raise CatalogError(
                f"catalog {self._path} has a damaged header: length {length}, alignment "
                f"{alignment}",
                self._path,
            )
        self._alignment = alignment
        last_id = self._build_index()
        self._next_recording_id = max(next_recording_id, last_id + 1)
        if next_recording_id < last_id + 1 and not self._read_only:
            # The process died between the last entry and this field, or an old file has none.
            layout.LONG.pack_into(
                self._map, layout.NEXT_RECORDING_ID_OFFSET, self._next_recording_id
            )

    def _build_index(self) -> int:
        offset = layout.CATALOG_HEADER_LENGTH
        capacity = len(self._map)
        last_id = NULL_VALUE
        while offset + layout.DESCRIPTOR_HEADER_LENGTH <= capacity:
            length, state, _ = layout.DESCRIPTOR_HEADER.unpack_from(self._map, offset)
            if length <= 0:
                break
            end = offset + layout.align(layout.DESCRIPTOR_HEADER_LENGTH + length, self._alignment)
            body = offset + layout.DESCRIPTOR_HEADER_LENGTH
            if length < layout.DESCRIPTOR_BLOCK_LENGTH or end > capacity:
                raise CatalogError(
                    f"catalog {self._path} is damaged at offset {offset}: the entry after "
                    f"recording {last_id} claims {length} bytes of a file of {capacity}; restore "
                    f"the catalog from a copy",
                    self._path,
                )
            (recording_id,) = layout.LONG.unpack_from(self._map, body + layout.RECORDING_ID_OFFSET)
            if recording_id <= last_id:
                raise CatalogError(
                    f"catalog {self._path} is damaged at offset {offset}: recording id "
                    f"{recording_id} follows {last_id}; restore the catalog from a copy",
                    self._path,
                )
            last_id = int(recording_id)
            if state == RecordingState.VALID:
                self._offsets[last_id] = offset
                self._ids.append(last_id)
            offset = end
        self._end_offset = offset
        return last_id

    def close(self) -> None:
        """Force what was written to storage and close. Idempotent."""
        if not self._closed:
            if not self._read_only:
                self._map.flush()
                os.fsync(self._fd)
            self._unmap()

    def _unmap(self) -> None:
        self._closed = True
        self._map.close()
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- reading -------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The catalog file."""
        return self._path

    @property
    def capacity_bytes(self) -> int:
        """Length of the file."""
        return len(self._map)

    @property
    def version(self) -> int:
        """Semantic version of the file (CatalogHeader.version)."""
        return int(layout.INT.unpack_from(self._mapped(), 0)[0])

    @property
    def alignment(self) -> int:
        """Alignment of entries, bytes."""
        return self._alignment

    @property
    def checksum(self) -> ChecksumName:
        """Checksum kept over descriptors."""
        return self._checksum

    @property
    def next_recording_id(self) -> int:
        """Id that the next recording will get."""
        return self._next_recording_id

    def __len__(self) -> int:
        return len(self._ids)

    def has_recording(self, recording_id: int) -> bool:
        """Whether a valid recording has this id."""
        return recording_id in self._offsets

    def recording_ids(self, from_id: int = 0) -> Iterator[int]:
        """Iterate the ids of valid recordings from `from_id`, ascending.

        The iteration goes by id: recordings may be added or removed meanwhile.
        """
        index = bisect_left(self._ids, from_id)
        while index < len(self._ids):
            recording_id = self._ids[index]
            yield recording_id
            index = bisect_left(self._ids, recording_id + 1)

    def entries(self) -> Iterator[CatalogEntry]:
        """Iterate all entries in file order, those that are no longer valid too."""
        offset = layout.CATALOG_HEADER_LENGTH
        while offset < self._end_offset:
            entry = self._entry_at(offset)
            yield entry
            offset += layout.align(layout.DESCRIPTOR_HEADER_LENGTH + entry.length, self._alignment)

    def all_recording_ids(self) -> Iterator[int]:
        """Iterate the ids of all entries, valid or not, without looking at the rest of them."""
        offset = layout.CATALOG_HEADER_LENGTH
        while offset < self._end_offset:
            (length,) = layout.INT.unpack_from(self._mapped(), offset)
            begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
            yield int(layout.LONG.unpack_from(self._map, begin + layout.RECORDING_ID_OFFSET)[0])
            offset += layout.align(layout.DESCRIPTOR_HEADER_LENGTH + length, self._alignment)

    def entry(self, recording_id: int) -> CatalogEntry:
        """Return the entry of a valid recording.

        Raises:
            UnknownRecordingError: there is none.
        """
        return self._entry_at(self._offset(recording_id))

    def descriptor(self, recording_id: int) -> RecordingDescriptor:
        """Return a valid recording's descriptor.

        Raises:
            UnknownRecordingError: there is none.
        """
        return RecordingDescriptor.decode(self.wire_descriptor(recording_id))

    def wire_descriptor(self, recording_id: int) -> bytes:
        """Return the descriptor's bytes as they stand in the file, padding included.

        An archive sends them as they are behind a message header, once controlSessionId
        (bytes 0 to 7) and correlationId (8 to 15) have been put in.

        Raises:
            UnknownRecordingError: there is no such valid recording.
        """
        offset = self._offset(recording_id)
        (length,) = layout.INT.unpack_from(self._map, offset)
        begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
        return self._map[begin : begin + length]

    def start_position(self, recording_id: int) -> int:
        """Return a recording's start position (UnknownRecordingError when there is none)."""
        return self._long(recording_id, layout.START_POSITION_OFFSET)

    def stop_position(self, recording_id: int) -> int:
        """Return a recording's stop position, -1 while active (UnknownRecordingError)."""
        return self._long(recording_id, layout.STOP_POSITION_OFFSET)

    def find_last(
        self, min_recording_id: int, session_id: int, stream_id: int, channel_fragment: bytes
    ) -> int:
        """Find the recording with the highest id that matches.

        Args:
            min_recording_id: lowest id to consider; a negative one matches nothing.
            session_id: the image's session id.
            stream_id: the stream id.
            channel_fragment: bytes that the original channel must contain; empty matches all.

        Returns:
            The recording id, or -1.
        """
        if min_recording_id < 0:
            return NULL_VALUE
        for recording_id in reversed(self._ids):
            if recording_id < min_recording_id:
                break
            begin = self._offsets[recording_id] + layout.DESCRIPTOR_HEADER_LENGTH
            if (
                session_id == layout.INT.unpack_from(self._map, begin + layout.SESSION_ID_OFFSET)[0]
                and stream_id
                == layout.INT.unpack_from(self._map, begin + layout.STREAM_ID_OFFSET)[0]
                and channel_fragment in self._original_channel(begin)
            ):
                return recording_id
        return NULL_VALUE

    def compute_checksum(self, recording_id: int, checksum: ChecksumName | None = None) -> int:
        """Return the checksum that a recording's descriptor should have; 0 for "none"."""
        return self._checksum_of(self.wire_descriptor(recording_id), checksum or self._checksum)

    # ---- changing ------------------------------------------------------------------------------

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
        self._check_writable()
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
        frame_length = layout.align(layout.DESCRIPTOR_HEADER_LENGTH + len(body), self._alignment)
        length = frame_length - layout.DESCRIPTOR_HEADER_LENGTH
        body = body.ljust(length, b"\0")
        offset = self._end_offset
        if offset + frame_length > len(self._map):
            self._grow(offset + frame_length)
        # The length goes in last: until then the entry does not exist, wherever we are killed.
        # The id is taken before, so that no other recording can ever get it.
        begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
        self._map[begin : begin + length] = body
        layout.INT.pack_into(
            self._map, offset + layout.CHECKSUM_OFFSET, self._checksum_of(body, self._checksum)
        )
        layout.INT.pack_into(self._map, offset + layout.STATE_OFFSET, RecordingState.VALID)
        layout.LONG.pack_into(self._map, layout.NEXT_RECORDING_ID_OFFSET, recording_id + 1)
        layout.INT.pack_into(self._map, offset, length)
        self._force()
        self._next_recording_id = recording_id + 1
        self._end_offset = offset + frame_length
        self._offsets[recording_id] = offset
        self._ids.append(recording_id)
        return recording_id

    def recording_stopped(self, recording_id: int, position: int, timestamp_ms: int) -> None:
        """Set a recording's stop position and stop timestamp (UnknownRecordingError)."""
        begin = self._body_for_change(recording_id)
        layout.LONG.pack_into(self._map, begin + layout.STOP_TIMESTAMP_OFFSET, timestamp_ms)
        layout.LONG.pack_into(self._map, begin + layout.STOP_POSITION_OFFSET, position)
        self._changed(recording_id)

    def extend_recording(
        self, recording_id: int, *, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """Make a stopped recording active again, with the session id of its new image.

        The ids of the request stay in the descriptor, as the Java archive leaves them there.
        """
        begin = self._body_for_change(recording_id)
        put = layout.LONG.pack_into
        put(self._map, begin + layout.CONTROL_SESSION_ID_OFFSET, control_session_id)
        put(self._map, begin + layout.CORRELATION_ID_OFFSET, correlation_id)
        put(self._map, begin + layout.STOP_TIMESTAMP_OFFSET, NULL_VALUE)
        layout.INT.pack_into(self._map, begin + layout.SESSION_ID_OFFSET, session_id)
        put(self._map, begin + layout.STOP_POSITION_OFFSET, NULL_VALUE)
        self._changed(recording_id)

    def set_start_position(self, recording_id: int, position: int) -> None:
        """Move a recording's start, after its first segments went (UnknownRecordingError)."""
        begin = self._body_for_change(recording_id)
        layout.LONG.pack_into(self._map, begin + layout.START_POSITION_OFFSET, position)
        self._changed(recording_id)

    def set_stop_position(self, recording_id: int, position: int) -> None:
        """Move a recording's end, after it was truncated (UnknownRecordingError)."""
        begin = self._body_for_change(recording_id)
        layout.LONG.pack_into(self._map, begin + layout.STOP_POSITION_OFFSET, position)
        self._changed(recording_id)

    def change_state(self, recording_id: int, state: RecordingState) -> None:
        """Set the state of an entry, valid or not: hide it, or bring it back.

        Raises:
            UnknownRecordingError: no entry of any state has this id.
        """
        self._check_writable()
        offset = self._offsets.get(recording_id)
        if offset is None:
            offset = next(
                (e.offset for e in self.entries() if e.descriptor.recording_id == recording_id),
                None,
            )
        if offset is None:
            raise _unknown(recording_id, self._path)
        layout.INT.pack_into(self._map, offset + layout.STATE_OFFSET, state)
        self._force()
        if state == RecordingState.VALID and recording_id not in self._offsets:
            self._offsets[recording_id] = offset
            insort(self._ids, recording_id)
        elif state != RecordingState.VALID and recording_id in self._offsets:
            del self._offsets[recording_id]
            self._ids.remove(recording_id)

    # ---- within --------------------------------------------------------------------------------

    def _mapped(self) -> mmap.mmap:
        if self._closed:
            raise ClosedError(f"catalog {self._path} is closed")
        return self._map

    def _offset(self, recording_id: int) -> int:
        self._mapped()
        try:
            return self._offsets[recording_id]
        except KeyError:
            raise _unknown(recording_id, self._path) from None

    def _long(self, recording_id: int, field_offset: int) -> int:
        offset = self._offset(recording_id) + layout.DESCRIPTOR_HEADER_LENGTH + field_offset
        return int(layout.LONG.unpack_from(self._map, offset)[0])

    def _entry_at(self, offset: int) -> CatalogEntry:
        length, state, checksum = layout.DESCRIPTOR_HEADER.unpack_from(self._mapped(), offset)
        begin = offset + layout.DESCRIPTOR_HEADER_LENGTH
        body = self._map[begin : begin + length]
        try:
            descriptor = RecordingDescriptor.decode(body)
        except CatalogError as error:
            raise CatalogError(
                f"catalog {self._path} is damaged at offset {offset}: {error}", self._path
            ) from error
        return CatalogEntry(offset, length, state, checksum, descriptor, body)

    def _original_channel(self, begin: int) -> bytes:
        offset = begin + layout.DESCRIPTOR_BLOCK_LENGTH
        (stripped_length,) = layout.VAR_LENGTH.unpack_from(self._map, offset)
        offset += layout.VAR_LENGTH.size + stripped_length
        if offset + layout.VAR_LENGTH.size > len(self._map):
            return b""
        (length,) = layout.VAR_LENGTH.unpack_from(self._map, offset)
        offset += layout.VAR_LENGTH.size
        return self._map[offset : offset + length]

    def _check_writable(self) -> None:
        self._mapped()
        if self._read_only:
            raise CatalogError(f"catalog {self._path} was opened read-only", self._path)

    def _body_for_change(self, recording_id: int) -> int:
        self._check_writable()
        return self._offset(recording_id) + layout.DESCRIPTOR_HEADER_LENGTH

    def _changed(self, recording_id: int) -> None:
        if self._checksum != "none":
            layout.INT.pack_into(
                self._map,
                self._offsets[recording_id] + layout.CHECKSUM_OFFSET,
                self.compute_checksum(recording_id),
            )
        self._force()

    @staticmethod
    def _checksum_of(data: bytes, name: ChecksumName) -> int:
        if name == "none":
            return 0
        from aerotape import _native

        return _native.checksum(name, data)

    def _force(self) -> None:
        try:
            if self._sync_level == 1:
                os.fdatasync(self._fd)
            elif self._sync_level > 1:
                os.fsync(self._fd)
        except OSError as error:
            raise CatalogError(
                f"cannot force catalog {self._path} to storage: {error.strerror}", self._path
            ) from error

    def _grow(self, required_bytes: int) -> None:
        if required_bytes > layout.MAX_CAPACITY_BYTES:
            raise CatalogError(
                f"catalog {self._path} is full: it cannot grow beyond "
                f"{layout.MAX_CAPACITY_BYTES} bytes",
                self._path,
            )
        capacity = layout.next_capacity(len(self._map), required_bytes)
        try:
            self._map.flush()
            _allocate(self._fd, capacity)
            os.fsync(self._fd)
            grown = _map(self._fd, capacity, read_only=False)
        except OSError as error:
            raise CatalogError(
                f"catalog {self._path} cannot grow to {capacity} bytes: {error.strerror}",
                self._path,
            ) from error
        self._map.close()
        self._map = grown


def _map(file_descriptor: int, length: int, read_only: bool) -> mmap.mmap:
    protection = mmap.PROT_READ if read_only else mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(file_descriptor, length, flags=mmap.MAP_SHARED, prot=protection)


def _allocate(file_descriptor: int, length: int) -> None:
    # Reserve the blocks: a store into a hole of a mapped file on a full disk would be SIGBUS.
    os.posix_fallocate(file_descriptor, 0, length)


def _check_header(path: Path, header: bytes) -> None:
    (version,) = layout.INT.unpack_from(header)
    if version >> 16 == layout.MAJOR_VERSION or header == bytes(layout.CATALOG_HEADER_LENGTH):
        return
    raise CatalogError(
        f"catalog {path} is of version {layout.version_string(version)}; this archive reads "
        f"{layout.MAJOR_VERSION}.x: migrate it with Aeron's ArchiveTool",
        path,
    )


def _unknown(recording_id: int, path: Path) -> UnknownRecordingError:
    return UnknownRecordingError(
        f"no recording with id {recording_id} in catalog {path}", recording_id
    )
