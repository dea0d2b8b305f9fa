"""Batch queries: partitions are planned next to the driver and scanned by workers.

Workers scan segment files natively and pass Arrow record batches to the JVM. The native module is
not imported before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aerotape.errors import AerotapeError
from aerotape.spark.source.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow

    from aerotape.replay.offline.reader import RecordingRange

_P = ParamSpec("_P")
_R = TypeVar("_R")


def without_traceback(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise errors of aerotape without their traceback, which Spark would print."""

    @wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except AerotapeError as error:
            raise error.with_traceback(None) from None

    return plain


@dataclass
class ScanPartition(InputPartition):
    """Ranges that one task reads, in this order."""

    ranges: tuple[RecordingRange, ...]


class BatchReader(DataSourceReader):
    """Plans the partitions of a batch query and reads one."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @without_traceback
    def partitions(self) -> list[InputPartition]:
        """Cut what is recorded now into partitions."""
        from aerotape.replay.offline.choosing import choose_recordings, without_damaged
        from aerotape.spark.source.planning import plan_partitions, plan_ranges

        options = self._options
        recordings = without_damaged(choose_recordings(options.open_directory(), options), options)
        ranges = plan_ranges(recordings, options)
        return [ScanPartition(part) for part in plan_partitions(ranges, options.partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Scan a partition's ranges into Arrow record batches."""
        # Without partitions Spark passes a placeholder of another class.
        if isinstance(partition, ScanPartition):
            try:  # as `without_traceback`
                yield from table_batches(self._options, self._schema, partition.ranges)
            except AerotapeError as error:
                raise error.with_traceback(None) from None


def table_batches(
    options: ReadOptions, schema: StructType, ranges: Sequence[RecordingRange]
) -> Iterator[pyarrow.RecordBatch]:
    """Scan ranges into batches with the columns of a Spark schema and exactly its types."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    from aerotape.replay.offline.scan_ahead import scans
    from aerotape.replay.offline.table import TableReader

    table = TableReader(replace(options, columns=schema.fieldNames()), options.payloads)
    # Spark compares nullability too, and a user's schema may differ in it.
    # Timestamps are in UTC; later versions of PySpark expect the name of the zone.
    zone: dict[str, Any] = {"timezone": "UTC"}
    if "timezone" not in signature(to_arrow_schema).parameters:
        zone = {}
    expected = to_arrow_schema(schema, **zone)
    for _, scanned in scans(table, ranges):
        for batch in scanned()[1]:
            columns = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(batch.columns, expected, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=expected)
