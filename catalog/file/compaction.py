"""Compaction of a catalog: a new file without some of the entries replaces the old one.

A crash leaves one file or the other, and a process that has the old file open retains that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from aerotape.catalog import layout
from aerotape.catalog.file.entries import EntryPlace
from aerotape.catalog.file.lookup import CatalogLookup
from aerotape.catalog.layout import RecordingState


class CompactableCatalog(CatalogLookup):
    """The part of `aerotape.catalog.file.catalog.Catalog` that removes entries."""

    @property
    def entry_count(self) -> int:
        """Number of entries, of recordings in any state."""
        return len(self._places)

    def compact(
        self, recording_ids: Collection[int] | None = None, capacity_bytes: int = 0
    ) -> None:
        """Remove entries, and the unused bytes after the last one.

        Args:
            recording_ids: recordings whose entries are removed; by default all that are not valid.
            capacity_bytes: smallest length of the new file.

        Raises:
            CatalogError: an entry is damaged, or the new file cannot be written.
        """
        self._file.check_writable()
        self.check_readable()
        if recording_ids is None:
            retained = [p for p in self._places if self._state(p) == RecordingState.VALID]
        else:
            removed = frozenset(recording_ids)
            retained = [p for p in self._places if p.recording_id not in removed]
        self._rewrite(retained, capacity_bytes)
        self._find_entries()
        self._file.force_name()

    def _rewrite(self, places: Iterable[EntryPlace], capacity_bytes: int) -> None:
        """Replace the file by one with only these entries (CatalogError)."""
        header = self._header(self._next_recording_id)
        frames = [slice(place.offset, place.offset + self._frame_length(place)) for place in places]
        length = len(header) + sum(frame.stop - frame.start for frame in frames)
        self._file.rewrite((header, *frames), max(length, capacity_bytes), shrink=True)

    def _header(self, next_recording_id: int) -> bytes:
        return layout.CATALOG_HEADER.pack(
            self.version, layout.CATALOG_HEADER_LENGTH, next_recording_id, self._alignment
        ).ljust(layout.CATALOG_HEADER_LENGTH, b"\0")
