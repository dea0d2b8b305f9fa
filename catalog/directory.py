"""An archive directory read from outside: no daemon needed, none disturbed."""

from __future__ import annotations

import importlib
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypeVar, cast

from aerotape.catalog import suspect
from aerotape.catalog.catalog import Catalog
from aerotape.catalog.descriptor import RecordingDescriptor, max_position
from aerotape.catalog.entries import CatalogEntry, entry_damage, unknown_recording
from aerotape.catalog.layout import CATALOG_FILE_NAME, RecordingState
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.mark_file import MarkFile, MarkFileInfo
from aerotape.catalog.segments import (
    SegmentFile,
    list_segment_files,
    open_regular_file,
    segment_base_position,
    segment_file_name,
)
from aerotape.catalog.stop_position import (
    PAGE_LENGTH,
    SECTOR_LENGTH,
    RecordingEnd,
    find_recording_end,
    own_segments,
)
from aerotape.catalog.suspect import SuspectNote
from aerotape.errors import CatalogError, MarkFileError, StorageError
from aerotape.records import record
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from aerotape._native import ChecksumName
    from aerotape.catalog.time_index import TimeIndex
    from aerotape.replay.plot import Panel
    from aerotape.replay.reader import Message
    from aerotape.replay.statistics import Over, RecordingStatistics
    from aerotape.times import TimeLike

# A file that has not been written to for so long is not in the middle of a write.
_SETTLED_AFTER_NS = 1_000_000_000
_SETTLING_ROUND_S = 0.05
_SETTLING_ROUNDS = 25

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Deferred:
    """A function that is loaded when it is called, or asked for its signature."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    @property
    def __wrapped__(self) -> Any:  # where `inspect.signature` looks
        return getattr(importlib.import_module(self._module), self._name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)


class _Borrowing:
    """A method that takes the arguments of a function; made when it is first looked for."""

    def __init__(self, method: Callable[..., Any], function: Callable[..., Any]) -> None:
        self._method = method
        self._function = function

    def __get__(self, recording: Recording | None, kind: type[Recording]) -> Any:
        from inspect import signature

        method = self._method
        first, *_ = signature(method).parameters.values()
        _, *others = signature(self._function).parameters.values()
        own = signature(method).replace(parameters=[first, *others])
        method.__signature__ = own  # type: ignore[attr-defined]
        setattr(Recording, method.__name__, method)
        return getattr(recording or kind, method.__name__)


def _takes_arguments_of(
    function: Callable[Concatenate[Recording, _P], Any],
) -> Callable[[Callable[..., _R]], Callable[Concatenate[Recording, _P], _R]]:
    """Give a method the signature of a function of a recording, for type checkers and help()."""

    def decorate(method: Callable[..., _R]) -> Callable[Concatenate[Recording, _P], _R]:
        made: Any = _Borrowing(method, function)
        return cast("Callable[Concatenate[Recording, _P], _R]", made)

    return decorate


if TYPE_CHECKING:
    from aerotape.replay.counting import picture_statistics, recording_statistics
    from aerotape.replay.table import read_batches
else:
    picture_statistics = _Deferred("aerotape.replay.counting", "picture_statistics")
    recording_statistics = _Deferred("aerotape.replay.counting", "recording_statistics")
    read_batches = _Deferred("aerotape.replay.table", "read_batches")


class Recording:
    """One recording of a directory, as it was when looked at.

    `descriptor` is a snapshot; `recorded_position` is found at first use and then stays, so that
    a job sees one end throughout. Get a fresh `Recording` to see a live one grow.
    """

    def __init__(self, archive_dir: Path, entry: CatalogEntry, notes: list[SuspectNote]) -> None:
        self._archive_dir = archive_dir
        self._entry = entry
        self._notes = notes

    @property
    def archive_dir(self) -> Path:
        """The directory."""
        return self._archive_dir

    @property
    def storage(self) -> StorageOptions:
        """How to reach the directory, for one in a storage elsewhere."""
        return NO_OPTIONS

    @property
    def recording_id(self) -> int:
        """Id of the recording; -1 when damage to the catalog leaves open which it is."""
        return self._entry.recording_id

    @property
    def descriptor(self) -> RecordingDescriptor:
        """Its descriptor."""
        return self._entry.descriptor

    @property
    def entry(self) -> CatalogEntry:
        """Its entry in the catalog file."""
        return self._entry

    @property
    def damage(self) -> str:
        """Why it cannot be read: its entry in the catalog is damaged. "" when it is not."""
        return entry_damage(self._entry)

    def check(self) -> None:
        """Raise CatalogError when the recording is damaged."""
        if self.damage:
            name = f"recording {self.recording_id}" if self.recording_id >= 0 else "a recording"
            raise CatalogError(
                f"{name} has a damaged descriptor at offset {self._entry.offset} of the catalog: "
                f"{self.damage}",
                self._archive_dir / CATALOG_FILE_NAME,
            )

    @property
    def start_position(self) -> int:
        """Position of the first byte."""
        return self._entry.descriptor.start_position

    @cached_property
    def recorded_position(self) -> int:
        """The stop position; for a recording without one, the end of its last whole frame.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        self.check()
        descriptor = self._entry.descriptor
        if not descriptor.is_active:
            return descriptor.stop_position
        for left in reversed(range(_SETTLING_ROUNDS)):
            segments = self.segment_files()
            # A writer may be in the middle of a write: then only what is seen in full, sector by
            # sector, counts, until the file has been left alone for long enough.
            settled = not left or not segments or _is_settled(segments)
            unit = PAGE_LENGTH if settled else SECTOR_LENGTH
            end = find_recording_end(descriptor, segments, write_unit_bytes=unit)
            if settled or not end.torn:
                break
            time.sleep(_SETTLING_ROUND_S)
        return end.position

    @cached_property
    def time_index(self) -> TimeIndex:
        """When what was recorded, as far as is known (errors as `recorded_position`)."""
        from aerotape.catalog.time_index import TimeIndex

        return TimeIndex.of(self)

    def recorded_after(self, position: int) -> int:
        """Return how far it is recorded, as `recorded_position` does, but quickly and as of now.

        For who follows a live recording: only what stands behind `position` is looked at, and a
        write that is going on is not waited for; its last frame is left for the next time.

        Args:
            position: begin of a frame, or the end of the last one so far. Never less is returned
                while the recording has no stop position.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        self.check()
        descriptor = self._entry.descriptor
        if not descriptor.is_active:
            return descriptor.stop_position
        segments = self._last_segments(position)
        if not segments:
            return position
        unit = PAGE_LENGTH if _is_settled(segments) else SECTOR_LENGTH
        end = find_recording_end(
            descriptor, segments, write_unit_bytes=unit, from_position=position
        )
        return max(end.position, position)

    def _last_segments(self, position: int) -> list[SegmentFile]:
        """Return the last segment files, two at most, that follow `position` without a gap.

        To ask for names is faster than to list a directory of very many files.
        """
        descriptor = self._entry.descriptor
        length = descriptor.segment_file_length
        first = segment_base_position(
            descriptor.start_position, position, descriptor.term_buffer_length, length
        )

        def segment(index: int) -> SegmentFile:
            base = first + index * length
            return SegmentFile(self._archive_dir / segment_file_name(self.recording_id, base), base)

        possible = range((max_position(descriptor) - first) // length)
        count = bisect_left(possible, True, key=lambda index: not segment(index).path.exists())
        return [segment(index) for index in range(max(count - 2, 0), count)]

    @property
    def is_being_written(self) -> bool:
        """Whether it has no stop position and an archive gives signs of life in the directory."""
        if not self._entry.descriptor.is_active:
            return False
        try:
            return MarkFile.read(self._archive_dir).is_active()
        except MarkFileError:
            return False

    @property
    def suspect_notes(self) -> list[SuspectNote]:
        """Why the recording is marked as suspect; empty when it is not."""
        return list(self._notes)

    def segment_files(self) -> list[SegmentFile]:
        """List the segment files there are of this recording, ascending.

        Those that were detached (before the start position) or that cannot be this recording's
        are left out. CatalogError when the descriptor is damaged.
        """
        self.check()
        return own_segments(
            self._entry.descriptor, list_segment_files(self._archive_dir, self.recording_id)
        )

    def find_end(self, checksum: ChecksumName = "none") -> RecordingEnd:
        """Find the end of a recording without a stop position, and what stands behind it.

        Raises:
            CatalogError: the descriptor is damaged.
            StorageError: a segment file cannot be read.
        """
        return find_recording_end(self.descriptor, self.segment_files(), checksum)

    def open_segment(self, base_position: int) -> BinaryIO:
        """Open the segment file that begins there (FileNotFoundError, StorageError)."""
        path = self._archive_dir / segment_file_name(self.recording_id, base_position)
        return open_regular_file(path)

    def read_segment(self, base_position: int, offset: int, length: int) -> bytes:
        """Read a little of the segment file that begins there; less at its end.

        Raises:
            FileNotFoundError: there is no such file.
            StorageError: it cannot be read.
        """
        try:
            with self.open_segment(base_position) as segment:
                return os.pread(segment.fileno(), length, offset)
        except FileNotFoundError:
            raise
        except OSError as error:
            path = self._archive_dir / segment_file_name(self.recording_id, base_position)
            raise StorageError(f"cannot read {path}: {error.strerror}", path) from error

    def read_time_index(self) -> bytes | None:
        """Read the file of its time index, None when there is none (StorageError)."""
        from aerotape.catalog.time_index_file import read_time_index_bytes, time_index_path

        return read_time_index_bytes(time_index_path(self._archive_dir, self.recording_id))

    @contextmanager
    def local_copies(self, segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
        """Give segment files that native code can open: these, or copies while it lasts."""
        yield list(segments)

    def messages(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        checksum: ChecksumName = "none",
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
    ) -> Iterator[Message]:
        """Iterate the messages of a range of positions, and of times if given.

        Takes the arguments and raises the errors of `aerotape.replay.reader.read_messages`.
        """
        from aerotape.replay.reader import read_messages

        return read_messages(
            self, from_position, to_position, checksum, from_time=from_time, to_time=to_time
        )

    @_takes_arguments_of(read_batches)
    def to_batches(self, *arguments: Any, **named: Any) -> pyarrow.RecordBatchReader:
        """Return the messages as a stream of Arrow batches, of any length in constant memory.

        Takes the arguments and raises the errors of `aerotape.replay.table.read_batches`.
        """
        return read_batches(self, *arguments, **named)

    @_takes_arguments_of(read_batches)
    def to_arrow(self, *arguments: Any, **named: Any) -> pyarrow.Table:
        """Read the messages into an Arrow table in memory; see `to_batches` for longer ones.

        Takes the arguments and raises the errors of `aerotape.replay.table.read_batches`.
        """
        return read_batches(self, *arguments, **named).read_all()

    @_takes_arguments_of(recording_statistics)
    def stats(self, *arguments: Any, **named: Any) -> RecordingStatistics:
        """Count messages, their lengths, padding and gaps over positions or time.

        Takes the arguments and raises the errors of
        `aerotape.replay.counting.recording_statistics`.
        """
        return recording_statistics(self, *arguments, **named)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        panel: Panel = "rate",
        from_position: int | None = None,
        to_position: int | None = None,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        over: Over | None = None,
        bins: int | None = None,
    ) -> Axes:
        """Draw rate and message lengths; needs matplotlib (the extra ``plot``).

        Args:
            ax: axes to draw one panel into; a new figure with all of them when None.
            panel: which one: "rate" or "lengths", "throughput" (over time only), or
                "distribution" of lengths.
            from_position: as for `stats`, and so are `to_position`, `from_time` and `to_time`.
            over: as for `stats`; when None time, if it is known, else position.
            bins: as for `stats`; when None 200, fewer where there are few messages.

        Returns:
            The axes drawn into, of the rate in a new figure. Their attribute `figure` is it all.

        Raises:
            ConfigurationError: an argument cannot be, or matplotlib is not installed.
            CatalogError, StorageError: as for `stats`.
        """
        from aerotape.replay import plot

        statistics = picture_statistics(
            self,
            from_position,
            to_position,
            from_time=from_time,
            to_time=to_time,
            over=over,
            bins=bins,
        )
        if ax is not None:
            return plot.draw_panel(statistics, ax, panel)
        return plot.draw(statistics, plot.interactive_figure())

    def __repr__(self) -> str:
        return f"Recording({self._entry.descriptor!r})"


@record(frozen=True)
class ArchiveDirectory:
    """A directory that holds an archive. Nothing is kept open: each call looks afresh.

    Attributes:
        path: the directory.
    """

    path: Path

    def recordings(self) -> list[Recording]:
        """Return the valid recordings, by ascending id; see `Recording.damage` (CatalogError)."""
        return self.recordings_of(
            [entry for entry in self.entries() if entry.state == RecordingState.VALID]
        )

    def recordings_of(self, entries: Iterable[CatalogEntry]) -> list[Recording]:
        """Return the recordings of entries of the catalog, whatever their state (StorageError)."""
        marks = self.suspect_notes()
        return [Recording(self.path, entry, marks.get(entry.recording_id, [])) for entry in entries]

    def recording(self, recording_id: int) -> Recording:
        """Return one valid recording.

        Raises:
            UnknownRecordingError: there is none with this id.
            CatalogError: the catalog cannot be read.
        """
        for recording in self.recordings():
            if recording.recording_id == recording_id:
                return recording
        raise unknown_recording(recording_id, self.entries(), self.path)

    def entries(self) -> Iterator[CatalogEntry]:
        """Iterate all entries of the catalog, those that are no longer valid too."""
        with self.open_catalog() as catalog:
            yield from catalog.entries()

    def open_catalog(self) -> Catalog:
        """Open the catalog for reading (CatalogError)."""
        return Catalog.open(self.path, read_only=True)

    def suspect_notes(self) -> dict[int, list[SuspectNote]]:
        """Return why recordings are marked as suspect, by id, those that are (StorageError)."""
        return suspect.read_marks(self.path)

    def mark_file(self) -> MarkFileInfo:
        """Read the mark file (MarkFileError)."""
        return MarkFile.read(self.path)


def open_directory(
    path: str | os.PathLike[str], storage: StorageOptions | Mapping[str, str] = NO_OPTIONS
) -> ArchiveDirectory:
    """Open an archive directory for reading; its archive may run.

    Args:
        path: a folder of this machine, or the URL of a copy elsewhere: ``s3://bucket/prefix``,
            ``hdfs://host:port/path`` and others that pyarrow or fsspec know.
        storage: how to reach that (endpoint, credentials), by names of the arguments of pyarrow's
            file system, or of fsspec's; what is not given comes from the environment. A folder of
            this machine needs none.

    Raises:
        CatalogError: it holds no catalog that can be read.
        ConfigurationError: there is no way to such a URL, or an option cannot be.
        StorageError: the storage cannot be reached, or refuses.
    """
    directory = directory_at(path, storage)
    with directory.open_catalog():
        return directory


def directory_at(
    path: str | os.PathLike[str], storage: StorageOptions | Mapping[str, str] = NO_OPTIONS
) -> ArchiveDirectory:
    """As `open_directory`, but whether there is a catalog shows when it is opened."""
    place = parse_location(path)
    if not isinstance(place, UrlPath):
        return ArchiveDirectory(place)
    from aerotape.catalog.remote_directory import RemoteDirectory

    if not isinstance(storage, StorageOptions):
        storage = StorageOptions.of(storage)
    return RemoteDirectory(place, storage)


def _is_settled(segments: Sequence[SegmentFile]) -> bool:
    """Whether the last of the files has not been written to for a while."""
    path = segments[-1].path
    try:
        return time.time_ns() - path.stat().st_mtime_ns > _SETTLED_AFTER_NS
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", path) from error
