"""Messages as files: JSON lines, CSV and Parquet, as many as an answer may have."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, Literal

from starlette.responses import Response

from aerotape.formatting import printable
from aerotape.replay.offline.directory import Recording
from aerotape.tools._web.rest.answers import (
    MAX_ANSWER,
    PART,
    PartsResponse,
    answer,
    row_text,
    too_large,
)
from aerotape.tools._web.rest.reading import Reading
from aerotape.tools.messages._sql_values import csv_line

Kind = Literal["jsonl", "csv", "parquet"]
MAX_EXPORTED: Final = 10_000
"""The most messages of a file."""
_TYPES: Final[dict[Kind, str]] = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
_FORMULA: Final = re.compile(r"[=@]|[+-](?![0-9.]+\Z)", re.ASCII)
_ROW_BYTES: Final = 64  # of a row of Parquet besides its payload, at most
_MAX_TABLE: Final = 4 * MAX_ANSWER
"""The bytes of Arrow columns after which a file ends: fields may be longer than payloads."""


def exported(
    reading: Reading,
    recording: Recording,
    rows: Iterator[dict[str, Any]],
    kind: Kind,
    schema: str | None,
) -> Response:
    """Return a file of messages, as many of them as fit into an answer.

    JSON lines have the rows of REST. CSV has the same columns, those of nested values as JSON,
    escapes what is not printable, and puts an apostrophe before what would be a formula. Parquet
    has the columns of `Recording.to_arrow`, with a schema its fields with their types, of messages
    of the schema only.

    Args:
        reading: reads Parquet's columns.
        recording: the recording.
        rows: of messages, in the order of their positions.
        kind: of the file.
        schema: the name of a schema.

    Raises:
        HTTPException: 413, the first message does not fit.
        ConfigurationError: Parquet needs pyarrow, which is not installed.
    """
    first = next(rows, None)
    name = f"recording-{recording.recording_id}"
    if first is not None:
        name = f"{name}-{first['position']}"
        rows = chain([first], rows)
    if kind == "jsonl":
        response = answer(map(row_text, rows), "", "\n", "\n")
    elif kind == "csv":
        header = csv_line(first) if first else ""
        response = answer(map(_line, rows), header, "", "")
    else:
        response = _parquet(reading, recording, rows, schema)
    response.headers["content-type"] = _TYPES[kind]
    response.headers["content-disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def _line(row: dict[str, Any]) -> str:
    """Return a row of CSV; null is empty."""

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return row_text(value)

    return csv_line(None if each is None else _cell(each) for each in map(text, row.values()))


def _cell(text: str) -> str:
    """Return a text that a program of spreadsheets shows: an apostrophe precedes a formula."""
    shown = printable(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def _parquet(
    reading: Reading, recording: Recording, rows: Iterator[dict[str, Any]], schema: str | None
) -> PartsResponse:
    decoder = None if schema is None else reading.schemas[schema]
    start = recording.start_position
    tables = [recording.to_arrow(start, start, schema=decoder)]
    length = 0
    for begin, end in _pieces(rows):
        tables.append(recording.to_arrow(begin, end, schema=decoder))
        length += tables[-1].nbytes
        if length >= _MAX_TABLE:
            break
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.concat_tables(tables), file)
    content = file.getbuffer()
    return PartsResponse([bytes(content[at : at + PART]) for at in range(0, len(content), PART)])


def _pieces(rows: Iterator[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Iterate over ranges of positions with those rows that fit into an answer, some in each.

    Raises:
        HTTPException: 413, the first message does not fit.
    """
    begin = end = None
    length = piece = 0
    for row in rows:
        size = row["length"] + _ROW_BYTES
        length += size
        if length > MAX_ANSWER:
            if end is None:
                raise too_large(row["length"])
            break
        begin = row["position"] if begin is None else begin
        end = row["end_position"]
        piece += size
        if piece >= PART:
            yield begin, end
            begin, piece = None, 0
    if begin is not None and end is not None:
        yield begin, end
