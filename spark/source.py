"""The data source "aerotape": `spark.read.format("aerotape").load(archive_dir)`.

Streaming queries are read by `aerotape.spark.streaming`.

Spark makes an `AerotapeDataSource` in a Python process beside the driver, asks it for the schema,
plans partitions there (`aerotape.spark.planning`) and sends each to a worker, which scans segment
files natively and hands Arrow record batches to the JVM. Nothing native is imported before that.

Spark refuses a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is off,
and does not tell the data source whether it is. But it plans in another worker where filters are
to be handed over: that worker gets a `FilteringReader`, any other a `BatchReader`.

A query of a table (CREATE TABLE … USING aerotape) makes a data source without the table's options:
Spark hands them over when the table is created and keeps the schema alone. So the schema of a table
has them in the metadata of its first column.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from aerotape.errors import AerotapeError, ConfigurationError
from aerotape.spark.options import (
    COLUMN_TYPES,
    STORAGE_PREFIX,
    ReadOptions,
    given_options,
    is_table,
)
from aerotape.spark.stream_options import StreamOptions

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import DataSourceWriter, Filter

    from aerotape.replay.reader import RecordingRange
    from aerotape.spark.pushdown import Selection

_P = ParamSpec("_P")
_R = TypeVar("_R")

_TABLE_OPTIONS = "aerotape.options"
_FILTERING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

_SPARK_TYPES: dict[str, DataType] = {
    "long": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
    "string": StringType(),
}


def without_calls(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let errors of ours leave a function alone: Spark prints all calls that led to an error."""

    @wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except AerotapeError as error:
            raise error.with_traceback(None) from None

    return plain


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
        """The columns asked for."""
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
            from aerotape.spark.streaming import StreamReader
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
        raise ConfigurationError("the data source only reads: recordings are made by an archive")

    def _take_schema(self, schema: StructType) -> None:
        """Take a table's options from its schema, and check the columns."""
        if "path" not in self._given:
            stored = [field.metadata.get(_TABLE_OPTIONS, {}) for field in schema.fields]
            self._parse({name: of[name] for of in stored for name in of} | self._given)
        known = table_types(self.read_options)
        for field in schema.fields:
            expected = known.get(field.name)
            # Types as SQL writes them: those do not tell what may be null.
            if expected is None or expected.simpleString() != field.dataType.simpleString():
                there = ", ".join(f"{name} {kind.simpleString()}" for name, kind in known.items())
                raise ConfigurationError(
                    f"schema: {field.name} {field.dataType.simpleString()} is no column of a "
                    f"recording (there are {there})",
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


def table_types(options: ReadOptions) -> dict[str, DataType]:
    """Return the Spark types of all columns that there are, by name."""
    types = {name: _SPARK_TYPES[kind] for name, kind in COLUMN_TYPES.items()}
    if options.payloads is not None:
        from pyspark.sql.pandas.types import from_arrow_type

        typed = options.payloads.arrow_schema
        types |= {field.name: from_arrow_type(field.type) for field in typed}
    return types


def table_schema(options: ReadOptions) -> StructType:
    """Return the Spark schema of the table with the columns that the options ask for.

    What a recording has of a message is never null but the payload of a damaged one; typed columns
    may always be, and of a sound message so is what is wrong.
    """
    types = table_types(options)
    sound = set(COLUMN_TYPES) - {"_corrupt"}
    if options.mode == "PERMISSIVE":
        sound -= {"payload"}
    return StructType(
        [StructField(name, types[name], nullable=name not in sound) for name in options.columns]
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

    @without_calls
    def partitions(self) -> list[InputPartition]:
        """Cut what is recorded at this moment into partitions."""
        from aerotape.spark.planning import (
            choose_recordings,
            plan_partitions,
            plan_ranges,
            without_damaged,
        )

        options = self._options
        recordings = choose_recordings(options.open_directory(), options)
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
            try:  # as `without_calls`
                yield from table_batches(self._options, self._schema, partition.ranges)
            except AerotapeError as error:
                raise error.with_traceback(None) from None


def table_batches(
    options: ReadOptions, schema: StructType, ranges: Iterable[RecordingRange]
) -> Iterator[pyarrow.RecordBatch]:
    """Scan ranges into batches with the columns of a Spark schema and exactly its types."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    from aerotape.replay.table import TableReader

    table = TableReader(
        schema.fieldNames(), options.checksum, mode=options.mode, payloads=options.payloads
    )
    # Spark compares the promises about nulls too, and a user's schema may differ in them.
    promised = to_arrow_schema(schema)
    for part in ranges:
        for batch in table.read(part):
            columns = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(batch.columns, promised, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=promised)


class FilteringReader(BatchReader):
    """The same for a query whose filters Spark hands over."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Plan only what can pass the filters; return those that Spark still has to apply."""
        from aerotape.spark.pushdown import Selection

        self._selection, left_to_spark = Selection().narrow(filters)
        return left_to_spark
