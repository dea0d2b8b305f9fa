"""Local copies of segment files in remote storage, for a pass that reads each file once.

Scans are fed with bytes (`remote_scan`). A statistics pass, which reads back and forth at damage,
uses copies of the files around its position instead: fetched before the pass reaches them, deleted
after it or when the process ends. They are in the directory for temporary files.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aerotape.context import Closing

if TYPE_CHECKING:
    from aerotape.catalog.directory import StoredRecording
    from aerotape.catalog.segment_files import SegmentFile


class SegmentCopies(Closing):
    """A directory with copies of some segment files of a recording.

    Attributes:
        folder: the directory; the copies have the names of the files.
    """

    def __init__(self, recording: StoredRecording) -> None:
        """Create an empty directory.

        Raises:
            CatalogError: the recording's descriptor is damaged.
        """
        self._recording = recording
        self._segments: Sequence[SegmentFile] = recording.segment_files()
        self._length = recording.descriptor.segment_file_length
        self._held: dict[int, ExitStack] = {}
        self._all = ExitStack()
        self.folder = Path(self._all.enter_context(TemporaryDirectory(prefix="aerotape-")))

    def hold(self, from_position: int, to_position: int) -> None:
        """Fetch the files of a range of positions and delete the others (StorageError)."""
        for segment in self._segments:
            base = segment.base_position
            is_wanted = base < to_position and from_position < base + self._length
            if is_wanted and base not in self._held:
                self._held[base] = self._fetch(segment)
            elif not is_wanted and base in self._held:
                self._held.pop(base).close()

    def _fetch(self, segment: SegmentFile) -> ExitStack:
        with ExitStack() as stack:
            [copy] = stack.enter_context(self._recording.local_copies([segment]))
            link = self.folder / segment.path.name
            link.symlink_to(copy.path)
            stack.callback(link.unlink)
            return stack.pop_all()

    def close(self) -> None:
        """Delete the directory."""
        for stack in self._held.values():
            stack.close()
        self._held.clear()
        self._all.close()
