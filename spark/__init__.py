"""Recordings as Spark tables, and jobs that convert recordings to Parquet and Delta tables.

    >>> spark = aerotape.spark.session()
    >>> spark.read.format("aerotape").option("recordingIds", "0,3").load(archive_dir)

Requires the extra ``spark``. One row is one message; docs/spark.md lists the options. PySpark finds
the data source by itself in a session that starts after aerotape was installed, through the module
`pyspark_aerotape`; `register` is for sessions that do not.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from aerotape.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "register", "session"]

SETTINGS: Final = {"spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true"}
"""Spark's settings with which an error is shown without Python's traceback."""


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """Return a Spark session with `SETTINGS`, a new one unless there is one already.

    Workers run this interpreter unless PYSPARK_PYTHON names another one.

    Args:
        builder: a builder with further settings; `SparkSession.builder` if None.

    Raises:
        ConfigurationError: PySpark, pyarrow or a JDK is missing.
    """
    from aerotape.spark.runtime.session import NO_JVM, require_spark

    require_spark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder if builder is None else builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise ConfigurationError(f"cannot start Spark: {NO_JVM}") from error


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("aerotape")` known to a session that does not find it by itself.

    In others this changes nothing. Workers must be able to import aerotape: set PYSPARK_PYTHON to
    the interpreter of its environment (locally `sys.executable`) before the session starts.

    Args:
        spark: the session.
    """
    from pyspark.errors import AnalysisException

    from aerotape.spark.data_source import AerotapeDataSource

    try:
        # Spark would log that the data source replaces one that it has found.
        _ = spark.read.format(AerotapeDataSource.name()).load().schema
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_NOT_FOUND":
            return
    spark.dataSource.register(AerotapeDataSource)
