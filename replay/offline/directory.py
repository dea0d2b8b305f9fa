"""Archive directories as users open them: `aerotape.open_directory`.

Adds reading of messages and statistics to the view that `aerotape.catalog.directory` gives of a
directory. This is the package's face for offline work, so what reads is loaded when it is called:
a command that only lists recordings starts without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from html import escape
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from aerotape.catalog.directory import StoredDirectory, StoredRecording
from aerotape.catalog.file.entries import CatalogEntry
from aerotape.catalog.location import NO_OPTIONS, StorageOptions, parse_location
from aerotape.qualified_id import QualifiedId
from aerotape.url_path import UrlPath

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from aerotape.codecs.payload_plan import EnumColumns, SetColumns, Types
    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.frame_header import ChecksumName
    from aerotape.message import Message
    from aerotape.replay.offline.read_mode import Mode
    from aerotape.replay.offline.reader import RecordingRange
    from aerotape.replay.offline.scope import ArchiveScope
    from aerotape.replay.offline.selection import Others
    from aerotape.replay.statistics.model import Over, RecordingStatistics
    from aerotape.replay.statistics.plot import Panel
    from aerotape.times import TimeLike


_P = ParamSpec("_P")


def _read_all(to_batches: Callable[_P, pyarrow.RecordBatchReader]) -> Callable[_P, pyarrow.Table]:
    """Return `Recording.to_arrow`, with the parameters of `to_batches`."""

    @wraps(to_batches)
    def to_arrow(*args: _P.args, **kwargs: _P.kwargs) -> pyarrow.Table:
        return to_batches(*args, **kwargs).read_all()

    to_arrow.__name__ = to_arrow.__qualname__ = "to_arrow"
    to_arrow.__annotations__ = {**to_batches.__annotations__, "return": "pyarrow.Table"}
    to_arrow.__signature__ = signature(to_batches).replace(  # type: ignore[attr-defined]
        return_annotation="pyarrow.Table"
    )
    to_arrow.__doc__ = """Read the messages into an Arrow table in memory.

    >>> recording.to_arrow(columns=["position", "length"]).to_pydict()
    {'position': [0, 64, 128], 'length': [5, 6, 5]}

    Takes the arguments and raises the errors of `to_batches`, which suits long recordings.
    """
    return to_arrow


class Recording(StoredRecording):
    """A recording of a directory as it was when the catalog was read.

    >>> recording = aerotape.open_directory("recordings").recording(0)
    >>> recording
    <Recording 0 'aeron:ipc' stream_id=1001 session_id=... positions=0..192>
    >>> recording.stop_time - recording.start_time
    datetime.timedelta(...)

    `descriptor` is a snapshot; `recorded_position` is determined at first use and then stays, so
    that a job sees one end throughout. Get a new `Recording` to see a live one grow.
    """

    def _repr_html_(self) -> str:
        """Return a table of what the catalog has of it, as notebooks show it."""
        of = self.descriptor
        rows = {
            "recording id": self.recording_id,
            "channel": of.original_channel,
            "stream id": of.stream_id,
            "session id": of.session_id,
            "source": of.source_identity,
            "started": of.start_time,
            "stopped": "live" if of.is_active else of.stop_time,
            "positions": f"{of.start_position} to {'…' if of.is_active else of.stop_position}",
        }
        cells = (
            f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>" for name, value in rows.items()
        )
        return f"<table>{''.join(cells)}</table>"

    @property
    def qualified_id(self) -> QualifiedId:
        """Its id in any store: the id of its archive, the scope, and the recording id."""
        scope_id = self.imported_from
        if scope_id is None:
            scope_id = directory_at(self.archive_dir, self.storage).own_scope_id()
        return QualifiedId(scope_id, self.recording_id)

    def messages(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        checksum: ChecksumName = "none",
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        from_index: int | None = None,
        from_asqn: int | None = None,
        last: int | None = None,
        first: int | None = None,
    ) -> Iterator[Message]:
        """Iterate the messages that begin in a range of positions, and of times if given.

        >>> for message in recording.messages(from_position=64):
        ...     print(message.position, message.payload)
        64 b'second'
        128 b'third'

        Needs no pyarrow. Memory does not grow with the recording. Of a live recording, the
        iteration ends at `recorded_position`.

        Args:
            from_position: first position; the recording's start position when None.
            to_position: position after the last one; the recorded position when None.
            checksum: verify each frame against the checksum that `aeron.archive.record.checksum`
                wrote: "crc-32" or "crc-32c"; "none" verifies nothing.
            from_time: messages that were certainly recorded before are left out. See
                `aerotape.times` for the formats of times, and
                `aerotape.catalog.time_index.index` for the accuracy of times of messages.
            to_time: messages that were certainly recorded then or later are left out.
            from_index: in a recording of a raft journal, the index of the first record.
            from_asqn: in a recording of a raft journal, begin at the record with the highest asqn
                up to this one (`aerotape.replay.offline.seek`).
            last: only the newest messages of these, so many. They are found from the end backwards
                (`aerotape.replay.offline.newest`).
            first: only the first messages of these, so many.

        Raises:
            ConfigurationError: an argument is not valid, or two exclude each other.
            CodecError: to find an index or asqn, and a message is not a record of a raft journal.
            SegmentError: a segment file is missing, too short, damaged or fails its checksum; the
                error names recording, file, offset and position. Messages before it are yielded
                first.
        """
        from aerotape.replay.offline.reader import selected_messages
        from aerotape.replay.offline.selection import Selection

        selection = Selection(
            from_position=from_position,
            to_position=to_position,
            checksum=checksum,
            from_time=from_time,
            to_time=to_time,
            from_index=from_index,
            from_asqn=from_asqn,
            last=last,
            first=first,
        )
        return selected_messages(self, selection)

    def to_batches(
        self,
        from_position: int | None = None,
        to_position: int | None = None,
        checksum: ChecksumName = "none",
        *,
        from_time: TimeLike | None = None,
        to_time: TimeLike | None = None,
        from_index: int | None = None,
        from_asqn: int | None = None,
        last: int | None = None,
        first: int | None = None,
        columns: Sequence[str] | None = None,
        mode: Mode = "FAILFAST",
        schema: PayloadSchema | str | Path | None = None,
        template: str | int | None = None,
        others: Others = "drop",
        types: Types = "semantic",
        enums: EnumColumns = "name",
        sets: SetColumns = "struct",
        timestamps: Mapping[str, str] | None = None,
        text_encoding: str | None = None,
        payload: str | None = None,
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
    ) -> pyarrow.RecordBatchReader:
        """Return the messages as a stream of Arrow record batches; needs pyarrow.

        >>> for batch in recording.to_batches(columns=["position", "payload"]):
        ...     print(batch.num_rows, batch.schema.names)
        3 ['position', 'payload']

        The stream can be read once; memory does not grow with the recording. It has Arrow's stream
        interface, which DuckDB, Polars, pandas and others accept.

        Args:
            from_position: as for `messages`, and so are `to_position`, `checksum`, `from_time`,
                `to_time`, `from_index`, `from_asqn`, `last` and `first`, which count messages of
                other templates too.
            columns: names of `aerotape.replay.offline.reader.COLUMNS` and of typed columns, in
                output order. When None all, but `_corrupt` only in mode PERMISSIVE and `payload`
                only without a schema. Other columns are not built. `scope_id`, `qualified_name`
                and `recorded_time` are further columns (`aerotape.replay.offline.columns.added`).
            mode: treatment of messages with a frame that fails its checksum, and of payloads that
                do not match the schema (`aerotape.replay.offline.read_mode.Mode`).
            schema: an SBE schema whose fields become columns: path or URL of the file, XML or
                `.sbeir`, or a schema that was read already
                (`aerotape.codecs.payloads.PayloadSchema`).
            template: name or id of the message whose fields these are. When None each message of
                the schema is a struct column, and the column `template` has its name.
            others: messages of other templates and schemas are left out ("drop"), or are rows
                whose typed columns are null ("null").
            types: columns of decimals, timestamps and dates are that ("semantic"), or the numbers
                that they are in the payload ("wire").
            enums: columns of enums are names ("name") or numbers ("number").
            sets: columns of sets are structs of booleans ("struct") or numbers ("number").
            timestamps: names of integer fields that are timestamps although the schema does not
                say so, each with its unit: ``{"SendingTimeEpoch": "ns"}``, or s, ms, us.
            text_encoding: ``utf-8``, ``iso-8859-1`` or ``bytes``: that of texts for which the
                schema has none, or US-ASCII.
            payload: "raft-journal" for the columns of a raft journal's records, instead of a schema
                (`aerotape.replay.offline.columns.raft`).
            batch_rows: maximum number of messages in a batch.
            batch_bytes: bytes of payload after which a batch ends.

        Raises:
            ConfigurationError: an argument is not valid, or pyarrow is not installed.
            CodecError: the file is not an SBE schema, or has no such template; while batches are
                taken, in mode FAILFAST: a payload does not match it.
            SegmentError: as for `messages`.
        """
        from aerotape.replay.offline.selection import Selection
        from aerotape.replay.offline.table import read_batches

        selection = Selection(
            from_position=from_position,
            to_position=to_position,
            checksum=checksum,
            from_time=from_time,
            to_time=to_time,
            from_index=from_index,
            from_asqn=from_asqn,
            last=last,
            first=first,
            columns=columns,
            mode=mode,
            schema=schema,
            template=template,
            others=others,
            types=types,
            enums=enums,
            sets=sets,
            timestamps=timestamps,
            text_encoding=text_encoding,
            payload=payload,
        )
        return read_batches(self, selection, batch_rows=batch_rows, batch_bytes=batch_bytes)

    to_arrow = _read_all(to_batches)

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

        >>> stats = recording.stats()
        >>> stats.messages
        3

        Args:
            from_position: as for `messages`, and so are `to_position`, `from_time` and `to_time`.
            over: the dimension to divide into equal parts: "position", or "time" if the recording
                has a time index.
            bins: number of parts, 0 to 100000; fewer over position if they would be shorter than
                the smallest frame.
            progress: called repeatedly with the number of bytes processed.

        Raises:
            ConfigurationError: an argument is not valid, or `over` is time and the times are
                unknown.
            CatalogError: the recording's descriptor is damaged.
            StorageError: a file of a recording without a stop position, or in remote storage,
                cannot be read.
        """
        from aerotape.replay.statistics.compute import recording_statistics

        part = self._range(from_position, to_position, from_time, to_time)
        return recording_statistics(self, part, over, bins, progress)

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

        part = self._range(from_position, to_position, from_time, to_time)
        statistics = picture_statistics(self, part, over, bins)
        if ax is not None:
            return plot.draw_panel(statistics, ax, panel)
        return plot.draw(statistics, plot.interactive_figure())

    def _range(
        self,
        from_position: int | None,
        to_position: int | None,
        from_time: TimeLike | None,
        to_time: TimeLike | None,
    ) -> RecordingRange:
        from aerotape.replay.offline.reader import recording_range
        from aerotape.replay.offline.selection import Selection

        selection = Selection(
            from_position=from_position,
            to_position=to_position,
            from_time=from_time,
            to_time=to_time,
        )
        return recording_range(self, selection)


class ArchiveDirectory(StoredDirectory[Recording]):
    """A directory that holds an archive. No file stays open: each call reads it again.

    >>> directory = aerotape.open_directory("recordings")
    >>> for recording in directory.recordings():
    ...     print(recording.recording_id)
    0

    Attributes:
        path: the directory.
    """

    def _recording(self, entry: CatalogEntry) -> Recording:
        return Recording(self.path, entry)

    def scopes(self) -> list[int]:
        """Return the scopes with recordings, ascending and unsigned, and always its own.

        Raises:
            StorageError: a directory cannot be read.
        """
        return sorted({self.own_scope_id(), *(each.scope_id for each in self.imported_ids())})

    def recordings_of_scopes(self, scope_ids: Collection[int] | None) -> list[Recording]:
        """Return the valid recordings of some scopes, by ascending scope and id.

        Args:
            scope_ids: as for `scope`; empty: all scopes, None: the archive's own recordings.

        Raises:
            CatalogError: a catalog cannot be read.
            StorageError: a directory cannot be read.
        """
        if scope_ids is None:
            return self.recordings()
        scopes = [self.scope(each) for each in (scope_ids or self.scopes())]
        by_id = {scope.scope_id: scope for scope in scopes}
        return [each for id in sorted(by_id) for each in by_id[id].recordings()]

    def scope(self, scope_id: int = 0) -> ArchiveScope:
        """Return the recordings of one scope.

        Args:
            scope_id: unsigned, or in two's complement; 0 or the archive's id for its own ones.

        Raises:
            ConfigurationError: the scope id does not fit in 64 bits.
        """
        from aerotape.replay.offline.scope import ArchiveScope

        return ArchiveScope(self, scope_id, self._storage)

    @property
    def _storage(self) -> StorageOptions:
        return NO_OPTIONS


def open_directory(
    path: str | os.PathLike[str], storage: StorageOptions | Mapping[str, str] = NO_OPTIONS
) -> ArchiveDirectory:
    """Open an archive directory for reading; its archive may run.

    >>> for recording in aerotape.open_directory("recordings").recordings():
    ...     print(recording.recording_id, recording.recorded_position)
    0 192

    Args:
        path: a local directory, or the URL of a copy in remote storage: ``s3://bucket/prefix``,
            ``hdfs://host:port/path`` and others that obstore or fsspec support.
        storage: endpoint, credentials and other options of remote storage, by the names that
            obstore and delta-rs know, or the arguments of fsspec's file system; options that are
            not given come from the environment. A local directory needs none.

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
