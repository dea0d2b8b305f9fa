"""The columns of the table as Spark types."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aerotape.replay.offline.columns.names import (
    ADDED_TYPES,
    COLUMN_TYPES,
    RECORDED_TIME,
    added_names,
)
from aerotape.spark.source.options import ReadOptions

_SPARK_TYPES: dict[str, DataType] = {
    "int64": LongType(),
    "int32": IntegerType(),
    "binary": BinaryType(),
    "string": StringType(),
    "timestamp": TimestampType(),
}


def table_types(options: ReadOptions) -> dict[str, DataType]:
    """Return the Spark types of all columns, by name."""
    added = {name: ADDED_TYPES[name] for name in added_names(options.payloads)}
    kinds = {**COLUMN_TYPES, **added}
    types = {name: _SPARK_TYPES[kind] for name, kind in kinds.items()}
    if options.payloads is not None:
        from pyspark.sql.pandas.types import from_arrow_type

        typed = options.payloads.arrow_schema
        types |= {field.name: from_arrow_type(field.type) for field in typed}
    return types


def table_schema(options: ReadOptions) -> StructType:
    """Return the Spark schema of the table with the columns that the options select.

    Typed columns, `recorded_time` and `_corrupt` are nullable, and in mode PERMISSIVE the payload.
    """
    types = table_types(options)
    required = {*COLUMN_TYPES, *added_names(options.payloads)} - {"_corrupt", RECORDED_TIME}
    if options.mode == "PERMISSIVE":
        required -= {"payload"}
    return StructType(
        [StructField(name, types[name], nullable=name not in required) for name in options.columns]
    )
