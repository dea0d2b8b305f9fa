"""A streaming query without Spark: its reader is called as by Spark, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from aerotape.spark.data_source import AerotapeDataSource
from aerotape.spark.streaming.reader import StreamReader
from support.builders.segment_builder import BuiltMessage

Row = dict[str, Any]


class Query:
    """A streaming query with a checkpoint.

    Each batch goes through the checkpoint's JSON and is read twice, the second time by a new
    reader, as after a failure: both must return the same rows.

    Attributes:
        offset: the end of the last batch.
        batches: the rows of each batch so far.
    """

    def __init__(self, archive_dir: Path | str, **options: object) -> None:
        self.options = {"path": str(archive_dir), **{k: str(v) for k, v in options.items()}}
        self.reader = self.new_reader()
        self.offset = self.reader.initialOffset()
        self.batches: list[list[Row]] = []

    def new_reader(self) -> StreamReader:
        source = AerotapeDataSource(self.options)
        reader = source.streamReader(source.schema())
        assert isinstance(reader, StreamReader)
        return reader

    def restart(self, **options: object) -> None:
        """Continue with a new reader, perhaps with other options."""
        self.options |= {name: str(value) for name, value in options.items()}
        self.reader = self.new_reader()

    def advance(self, *, once: bool = False) -> tuple[Row, Row]:
        """Choose the next batch, and return the offsets around it."""
        limit = ReadAllAvailable() if once else self.reader.getDefaultReadLimit()
        start = self.offset
        self.offset = json.loads(json.dumps(self.reader.latestOffset(start, limit)))
        return start, self.offset

    def batch(self, *, once: bool = False) -> list[Row] | None:
        """Run one batch; None when there is nothing new."""
        start, end = self.advance(once=once)
        if start == end:
            return None
        rows = read(self.reader, start, end)
        assert rows == read(self.new_reader(), start, end)
        self.batches.append(rows)
        return rows

    def run(self) -> list[Row]:
        """Run batches until there is nothing new, and return all rows of these."""
        first = len(self.batches)
        while self.batch() is not None:
            assert len(self.batches) < 1000
        return [row for rows in self.batches[first:] for row in rows]


def read(reader: StreamReader, start: Row, end: Row) -> list[Row]:
    return [
        row
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def positions(rows: list[Row]) -> list[int]:
    """Return the positions of rows."""
    return [row["position"] for row in rows]


def places(messages: list[BuiltMessage]) -> list[int]:
    """Return the positions of messages."""
    return [message.position for message in messages]
