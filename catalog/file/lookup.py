"""Lookup of recordings in an open catalog: by id, in order, from the last.

Apart from `catalog`, where they are added and changed; this part works for a reader as it does for
the archive itself.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aerotape._native import find_descriptors, irregular_recordings
from aerotape.catalog import layout
from aerotape.catalog.descriptor import RecordingDescriptor
from aerotape.catalog.file.entries import (
    CatalogEntry,
    EntryPlace,
    end_of_strings,
    find_places,
    read_entry,
    unknown_recording,
)
from aerotape.catalog.file.mapped_file import CatalogFile, lent
from aerotape.catalog.layout import RecordingState
from aerotape.catalog.segment_files import file_names
from aerotape.errors import CatalogError
from aerotape.frame_header import ChecksumName
from aerotape.protocol import NULL_VALUE


@dataclass(frozen=True, slots=True)
class DescriptorRun:
    """The places of descriptors in the catalog file, for sending them.

    Attributes:
        ids: the recordings, ascending, without damaged ones.
        slices: offset in the file and length of each descriptor without its padding, bytes: two
            int64 a recording.
        next_id: the first recording id that was not checked.
    """

    ids: array[int]
    slices: array[int]
    next_id: int


class CatalogLookup:
    """The recordings of a catalog file, indexed by id.

    A recording whose entry is damaged counts as there (`has_recording`, `recording_ids`), but
    what would need its descriptor raises CatalogError.
    """

    def __init__(self, file: CatalogFile, checksum: ChecksumName) -> None:
        self._file = file
        self._checksum: ChecksumName = checksum
        self._alignment = int(layout.INT.unpack_from(file.data, layout.ALIGNMENT_OFFSET)[0])
        self._avoided: frozenset[int] = frozenset()
        self._find_entries()

    def _find_entries(self) -> None:
        """Find the entries of the file."""
        file = self._file
        self._places = find_places(
            file.data, self._alignment, growing=file.read_only and file.has_grown
        )
        stored = int(layout.LONG.unpack_from(file.data, layout.NEXT_RECORDING_ID_OFFSET)[0])
        last_id = self._places.ids[-1] if self._places else NULL_VALUE
        self._next_recording_id = max(stored, last_id + 1)
        if stored < self._next_recording_id and not file.is_as_found:
            # The process died between the last entry and this field, or an old file has none.
            next_id = layout.LONG.pack(self._next_recording_id)
            file.store(layout.NEXT_RECORDING_ID_OFFSET, next_id)
        self._skip_avoided()

    def _skip_avoided(self) -> None:
        while self._next_recording_id in self._avoided:
            self._next_recording_id += 1

    @property
    def path(self) -> Path:
        """The catalog file."""
        return self._file.path

    @property
    def capacity_bytes(self) -> int:
        """Length of the file."""
        return len(self._file.data)

    @property
    def version(self) -> int:
        """Semantic version of the file (CatalogHeader.version)."""
        return int(layout.INT.unpack_from(self._file.data, 0)[0])

    @property
    def alignment(self) -> int:
        """Alignment of entries, bytes."""
        return self._alignment

    @property
    def checksum(self) -> ChecksumName:
        """Checksum that descriptors have."""
        return self._checksum

    @property
    def next_recording_id(self) -> int:
        """Id that the next recording will get."""
        return self._next_recording_id

    def __len__(self) -> int:
        return self._places.states.count(RecordingState.VALID)

    def has_recording(self, recording_id: int) -> bool:
        """Whether a valid recording has this id, damaged or not."""
        return self._places.valid_index(recording_id) >= 0

    def has_entry(self, recording_id: int) -> bool:
        """Whether an entry has this id, valid or not."""
        return self._places.index(recording_id) >= 0

    def recording_ids(self, from_id: int = 0) -> Iterator[int]:
        """Iterate the ids of valid recordings from `from_id`, ascending.

        Recordings may be added or removed during the iteration, which proceeds by id.
        """
        return self._ids_of(RecordingState.VALID, from_id)

    @property
    def data(self) -> mmap.mmap:
        """The whole file. Another one after the catalog has grown."""
        return self._file.data

    def descriptors(
        self,
        from_id: int,
        limit: int,
        *,
        scan_limit: int | None = None,
        stream_id: int | None = None,
        channel_fragment: bytes = b"",
    ) -> DescriptorRun:
        """Return the places of the descriptors of recordings from `from_id` on.

        Args:
            from_id: the first recording id to consider.
            limit: the number of recordings to return at most.
            scan_limit: the number of entries to check at most; None for no limit.
            stream_id: the stream id that they must have; None for any.
            channel_fragment: bytes that their original channel must contain.
        """
        places = self._places
        begin = bisect_left(places.ids, from_id)
        end = len(places) if scan_limit is None else begin + scan_limit
        offsets = places.offsets[begin:end]
        if not offsets:
            return DescriptorRun(offsets, offsets, from_id)
        ids, slices, scanned = find_descriptors(
            lent(self._file.data),
            offsets,
            places.states[begin:end],
            limit,
            stream_id=stream_id,
            channel_fragment=channel_fragment,
        )
        next_id = places.ids[begin + scanned - 1] + 1 if scanned else from_id
        return DescriptorRun(array("q", ids), array("q", slices), next_id)

    def irregular_recordings(self, archive_dir: Path) -> tuple[list[int], list[str]]:
        """Find the recordings for which a start may have something to do.

        All others are stopped, have possible figures, and just the files that they should have.

        Args:
            archive_dir: the folder of the segment files.

        Returns:
            The recording ids, ascending; and the names of all files but those of the others.

        Raises:
            StorageError: the directory cannot be read.
        """
        places, names = self._places, list(file_names(archive_dir))
        found, others = irregular_recordings(
            lent(self._file.data), places.offsets, places.states, archive_dir, names
        )
        return [places.ids[index] for index in array("q", found)], others

    def entries(self) -> Iterator[CatalogEntry]:
        """Iterate all entries in file order, those that are invalid or damaged too."""
        for place in self._places:
            yield read_entry(self._file.data, place)

    def all_recording_ids(self) -> Iterator[int]:
        """Iterate the ids of all entries, valid or not."""
        last_id = NULL_VALUE
        for recording_id in self._places.ids:
            if recording_id > last_id:
                yield recording_id
                last_id = recording_id

    def purged_ids(self) -> Iterator[int]:
        """Iterate the ids of recordings that clients have purged, in file order."""
        return self._ids_of(RecordingState.DELETED)

    def entries_of(self, recording_ids: Collection[int]) -> Iterator[CatalogEntry]:
        """Iterate the entries of recordings, valid or not, in file order; not of unknown ones."""
        for recording_id in sorted(recording_ids):
            index = self._places.index(recording_id)
            if index >= 0:
                yield read_entry(self._file.data, self._places[index])

    def check_readable(self) -> None:
        """Check that every entry can be read; CatalogError for the first that cannot."""
        for entry in self.entries():
            if entry.damage:
                raise CatalogError(
                    f"the entry at offset {entry.offset} of catalog {self.path} is damaged: "
                    f"{entry.damage}",
                    self.path,
                )

    def unidentified_entries(self) -> Iterator[CatalogEntry]:
        """Iterate the damaged entries whose recording ids are unknown."""
        for place in self._places.unidentified():
            yield read_entry(self._file.data, place)

    def entry(self, recording_id: int) -> CatalogEntry:
        """Return the entry of a valid recording; damage is reported in it.

        Raises:
            UnknownRecordingError: there is none.
        """
        return read_entry(self._file.data, self._place(recording_id))

    def descriptor(self, recording_id: int) -> RecordingDescriptor:
        """Return a valid recording's descriptor.

        Raises:
            UnknownRecordingError: there is none.
            CatalogError: its entry is damaged.
        """
        begin, end = self._sound_range(recording_id)
        return RecordingDescriptor.decode(self._file.data[begin:end])

    def readable_descriptors(
        self, recording_ids: Iterable[int] | None = None
    ) -> tuple[dict[int, RecordingDescriptor], dict[int, CatalogError]]:
        """Return the descriptor of each recording, or why it cannot be read.

        Args:
            recording_ids: valid recordings; by default all.
        """
        descriptors, damaged = {}, {}
        for recording_id in self.recording_ids() if recording_ids is None else recording_ids:
            try:
                descriptors[recording_id] = self.descriptor(recording_id)
            except CatalogError as error:
                damaged[recording_id] = error
        return descriptors, damaged

    def wire_descriptor(self, recording_id: int) -> bytes:
        """Return the descriptor's bytes as they stand in the file, without the padding.

        An archive sends them after a message header, with controlSessionId (bytes 0 to 7) and
        correlationId (8 to 15) set.

        Raises:
            UnknownRecordingError: there is no such valid recording.
            CatalogError: its entry is damaged, so that no client could decode it.
        """
        begin, end = self._sound_range(recording_id)
        return self._file.data[begin:end]

    def start_position(self, recording_id: int) -> int:
        """Return a recording's start position (errors as `descriptor`)."""
        return self.descriptor(recording_id).start_position

    def stop_position(self, recording_id: int) -> int:
        """Return a recording's stop position, -1 while active (errors as `descriptor`)."""
        return self.descriptor(recording_id).stop_position

    def find_last(
        self, min_recording_id: int, session_id: int, stream_id: int, channel_fragment: bytes
    ) -> int:
        """Find the recording with the highest id that matches; damaged ones never do.

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
        run = self.descriptors(
            min_recording_id,
            len(self._places),
            stream_id=stream_id,
            channel_fragment=channel_fragment,
        )
        data, at = self._file.data, layout.SESSION_ID_OFFSET
        for recording_id, offset in zip(reversed(run.ids), run.slices[-2::-2], strict=True):
            if session_id == layout.INT.unpack_from(data, offset + at)[0]:
                return recording_id
        return NULL_VALUE

    # ---- within --------------------------------------------------------------------------------

    def _ids_of(self, state: RecordingState, from_id: int = 0) -> Iterator[int]:
        places, index = self._places, bisect_left(self._places.ids, from_id)
        while (index := places.states.find(state, index)) >= 0:
            recording_id = places.ids[index]
            yield recording_id
            index += 1
            if places is not self._places:  # entries have moved
                places = self._places
                index = bisect_left(places.ids, recording_id + 1)

    def _frame_length(self, place: EntryPlace) -> int:
        """Return the length of an entry, bytes, with header and padding."""
        return layout.align(layout.DESCRIPTOR_HEADER_LENGTH + place.length, self._alignment)

    def _place(self, recording_id: int) -> EntryPlace:
        _ = self._file.data
        index = self._places.valid_index(recording_id)
        if index < 0:
            raise unknown_recording(recording_id, (), self.path.parent)
        return self._places[index]

    def _sound_range(self, recording_id: int) -> tuple[int, int]:
        """Return the offsets of a valid descriptor and of the end of its strings.

        Errors are those of `descriptor`.
        """
        data, places = self._file.data, self._places
        index = places.valid_index(recording_id)
        begin, end = places.offsets[index] if index >= 0 else -1, -1
        if begin >= 0:
            end = end_of_strings(data, begin, begin + places.lengths[index])
        if end < 0:
            self._sound(recording_id)
        return begin, end

    def _sound(self, recording_id: int) -> CatalogEntry:
        entry = self.entry(recording_id)
        if entry.damage:
            raise CatalogError(
                f"recording {recording_id} has a damaged descriptor at offset {entry.offset} of "
                f"catalog {self.path}: {entry.damage}",
                self.path,
            )
        return entry
