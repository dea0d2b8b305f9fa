"""Recordings as a Polars LazyFrame: `aerotape.scan_polars(archive_dir)`.

Polars passes on which columns, rows and number of rows a query needs. Columns that it does not need
are not built. Comparisons of `recording_id`, `position` and `recorded_time` with constants that all
must hold decide what is read at all; the whole predicate is then applied to the rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aerotape.catalog.location import StorageOptions
from aerotape.errors import ConfigurationError
from aerotape.formatting import not_installed
from aerotape.replay.offline.choosing import choose_recordings, without_damaged
from aerotape.replay.offline.columns.added import schema_with
from aerotape.replay.offline.columns.names import RECORDED_TIME, added_names
from aerotape.replay.offline.columns.times import recorded_between
from aerotape.replay.offline.columns.typed import typed_columns
from aerotape.replay.offline.directory import open_directory
from aerotape.replay.offline.reader import recording_range
from aerotape.replay.offline.scan_ahead import scans
from aerotape.replay.offline.selection import Selection
from aerotape.replay.offline.table import TableReader, table_schema
from aerotape.times import TimeLike
from aerotape.units import MAX_LONG

if TYPE_CHECKING:
    import polars

    from aerotape.codecs.payload_plan import EnumColumns, SetColumns, Types
    from aerotape.codecs.payloads import PayloadSchema
    from aerotape.frame_header import ChecksumName
    from aerotape.replay.offline.read_mode import Mode
    from aerotape.replay.offline.selection import Others

_HIGHEST: Final = MAX_LONG
_PUSHED: Final = ("recording_id", "position", RECORDED_TIME)
_ALL: Final = (0, _HIGHEST)
_MIRRORED: Final = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}


def scan_polars(
    archive_dir: str | os.PathLike[str],
    *,
    recording_ids: Collection[int] | None = None,
    channel: str | None = None,
    alias: str | None = None,
    stream_id: int | None = None,
    session_id: int | None = None,
    live: bool | None = None,
    from_position: int | None = None,
    to_position: int | None = None,
    from_time: TimeLike | None = None,
    to_time: TimeLike | None = None,
    from_index: int | None = None,
    from_asqn: int | None = None,
    last: int | None = None,
    first: int | None = None,
    checksum: ChecksumName = "none",
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
    storage: Mapping[str, str] | None = None,
    scope_ids: Collection[int] | None = None,
) -> polars.LazyFrame:
    """Return the messages of the recordings of an archive directory as a LazyFrame.

    >>> frame = aerotape.scan_polars("recordings").select("position", "length").collect()
    >>> frame.rows()
    [(0, 5), (64, 6), (128, 5)]

    Filters on `recording_id`, `position` and `recorded_time` should be used rather than filters on
    other columns: only these save reading. Damaged recordings are left out with a warning, unless
    they are among `recording_ids`.

    Args:
        archive_dir: path or URL of the directory.
        recording_ids: only these recordings, each of which must exist.
        channel: only recordings whose original channel contains this.
        alias: only recordings whose original channel has this parameter `alias`.
        stream_id: only recordings of this stream.
        session_id: only recordings of this session.
        live: only recordings in progress (True), or only stopped ones (False).
        from_position: as for `Recording.to_arrow`, of each recording; and so are all arguments from
            here to `payload`.
        to_position: see `from_position`.
        from_time: leave out messages that were certainly recorded before this time.
        to_time: leave out messages that were certainly recorded then or later.
        from_index: see `from_position`.
        from_asqn: see `from_position`.
        last: of each recording only the newest messages, so many; a filter applies to these.
        first: of each recording only the first messages, so many; a filter applies to these.
        checksum: the checksum by which frames are verified.
        mode: treatment of damaged frames and malformed payloads.
        schema: an SBE schema whose fields become columns, as for `Recording.to_arrow`.
        template: name or id of the message whose fields these are.
        others: treatment of messages of other templates.
        types: see `from_position`.
        enums: see `from_position`.
        sets: see `from_position`.
        timestamps: see `from_position`.
        text_encoding: see `from_position`.
        payload: "raft-journal" for the columns of a raft journal's records.
        storage: options of remote storage.
        scope_ids: read the recordings of these scopes, all scopes if empty, with the further
            columns `scope_id` and `qualified_name`. None: the archive's own recordings.

    Raises:
        ConfigurationError: an argument is not valid, or Polars or pyarrow is not installed.
        CatalogError: the directory cannot be read.
        SegmentError: while a query runs, as for `Recording.to_arrow`.
    """
    try:
        import polars
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise ConfigurationError(not_installed("polars", "polars")) from error
    options = StorageOptions.of(storage or {})
    directory = open_directory(archive_dir, options)
    selection = Selection(
        recording_ids=None if recording_ids is None else tuple(recording_ids),
        scope_ids=None if scope_ids is None else tuple(scope_ids),
        channel=channel,
        alias=alias,
        stream_id=stream_id,
        session_id=session_id,
        live=live,
        from_position=from_position,
        to_position=to_position,
        from_time=from_time,
        to_time=to_time,
        from_index=from_index,
        from_asqn=from_asqn,
        last=last,
        first=first,
        checksum=checksum,
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
    payloads = typed_columns(selection, options)

    def read(
        with_columns: list[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[polars.DataFrame]:
        needed = list(names if with_columns is None else with_columns)
        if predicate is not None:
            needed += [name for name in predicate.meta.root_names() if name not in needed]
        # The first rows are those before the predicate.
        bounds = bounds_of(predicate if n_rows is None else None)
        low, high = bounds["recording_id"]
        begin, end = bounds["position"]
        ranges = []
        for recording in without_damaged(choose_recordings(directory, selection), selection):
            if low <= recording.recording_id <= high:
                whole = recording_range(recording, selection)
                part = whole.part(max(whole.from_position, begin), min(whole.to_position, end + 1))
                if bounds[RECORDED_TIME] != _ALL and RECORDED_TIME in added:
                    part = recorded_between(recording, part, *bounds[RECORDED_TIME])
                ranges.append(part)
        left = n_rows
        reader = TableReader(replace(selection, columns=needed), payloads)
        for _, scanned in scans(reader, [part for part in ranges if part.length > 0]):
            for batch in scanned()[1]:
                frame = polars.DataFrame(polars.from_arrow(batch))
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                if predicate is not None:
                    frame = frame.filter(predicate)
                yield frame.select(needed if with_columns is None else with_columns)
                if left == 0:
                    return

    added = [
        name for name in added_names(payloads) if name == RECORDED_TIME or scope_ids is not None
    ]
    columns = schema_with(table_schema(selection.mode, payloads), added)
    names = columns.names
    empty = polars.DataFrame(polars.from_arrow(columns.empty_table()))
    return register_io_source(read, schema=empty.schema)


def bounds_of(predicate: polars.Expr | None) -> dict[str, tuple[int, int]]:
    """Return the lowest and highest value of each column that a predicate may let pass.

    Recorded times are in microseconds.
    """
    bounds = dict.fromkeys(_PUSHED, _ALL)
    if predicate is not None:
        try:
            tree = json.loads(predicate.meta.serialize(format="json"))
        except Exception:  # a predicate that Polars cannot serialize narrows nothing
            return bounds
        for column, low, high in _intervals(tree):
            lowest, highest = bounds[column]
            bounds[column] = (max(lowest, low), min(highest, high))
    return bounds


def _intervals(tree: Any) -> Iterator[tuple[str, int, int]]:
    """Yield columns with the lowest and highest value of comparisons that must all hold.

    An interval may be larger than what a comparison lets pass.
    """
    kind, node = next(iter(tree.items())) if isinstance(tree, dict) else ("", {})
    if kind == "BinaryExpr" and node["op"] == "And":
        yield from _intervals(node["left"])
        yield from _intervals(node["right"])
    elif kind == "BinaryExpr":
        left, right, operator = node["left"], node["right"], node["op"]
        if _column(right):
            left, right, operator = right, left, _MIRRORED.get(operator)
        column = _column(left)
        value = _number(right, column)
        if value is not None and operator in _MIRRORED:
            low = 0 if operator in ("Lt", "LtEq") else value
            high = _HIGHEST if operator in ("Gt", "GtEq") else value
            yield column, low, high
    elif kind == "Function" and _is_between(node["function"]):
        tree, low, high = node["input"]
        column = _column(tree)
        limits = _number(low, column), _number(high, column)
        if limits[0] is not None and limits[1] is not None:
            yield column, limits[0], limits[1]


def _is_between(function: Any) -> bool:
    return isinstance(function, dict) and "IsBetween" in (function.get("Boolean") or ())


def _column(tree: Any) -> str:
    """Return the column that an expression is, if reading can be narrowed by it."""
    name = tree.get("Column", "") if isinstance(tree, dict) else ""
    return name if name in _PUSHED else ""


def _number(tree: Any, column: str) -> int | None:
    """Return the whole number, or the microseconds, that a column is compared with in a literal."""
    if not isinstance(tree, dict) or "Literal" not in tree or not column:
        return None
    kind, inner = "", tree["Literal"]
    while isinstance(inner, dict) and len(inner) == 1:
        [(kind, inner)] = inner.items()
    if column == RECORDED_TIME:
        # A time of another unit or without a zone is cast; a date is a number of days.
        inner = inner[0] if kind == "Datetime" and "Microseconds" in inner else None
    return inner if isinstance(inner, int) and not isinstance(inner, bool) else None
