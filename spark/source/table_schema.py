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
)

from aerotape.spark.source.options import COLUMN_TYPES, ReadOptions

_SPARK_TYPES: dict[str, DataType] = {
    "long": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
    "string": StringType(),
}


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
