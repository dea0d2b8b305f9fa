"""Append messages from standard input, one by one, to a Parquet file with pyarrow.

A straightforward program for a replay to Parquet in Python; `parquet.py` measures it.
"""

from __future__ import annotations

import struct
import sys

import pyarrow
from pyarrow import parquet

HEADER = struct.Struct(">qqiiiiiqi")
ROWS = 100_000
SCHEMA = pyarrow.schema(
    [
        ("position", pyarrow.int64()),
        ("end_position", pyarrow.int64()),
        ("stream_id", pyarrow.int32()),
        ("session_id", pyarrow.int32()),
        ("term_id", pyarrow.int32()),
        ("term_offset", pyarrow.int32()),
        ("flags", pyarrow.int32()),
        ("reserved_value", pyarrow.int64()),
        ("length", pyarrow.int32()),
        ("payload", pyarrow.binary()),
    ]
)


def main() -> None:
    """Read until the input ends."""
    source = sys.stdin.buffer
    with parquet.ParquetWriter(sys.argv[1], SCHEMA, compression="zstd") as writer:
        rows: list[tuple[object, ...]] = []
        while header := source.read(HEADER.size):
            fields = HEADER.unpack(header)
            rows.append((*fields, source.read(fields[-1])))
            if len(rows) == ROWS:
                write(writer, rows)
                rows = []
        write(writer, rows)


def write(writer: parquet.ParquetWriter, rows: list[tuple[object, ...]]) -> None:
    """Write rows as one row group."""
    if rows:
        columns = [
            pyarrow.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
        ]
        writer.write_table(pyarrow.Table.from_arrays(columns, schema=SCHEMA))


if __name__ == "__main__":
    main()
