"""What a time index needs of its recording, which knows its index and so is above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aerotape.catalog.descriptor import RecordingDescriptor
    from aerotape.catalog.file.entries import CatalogEntry
    from aerotape.catalog.segment_files import SegmentFile


class IndexedRecording(Protocol):
    """A recording: `aerotape.catalog.directory.StoredRecording`, which describes all of this."""

    @property
    def archive_dir(self) -> Path: ...
    @property
    def recording_id(self) -> int: ...
    @property
    def entry(self) -> CatalogEntry: ...
    @property
    def descriptor(self) -> RecordingDescriptor: ...
    @property
    def start_position(self) -> int: ...
    @property
    def recorded_position(self) -> int: ...
    def check(self) -> None: ...
    def segment_files(self) -> list[SegmentFile]: ...
    def time_index_parts(self) -> Iterator[bytes]: ...
