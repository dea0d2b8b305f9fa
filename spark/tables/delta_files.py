"""Files of Delta tables: how a commit adds them, and copies without some rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aerotape import __version__
from aerotape.replay.offline.columns.names import RECORDED_TIME
from aerotape.spark.tables.output import OutputStore
from aerotape.spark.tables.writer import NewFile, ParquetFile

if TYPE_CHECKING:
    import pyarrow
    from deltalake.transaction import AddAction


def without_rows(
    store: OutputStore,
    path: str,
    replaced: Mapping[int, int],
    new_path: str,
    date: str | None,
    schema: pyarrow.Schema,
) -> NewFile | None:
    """Copy a file without the rows of `replaced` from a position on; None if none are left."""
    from pyarrow import compute, parquet

    copy = ParquetFile(store, new_path)
    with store.open_file(path) as stream:
        source = parquet.ParquetFile(stream)
        try:
            for batch in source.iter_batches():
                # Files that delta-rs has rewritten have views, which cannot be filtered.
                batch = batch.select(schema.names).cast(schema)
                for id, position in replaced.items():
                    others = compute.not_equal(batch.column("recording_id"), id)
                    before = compute.less(batch.column("position"), position)
                    batch = batch.filter(compute.or_(others, before))
                copy.add(batch)
            return copy.finish(date, {"aerotape.version": __version__})
        finally:
            copy.abandon()


def added(file: NewFile, now_ms: int) -> AddAction:
    """Return the action that adds a file."""
    from deltalake.transaction import AddAction

    bounds = file.statistics.items()
    statistics = {
        "numRecords": file.rows,
        "minValues": {name: _bound(name, low) for name, (low, _) in bounds},
        "maxValues": {name: _bound(name, high, up=True) for name, (_, high) in bounds},
        "nullCount": file.nulls,
    }
    return AddAction(
        file.path,
        file.size,
        {} if file.date is None else {"date": file.date},
        now_ms,
        True,
        json.dumps(statistics),
    )


def _bound(name: str, value: int, *, up: bool = False) -> int | str:
    """Return a minimum or maximum as a Delta log has it: a time in milliseconds, rounded."""
    if name != RECORDED_TIME:
        return value
    milliseconds = -(-value // 1000) if up else value // 1000
    time = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"
