"""Archive directories as users open them: `aerotape.open_directory`.

Adds reading of messages and statistics to the view that `aerotape.catalog.directory` gives of a
directory. This is the package's face for offline work, so what reads is loaded when it is called:
a command that only lists recordings starts without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aerotape.catalog.directory import StoredDirectory, StoredRecording
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.catalog.recovery.suspect_marks import SuspectNote
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from aerotape._native import ChecksumName
    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.replay.offline.payload_columns import Others
    from aerotape.replay.offline.read_mode import Mode
    from aerotape.replay.offline.reader import Message
    from aerotape.replay.statistics.model import Over, RecordingStatistics
    from aerotape.replay.statistics.plot import Panel
    from aerotape.times import TimeLike


class Recording(StoredRecording):
    """A recording of a directory as it was when the catalog was read.

    `descriptor` is a snapshot; `recorded_position` is determined at first use and then stays, so
    that a job sees one end throughout. Get a new `Recording` to see a live one grow.
    """

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

        Takes the arguments and raises the errors of `aerotape.replay.offline.reader.read_messages`.
        """
        from aerotape.replay.offline.reader import read_messages

        return read_messages(
            self, from_position, to_position, checksum, from_time=from_time, to_time=to_time
        )

    def to_batches(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        checksum: ChecksumName = "none",
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        columns: Sequence[str] | None = None,
        mode: Mode = "FAILFAST",
        schema: PayloadSchema | str | Path | None = None,
        template: str | int | None = None,
        others: Others = "drop",
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
    ) -> pyarrow.RecordBatchReader:
        """Return the messages as a stream of Arrow batches, of any length in constant memory.

        Takes the arguments and raises the errors of `aerotape.replay.offline.table.read_batches`.
        """
        from aerotape.replay.offline.table import read_batches

        return read_batches(
            self,
            from_position,
            to_position,
            checksum,
            from_time=from_time,
            to_time=to_time,
            columns=columns,
            mode=mode,
            schema=schema,
            template=template,
            others=others,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
        )

    def to_arrow(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        checksum: ChecksumName = "none",
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        columns: Sequence[str] | None = None,
        mode: Mode = "FAILFAST",
        schema: PayloadSchema | str | Path | None = None,
        template: str | int | None = None,
        others: Others = "drop",
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
    ) -> pyarrow.Table:
        """Read the messages into an Arrow table in memory; use `to_batches` for long recordings.

        Takes the arguments and raises the errors of `aerotape.replay.offline.table.read_batches`.
        """
        return self.to_batches(
            from_position,
            to_position,
            checksum,
            from_time=from_time,
            to_time=to_time,
            columns=columns,
            mode=mode,
            schema=schema,
            template=template,
            others=others,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
        ).read_all()

    def stats(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        over: Over = "position",
        bins: int = 100,
        progress: Callable[[int], object] | None = None,
    ) -> RecordingStatistics:
        """Count messages, their lengths, padding and gaps over positions or time.

        Takes the arguments and raises the errors of
        `aerotape.replay.statistics.compute.recording_statistics`.
        """
        from aerotape.replay.statistics.compute import recording_statistics

        return recording_statistics(
            self,
            from_position,
            to_position,
            from_time=from_time,
            to_time=to_time,
            over=over,
            bins=bins,
            progress=progress,
        )

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
            ax: axes to draw one panel into; a new figure with all panels when None.
            panel: the panel drawn into `ax`: "rate" or "lengths", "throughput" (over time only),
                or "distribution" of lengths.
            from_position: as for `stats`, and so are `to_position`, `from_time` and `to_time`.
            over: as for `stats`; when None time, if it is known, else position.
            bins: as for `stats`; when None 200, fewer if there are few messages.

        Returns:
            The axes drawn into; in a new figure those of the rate. Their attribute `figure` is
            the whole figure.

        Raises:
            ConfigurationError: an argument is not valid, or matplotlib is not installed.
            CatalogError, StorageError: as for `stats`.
        """
        from aerotape.replay.statistics import plot
        from aerotape.replay.statistics.compute import picture_statistics

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


class ArchiveDirectory(StoredDirectory[Recording]):
    """A directory that holds an archive. No file stays open: each call reads it again.

    Attributes:
        path: the directory.
    """

    def _recording(self, entry: CatalogEntry, notes: list[SuspectNote]) -> Recording:
        return Recording(self.path, entry, notes)


def open_directory(
    path: str | os.PathLike[str], storage: StorageOptions | Mapping[str, str] = NO_OPTIONS
) -> ArchiveDirectory:
    """Open an archive directory for reading; its archive may run.

    Args:
        path: a local directory, or the URL of a copy in remote storage: ``s3://bucket/prefix``,
            ``hdfs://host:port/path`` and others that pyarrow or fsspec support.
        storage: endpoint, credentials and other options of remote storage, by the names of the
            arguments of pyarrow's file system, or of fsspec's; options that are not given come
            from the environment. A local directory needs none.

    Raises:
        CatalogError: it holds no catalog that can be read.
        ConfigurationError: the URL is of an unsupported storage, or an option is not valid.
        StorageError: the storage cannot be reached, or refuses access.
    """
    directory = directory_at(path, storage)
    with directory.open_catalog():
        return directory


def directory_at(
    path: str | os.PathLike[str], storage: StorageOptions | Mapping[str, str] = NO_OPTIONS
) -> ArchiveDirectory:
    """As `open_directory`, but a missing catalog is reported when it is first read."""
    place = parse_location(path)
    if not isinstance(place, UrlPath):
        return ArchiveDirectory(place)
    from aerotape.replay.offline.remote_directory import RemoteArchiveDirectory

    if not isinstance(storage, StorageOptions):
        storage = StorageOptions.of(storage)
    return RemoteArchiveDirectory(place, storage)
