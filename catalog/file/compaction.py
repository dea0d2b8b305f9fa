"""A catalog that leaves entries out: what is left is a new file, which takes its place.

So a crash leaves the one or the other, and who has the old file open keeps that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from aerotape.catalog import layout
from aerotape.catalog.file.entries import EntryPlace
from aerotape.catalog.file.lookup import CatalogLookup
from aerotape.catalog.layout import RecordingState
from aerotape.errors import CatalogError


class ShrinkingCatalog(CatalogLookup):
    """The part of `aerotape.catalog.file.catalog.Catalog` that makes it shorter."""

    def compact(self) -> None:
        """Leave out all entries that are not valid, and the room behind the last one.

        Raises:
            CatalogError: an entry is damaged, or the new file cannot be written.
        """
        self._file.check_writable()
        self.check_readable()
        valid = [p for p in self._places if self._state(p) == RecordingState.VALID]
        self._rewrite(valid, 0)
        self._find_entries()
        self._file.force_name()

    def leave_out(self, recording_ids: Container[int], capacity_bytes: int) -> list[int]:
        """Leave out the entries of these recordings, if they were purged; others stay as they are.

        Made for a catalog in use: it takes no look into entries, and puts a new file in the place
        of the old one as `compact` does.

        Args:
            recording_ids: whose.
            capacity_bytes: the length that the file is to have at least.

        Returns:
            The ids of the recordings left out, in the order of the file.

        Raises:
            CatalogError: an entry is damaged, or the new file cannot be written.
        """
        self._file.check_writable()
        kept: list[EntryPlace] = []
        moved: list[EntryPlace] = []
        gone: list[int] = []
        offset = end = layout.CATALOG_HEADER_LENGTH
        for place in self._places:
            if place.damage or place.offset != end:
                raise CatalogError(
                    f"catalog {self.path} is damaged at offset {end}: nothing is left out of it",
                    self.path,
                )
            length = self._frame_length(place)
            end += length
            if place.recording_id in recording_ids and self._state(place) == RecordingState.DELETED:
                gone.append(place.recording_id)
                continue
            kept.append(place)
            moved.append(EntryPlace(offset, place.length, place.recording_id))
            offset += length
        self._rewrite(kept, capacity_bytes)
        self._places, self._end_offset = moved, offset
        self._valid = {
            place.recording_id: place for place in moved if place.recording_id in self._valid
        }
        self._forget_descriptors()
        self._file.force_name()
        return gone

    def _rewrite(self, places: Iterable[EntryPlace], capacity_bytes: int) -> None:
        """Put a file with only these entries in the place of this one (CatalogError)."""
        header = self._header(self._next_recording_id)
        frames = [slice(place.offset, place.offset + self._frame_length(place)) for place in places]
        length = len(header) + sum(frame.stop - frame.start for frame in frames)
        self._file.rewrite((header, *frames), max(length, capacity_bytes), shrink=True)

    def _header(self, next_recording_id: int) -> bytes:
        return layout.CATALOG_HEADER.pack(
            self.version, layout.CATALOG_HEADER_LENGTH, next_recording_id, self._alignment
        ).ljust(layout.CATALOG_HEADER_LENGTH, b"\0")
