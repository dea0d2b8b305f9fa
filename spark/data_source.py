"""The data source "aerotape": `spark.read.format("aerotape").load(archive_dir)`.

Spark makes an `AerotapeDataSource` in a Python process beside the driver and asks it for the schema
and a reader: of a batch query (`aerotape.spark.source.batch_reader`) or of a streaming query
(`aerotape.spark.streaming.reader`).

Spark refuses a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is off,
and does not tell the data source whether it is. But it plans in another worker where filters are
to be handed over: that worker gets a `FilteringReader`, any other a `BatchReader`.

A query of a table (CREATE TABLE … USING aerotape) makes a data source without the table's options:
Spark hands them over when the table is created and keeps the schema alone. So the schema of a table
has them in the metadata of its first column.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from aerotape.errors import ConfigurationError
from aerotape.spark.source.batch_reader import BatchReader, FilteringReader, without_calls
from aerotape.spark.source.options import (
    STORAGE_PREFIX,
    ReadOptions,
    given_options,
    is_table,
)
from aerotape.spark.source.table_schema import table_schema, table_types
from aerotape.spark.streaming.options import StreamOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter

_TABLE_OPTIONS: Final = "aerotape.options"
_FILTERING_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class AerotapeDataSource(DataSource):
    """Messages of an archive directory's recordings, one row each.

    Raises (when Spark makes one):
        ConfigurationError: an option is unknown or has a value that cannot be.
    """

    @without_calls
    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._given = given_options(options)
        self._is_table = is_table(options)
        # A query of a table brings no path, but may bring others: FROM t WITH (streamId = 7).
        if "path" in self._given:
            self._parse(self._given)

    def _parse(self, given: Mapping[str, str]) -> None:
        self.read_options = ReadOptions.parse(given)
        self.stream_options = StreamOptions.parse(given)

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "aerotape"

    @without_calls
    def schema(self) -> StructType:
        """Return the selected columns."""
        if "path" not in self._given:
            self._parse(self._given)  # which says so
        schema = table_schema(self.read_options)
        if self._is_table:
            _check_table(self._given)
            kept = self._given | {"path": self.read_options.archive_dir}
            schema.fields[0].metadata = {_TABLE_OPTIONS: kept}
        return schema

    @without_calls
    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a batch query.

        Args:
            schema: what `schema()` gave, or what the user gave to `spark.read.schema`, which
                chooses columns as the option `columns` does.
        """
        self._take_schema(schema)
        if self.stream_options.given:
            name = self.stream_options.given[0]
            raise ConfigurationError(f"{name}: this option is for spark.readStream only", name)
        make = FilteringReader if _filters_are_handed_over() else BatchReader
        return make(self.read_options, schema)

    @without_calls
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Make the reader of a streaming query; the schema is as for `reader`."""
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
        """Take a table's options from its schema, and check the columns."""
        if "path" not in self._given:
            stored = [field.metadata.get(_TABLE_OPTIONS, {}) for field in schema.fields]
            self._parse({name: of[name] for of in stored for name in of} | self._given)
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
    """Refuse options that must not be in a schema: those who read a table's rows may see that."""
    for name in options:
        if name.startswith(STORAGE_PREFIX):
            raise ConfigurationError(
                f"{name}: a table cannot keep storage options, they would be in the schema of all "
                "that is made of it; set the environment of the storage, or give them to each "
                f"query, as in SELECT … FROM t WITH (`{name}` = '…')",
                name,
            )


def _filters_are_handed_over() -> bool:
    """Whether this process is the worker in which Spark pushes filters down."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return _FILTERING_WORKER in sys.modules or getattr(main, "name", "") == _FILTERING_WORKER
