"""The data source "aerotape": `spark.read.format("aerotape").load(archive_dir)`.

Spark makes an `AerotapeDataSource` in a Python process beside the driver, asks it for the schema,
plans partitions there (`aerotape.spark.planning`) and sends each to a worker, which scans segment
files natively and hands Arrow record batches to the JVM. Nothing native is imported before that.

Spark refuses a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is off,
and does not tell the data source whether it is. But it plans in another worker where filters are
to be handed over: that worker gets a `FilteringReader`, any other a `BatchReader`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from aerotape.errors import ConfigurationError
from aerotape.spark.options import COLUMN_TYPES, ReadOptions

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import Filter

    from aerotape.replay.damage import Mode
    from aerotape.replay.reader import RecordingRange
    from aerotape.spark.pushdown import Selection

_FILTERING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

_SPARK_TYPES: dict[str, DataType] = {
    "long": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
    "string": StringType(),
}


class AerotapeDataSource(DataSource):
    """Messages of an archive directory's recordings, one row each.

    Raises (when Spark makes one):
        ConfigurationError: an option is unknown or has a value that cannot be.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.read_options = ReadOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "aerotape"

    def schema(self) -> StructType:
        """The columns asked for."""
        return table_schema(self.read_options.columns, self.read_options.mode)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a batch query.

        Args:
            schema: what `schema()` gave, or what the user gave to `spark.read.schema`, which
                chooses columns as the option `columns` does.
        """
        for field in schema.fields:
            expected = COLUMN_TYPES.get(field.name)
            if expected is None or _SPARK_TYPES[expected] != field.dataType:
                raise ConfigurationError(
                    f"schema: {field.name} {field.dataType.simpleString()} is no column of a "
                    f"recording (there are "
                    f"{', '.join(f'{name} {kind}' for name, kind in COLUMN_TYPES.items())})",
                    "schema",
                )
        make = FilteringReader if _filters_are_handed_over() else BatchReader
        return make(self.read_options, schema)


def _filters_are_handed_over() -> bool:
    """Whether this process is the worker in which Spark pushes filters down."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return _FILTERING_WORKER in sys.modules or getattr(main, "name", "") == _FILTERING_WORKER


def table_schema(columns: tuple[str, ...], mode: Mode) -> StructType:
    """Return the Spark schema of a table with these columns.

    Nothing is ever null but the payload of a damaged message, and of a sound one what is wrong.
    """
    nullable = {"_corrupt", "payload"} if mode == "PERMISSIVE" else {"_corrupt"}
    return StructType(
        [
            StructField(name, _SPARK_TYPES[COLUMN_TYPES[name]], nullable=name in nullable)
            for name in columns
        ]
    )


@dataclass
class ScanPartition(InputPartition):
    """Ranges that one task reads, one after the other."""

    ranges: tuple[RecordingRange, ...]


class BatchReader(DataSourceReader):
    """Plans the partitions of a batch query and reads one."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._selection: Selection | None = None

    def partitions(self) -> list[InputPartition]:
        """Cut what is recorded at this moment into partitions."""
        from aerotape.catalog.directory import open_directory
        from aerotape.spark.planning import (
            choose_recordings,
            plan_partitions,
            plan_ranges,
            without_damaged,
        )

        options = self._options
        recordings = choose_recordings(open_directory(options.archive_dir), options)
        if self._selection is not None:
            recordings = list(self._selection.recordings(recordings))
            narrowed = self._selection.positions(options)
            if narrowed is None:
                return []
            options = narrowed
        ranges = plan_ranges(without_damaged(recordings, options), options)
        return [ScanPartition(part) for part in plan_partitions(ranges, options.partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Scan a partition's ranges into Arrow record batches."""
        # Spark makes up one partition, of its own class, when there is nothing to read.
        if isinstance(partition, ScanPartition):
            for part in partition.ranges:
                yield from self._scan(part)

    def _scan(self, part: RecordingRange) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        from aerotape.replay.reader import arrow_batches

        names = self._schema.fieldNames()
        scan = part.scan(names, self._options.checksum, mode=self._options.mode)
        for batch in arrow_batches(scan):
            # Spark compares the promise about nulls too, and a user's schema may differ in it.
            schema = pyarrow.schema(
                [
                    batch.schema.field(field.name).with_nullable(field.nullable)
                    for field in self._schema.fields
                ]
            )
            yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema)


class FilteringReader(BatchReader):
    """The same for a query whose filters Spark hands over."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Plan only what can pass the filters; return those that Spark still has to apply."""
        from aerotape.spark.pushdown import Selection

        self._selection, left_to_spark = Selection().narrow(filters)
        return left_to_spark
