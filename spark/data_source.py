"""The data source "aerotape": `spark.read.format("aerotape").load(archive_dir)`.

Spark makes an `AerotapeDataSource` in a Python process beside the driver and asks it for the schema
and a reader: of a batch query (`aerotape.spark.source.batch_reader`) or of a streaming query
(`aerotape.spark.streaming.reader`).

Spark refuses a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is off,
and does not tell the data source whether it is. But it plans in another worker where filters are
to be handed over: that worker gets a `FilteringReader`, any other a `BatchReader`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from aerotape.errors import ConfigurationError
from aerotape.spark.source.batch_reader import BatchReader, FilteringReader, without_calls
from aerotape.spark.source.options import ReadOptions
from aerotape.spark.source.table_schema import table_schema, table_types
from aerotape.spark.streaming.options import StreamOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter

_FILTERING_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class AerotapeDataSource(DataSource):
    """Messages of an archive directory's recordings, one row each.

    Raises (when Spark makes one):
        ConfigurationError: an option is unknown or has a value that cannot be.
    """

    @without_calls
    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.read_options = ReadOptions.parse(options)
        self.stream_options = StreamOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "aerotape"

    def schema(self) -> StructType:
        """Return the selected columns."""
        return table_schema(self.read_options)

    @without_calls
    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a batch query.

        Args:
            schema: what `schema()` gave, or what the user gave to `spark.read.schema`, which
                chooses columns as the option `columns` does.
        """
        if self.stream_options.given:
            name = self.stream_options.given[0]
            raise ConfigurationError(f"{name}: this option is for spark.readStream only", name)
        self._check_schema(schema)
        make = FilteringReader if _filters_are_handed_over() else BatchReader
        return make(self.read_options, schema)

    @without_calls
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Make the reader of a streaming query; the schema is as for `reader`."""
        self._check_schema(schema)
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

    def _check_schema(self, schema: StructType) -> None:
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


def _filters_are_handed_over() -> bool:
    """Whether this process is the worker in which Spark pushes filters down."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return _FILTERING_WORKER in sys.modules or getattr(main, "name", "") == _FILTERING_WORKER
