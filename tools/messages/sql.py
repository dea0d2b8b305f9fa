r"""Query the recordings of an archive directory with SQL, by DuckDB.

The table `recordings` has a row for each recording, `messages(ID)` one for each message of a
recording; with --schema, its columns are the fields of the payloads. Needs no archive; it may be
running. Messages are read as the query takes them. SQL has no access to files and networks.

    aerotape sql /var/lib/aeron-archive "select recording_id, stream_id from recordings"
    aerotape sql s3://bucket/archive "select avg(length) from messages(7)" --json
    aerotape sql DIR "select symbol, sum(quantity) from messages(7) group by symbol" \
        --schema orders.xml --template NewOrder

Values are DuckDB's text, bytes are hexadecimal. JSON has numbers, booleans and nested values as
such, NaN and infinity as text, and names a second column `a` as `a_1`. In CSV, null is an empty
field, empty text is "".
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, get_type_hints

from aerotape.catalog.location import parse_location
from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.formatting import not_installed
from aerotape.replay.offline.columns.names import ADDED_TYPES
from aerotape.tools._cli.escaping import data_stream
from aerotape.tools._cli.output import emit_table, nested_text, note
from aerotape.tools._cli.selecting import OF_MESSAGES, OF_SCHEMAS, add_selection_options, selected
from aerotape.tools.messages import _sql_values as values
from aerotape.tools.messages._printing import payload_schema

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from aerotape.replay.offline.directory import ArchiveDirectory, Recording
    from aerotape.replay.offline.selection import Selection

_SHOWN: Final = 1000
_BATCH_ROWS: Final = 10_000
_SELECTING: Final = (*OF_MESSAGES, *OF_SCHEMAS, "others", "payload", "mode")
# SQL reads and writes no file. Without a directory for temporary files there is none: DuckDB
# allows SQL to use the files there whatever else is disabled.
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "temp_directory": "",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false",
}
_TABLE: Final = "messages of "
_UNKNOWN_TABLE: Final = re.compile(rf'Table with name "?{_TABLE}(.*?)"? does not exist')
_UNKNOWN_COLUMN: Final = re.compile(rf'"({"|".join(ADDED_TYPES)})"')


JSON_ROWS: Final = {"": dict}


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
    add_selection_options(parser, _SELECTING)


def run(args: argparse.Namespace) -> None:
    """Print the rows."""
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigurationError(not_installed("duckdb", "duckdb"), "SQL") from None
    if args.csv and args.json:
        raise ConfigurationError("--csv and --json exclude each other", "--csv")
    with duckdb.connect(config=_SETTINGS) as database:
        tables = _Tables(database, args)
        try:
            found = tables.query(args.query)
            if found is None:
                raise ConfigurationError("the statement returns no rows: use select", "SQL")
            _print(found, args, tables)
        except duckdb.Error as error:
            raise tables.failure or AerotapeError(f"DuckDB: {error}") from error


class _Tables:
    """The tables of a query, each added when DuckDB does not know it.

    Attributes:
        failure: why a recording could not be read; DuckDB reports it as an error of its own.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, args: argparse.Namespace) -> None:
        """Open the directory, and set up DuckDB so that SQL cannot change how it is."""
        from aerotape.replay.offline.directory import open_directory

        self.failure: AerotapeError | None = None
        self._database = database
        self._directory = open_directory(args.archive_dir)
        selection = selected(args, _SELECTING)
        if (schema := payload_schema(selection)) is not None:
            selection = selection.with_schema(schema)
        self._selection = selection
        self._recordings: dict[int, Recording] = {}
        self._added: tuple[str, ...] = ()
        database.register("recordings", _recordings(self._directory))
        database.execute(
            f"CREATE MACRO messages(id) AS TABLE SELECT * FROM query_table('{_TABLE}' || id)"
        )
        database.execute("SET TimeZone = 'UTC'")
        database.execute("SET lock_configuration = true")

    def query(self, text: str) -> duckdb.DuckDBPyRelation | None:
        """Prepare the one statement of a text.

        Raises:
            ConfigurationError: it has none or several, or is not UTF-8.
        """
        import duckdb

        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigurationError(f"{text!r} is not UTF-8", "SQL") from None
        statements = self._database.extract_statements(text)
        if len(statements) != 1:
            raise ConfigurationError(
                f"expected one statement, found {len(statements)}: {text!r}", "SQL"
            )
        statement = _without_end(text)
        while True:
            try:
                return self._database.sql(statement)
            except (duckdb.CatalogException, duckdb.BinderException) as error:
                if not self._supply(str(error)):
                    raise

    def _supply(self, problem: str) -> bool:
        """Add the table or the column without which a query cannot be prepared."""
        if (table := _UNKNOWN_TABLE.search(problem)) is not None:
            recording_id = table[1]
            if not recording_id.isdecimal():
                raise ConfigurationError(
                    f"messages({recording_id}): expected the id of a recording", "SQL"
                )
            self._register(int(recording_id))
            return True
        if (column := _UNKNOWN_COLUMN.search(problem)) and column[1] not in self._added:
            self._added += (column[1],)
            for recording_id in self._recordings:
                self._register(recording_id)
            return bool(self._recordings)
        return False

    def _register(self, recording_id: int) -> None:
        recording = self._recordings.get(recording_id) or self._directory.recording(recording_id)
        self._recordings[recording_id] = recording
        messages = _Messages(recording, self._selection, self._added, self._fail)
        self._database.register(f"{_TABLE}{recording_id}", messages)

    def _fail(self, failure: AerotapeError) -> None:
        self.failure = failure


def _without_end(statement: str) -> str:
    """Return a statement without the semicolons at its end: DuckDB makes a subquery of it."""
    import duckdb

    text = statement.encode()
    end = len(text)
    for offset, kind in reversed(duckdb.tokenize(statement)):
        if text[offset : offset + 1] == b";":
            end = offset
        elif kind != duckdb.token_type.comment:
            break
    return text[:end].decode()


class _Messages:
    """The messages of a recording, which each scan of a query reads anew."""

    def __init__(
        self,
        recording: Recording,
        selection: Selection,
        added: tuple[str, ...],
        on_failure: Callable[[AerotapeError], None],
    ) -> None:
        self._recording = recording
        self._selection = selection
        self._on_failure = on_failure
        own = self._reader().schema.names  # errors of the schema are reported now
        columns = [*own, *(name for name in added if name not in own)]
        self._selection = dataclasses.replace(selection, columns=columns)

    def _reader(self) -> pyarrow.RecordBatchReader:
        from aerotape.replay.offline.table import read_batches

        return read_batches(self._recording, self._selection)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow

        reader = self._reader()
        batches = pyarrow.RecordBatchReader.from_batches(reader.schema, self._watched(reader))
        return batches.__arrow_c_stream__(requested_schema)

    def _watched(self, reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
        try:
            yield from reader
        except AerotapeError as error:
            self._on_failure(error)
            raise


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


def _print(found: duckdb.DuckDBPyRelation, args: argparse.Namespace, tables: _Tables) -> None:
    names, forms = found.columns, [values.form_of(kind) for kind in found.types]
    batches = _batches(values.fetched(found, forms), tables)
    if args.json:
        emit_table(names, values.json_rows(batches, forms), args)
        return
    rows = values.text_rows(batches, forms)
    if args.csv:
        stream = data_stream(sys.stdout)
        stream.write(values.csv_line(names))
        for row in rows:
            stream.write(
                values.csv_line(None if each is None else nested_text(each) for each in row)
            )
        return
    numbers = [at for at, form in enumerate(forms) if form.is_number]
    emit_table(names, islice(rows, _SHOWN), args, "no rows", numbers=numbers)
    if next(rows, None) is not None:
        note(f"these are the first {_SHOWN} rows; --json and --csv print all")


def _batches(found: duckdb.DuckDBPyRelation, tables: _Tables) -> Iterator[pyarrow.RecordBatch]:
    """Iterate the batches of a query; its errors are DuckDB's also here."""
    reader = found.to_arrow_reader(_BATCH_ROWS)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:  # pyarrow's, with DuckDB's text
            raise tables.failure or AerotapeError(f"DuckDB: {error}") from error
        yield batch
