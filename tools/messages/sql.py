r"""Query the recordings of an archive directory with SQL, by DuckDB.

The table `recordings` has a row for each recording, `messages(ID)` one for each message of a
recording; with --schema, its columns are the fields of the payloads. Needs no archive; it may be
running. Messages are read as the query takes them. SQL has no access to files and networks.

    aerotape sql /var/lib/aeron-archive "select recording_id, stream_id from recordings"
    aerotape sql s3://bucket/archive "select avg(length) from messages(7)" --json
    aerotape sql DIR "select symbol, sum(quantity) from messages(7) group by symbol" \
        --schema orders.xml --template NewOrder
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, get_type_hints
from uuid import UUID

from aerotape.catalog.location import parse_location
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import not_installed
from aerotape.tools._cli.arguments import template
from aerotape.tools._cli.output import emit, note

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from aerotape.replay.offline.directory import ArchiveDirectory, Recording

_SHOWN: Final = 1000
_BATCH_ROWS: Final = 10_000
_MESSAGES: Final = re.compile(r"\bmessages\s*\(\s*(\d{1,19})\s*\)", re.IGNORECASE)
_SETTINGS: Final = (
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "archive_dir",
        type=parse_location,
        metavar="DIR",
        help="the archive directory, or the URL of a copy",
    )
    parser.add_argument("query", metavar="SQL", help="one statement")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument(
        "--schema", metavar="FILE", help="an SBE schema, XML or .sbeir, of the payloads"
    )
    parser.add_argument(
        "--template",
        metavar="TEMPLATE",
        type=template,
        help="name or id of the message whose fields are columns (default: a column for each)",
    )
    parser.add_argument(
        "--checksum",
        choices=("none", "crc-32", "crc-32c"),
        default="none",
        help="verify each frame against the checksum it was recorded with",
    )


def run(args: argparse.Namespace) -> None:
    """Print the rows."""
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigurationError(not_installed("duckdb", "duckdb"), "SQL") from None
    if args.csv and args.json:
        raise ConfigurationError("--csv and --json exclude each other", "--csv")
    with duckdb.connect() as database:
        _add_tables(database, args)
        try:
            found = database.sql(args.query)
            if found is None:
                raise ConfigurationError("the statement returns no rows: use select", "SQL")
            _print(found.to_arrow_reader(_BATCH_ROWS), args)
        except duckdb.Error as error:
            raise AerotapeError(f"DuckDB: {error}") from error


def _add_tables(database: duckdb.DuckDBPyConnection, args: argparse.Namespace) -> None:
    from aerotape.replay.offline.directory import open_directory

    directory = open_directory(args.archive_dir)
    database.register("recordings", _recordings(directory))
    database.execute(
        "CREATE MACRO messages(id) AS TABLE SELECT * FROM query_table('messages of ' || id)"
    )
    for recording_id in sorted(set(map(int, _MESSAGES.findall(args.query)))):
        messages = _Messages(directory.recording(recording_id), args)
        database.register(f"messages of {recording_id}", messages)
    for setting in _SETTINGS:
        database.execute(setting)


class _Messages:
    """The messages of a recording, which each scan of a query reads anew."""

    def __init__(self, recording: Recording, args: argparse.Namespace) -> None:
        self._recording = recording
        self._args = args
        self.__arrow_c_stream__()  # errors of the schema and the recording are reported now

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self._recording.to_batches(
            checksum=self._args.checksum, schema=self._args.schema, template=self._args.template
        )
        return batches.__arrow_c_stream__(requested_schema)


def _recordings(directory: ArchiveDirectory) -> pyarrow.Table:
    import pyarrow

    from aerotape.catalog.descriptor import RecordingDescriptor

    types = {int: pyarrow.int64(), str: pyarrow.string()}
    columns = [(name, types[found]) for name, found in get_type_hints(RecordingDescriptor).items()]
    rows = [
        {
            **dataclasses.asdict(recording.descriptor),
            "recorded_position": recording.recorded_position,
        }
        for recording in directory.recordings()
    ]
    schema = pyarrow.schema([*columns, ("recorded_position", pyarrow.int64())])
    return pyarrow.Table.from_pylist(rows, schema)


def _print(reader: pyarrow.RecordBatchReader, args: argparse.Namespace) -> None:
    rows = _rows(reader)
    if args.csv:
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(reader.schema.names)
        for row in rows:
            writer.writerow([_text(value) for value in row.values()])
    elif args.json:
        emit(rows, args)
    else:
        emit(list(islice(rows, _SHOWN)), args, "no rows")
        if next(rows, None) is not None:
            note(f"these are the first {_SHOWN} rows; --json and --csv print all")


def _rows(reader: pyarrow.RecordBatchReader) -> Iterator[dict[str, Any]]:
    for batch in reader:
        for row in batch.to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Return a value whose parts have a form in JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, (date, time, datetime)):
        return value.isoformat()
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)  # a sum of integers
    return str(value) if isinstance(value, (Decimal, UUID, timedelta)) else value


def _text(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
