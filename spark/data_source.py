"""The data source "aerotape": `spark.read.format("aerotape").load(archive_dir)`.

Spark creates an `AerotapeDataSource` in a Python worker next to the driver and calls it for the
schema and a reader: of a batch query (`aerotape.spark.source.batch_reader`) or of a streaming query
(`aerotape.spark.streaming.reader`).

For a query of a table (CREATE TABLE … USING aerotape) Spark does not pass the table's options: it
passes them when the table is created, and stores only the schema. So the options of a table are in
the metadata of its schema's first column.

All uses of a relation share what Spark 4.2 and 4.3 store in it: the data source of the first use,
with its options, and the latest plan. So filters do not limit a plan, which another query, or
another use of the relation in the same query, would be left with, and options of a query of a table
are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from aerotape.errors import ConfigurationError
from aerotape.spark.source.batch_reader import BatchReader, without_traceback
from aerotape.spark.source.options import (
    STORAGE_PREFIX,
    STREAM_NAMES,
    ReadOptions,
    given_options,
    is_table,
)
from aerotape.spark.source.table_schema import table_schema, table_types
from aerotape.spark.streaming.options import StreamOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter

_TABLE_OPTIONS: Final = "aerotape.options"


class AerotapeDataSource(DataSource):
    """Messages of an archive directory's recordings, one row each.

    Raises (in the constructor):
        ConfigurationError: an option is unknown or has an invalid value.
    """

    @without_traceback
    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._given = given_options(options)
        self._is_table = is_table(options)
        # A query of a table has no path; `_take_schema` parses the table's options.
        if "path" in self._given:
            self._parse(self._given)

    def _parse(self, given: Mapping[str, str]) -> None:
        self.read_options = ReadOptions.parse(given)
        self.stream_options = StreamOptions.parse(given)

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "aerotape"

    @without_traceback
    def schema(self) -> StructType:
        """Return the selected columns."""
        if "path" not in self._given:
            self._parse(self._given)  # raises: there is no path
        schema = table_schema(self.read_options)
        if self._is_table:
            _check_table(self._given)
            stored = self._given | {"path": self.read_options.archive_dir}
            schema.fields[0].metadata = {_TABLE_OPTIONS: stored}
        return schema

    @without_traceback
    def reader(self, schema: StructType) -> DataSourceReader:
        """Create the reader of a batch query.

        Args:
            schema: the result of `schema()`, or of `spark.read.schema`, which selects columns as
                the option `columns` does.
        """
        self._take_schema(schema)
        if self.stream_options.given:
            name = self.stream_options.given[0]
            raise ConfigurationError(f"{name}: this option is for spark.readStream only", name)
        return BatchReader(self.read_options, schema)

    @without_traceback
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Create the reader of a streaming query; the schema is as for `reader`."""
        self._take_schema(schema)
        try:
            from aerotape.spark.streaming.reader import StreamReader
        except ModuleNotFoundError as error:
            if error.name != "pyspark.sql.streaming.datasource":
                raise
            raise ConfigurationError(
                f"streaming needs PySpark 4.2 or later, this is {pyspark.__version__}"
            ) from error
        batches = BatchReader(self.read_options, schema)
        return StreamReader(self.read_options, self.stream_options, batches)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Refuse to write (ConfigurationError)."""
        raise ConfigurationError("the data source is read-only: an archive writes recordings")

    def _take_schema(self, schema: StructType) -> None:
        """Read a table's options from its schema, and check the columns."""
        stored = {
            name: value
            for field in schema.fields
            for name, value in field.metadata.get(_TABLE_OPTIONS, {}).items()
        }
        if stored:
            _check_query(self._given)
        if "path" not in self._given:
            self._parse(stored | self._given)
        known = table_types(self.read_options)
        for field in schema.fields:
            expected = known.get(field.name)
            # Types as SQL writes them, which do not include nullability.
            if expected is None or expected.simpleString() != field.dataType.simpleString():
                there = ", ".join(f"{name} {kind.simpleString()}" for name, kind in known.items())
                raise ConfigurationError(
                    f"schema: {field.name} {field.dataType.simpleString()} is not a column of a "
                    f"recording: expected {there}",
                    "schema",
                )


def _check_table(options: Mapping[str, str]) -> None:
    """Refuse storage options: they may be credentials, and a schema is visible to all readers."""
    for name in options:
        if name.startswith(STORAGE_PREFIX):
            raise ConfigurationError(
                f"{name}: storage options cannot be options of a table, because its schema and "
                "those of tables made from it would show them; set environment variables, or "
                "create a temporary view: CREATE TEMPORARY VIEW … USING aerotape OPTIONS (…)",
                name,
            )


def _check_query(options: Mapping[str, str]) -> None:
    """Refuse options of a query of a table, except those of streams, which have no other place."""
    for name in options:
        if name not in STREAM_NAMES:
            raise ConfigurationError(
                f"{name}: a query of a table takes no options, as in FROM t WITH (…) or "
                "spark.read.option(…).table(…), because Spark may apply them to other uses of the "
                "table too, or to none; create another table, or a temporary view, with OPTIONS",
                name,
            )
