"""Recordings as Spark tables, and the job that turns recordings into Parquet.

    >>> aerotape.spark.register(spark)
    >>> spark.read.format("aerotape").option("recordingIds", "0,3").load(archive_dir)

Requires the extra ``spark``. One row is one message; docs/spark.md lists the options. PySpark finds
the data source by itself in a session that starts after aerotape was installed, through the module
`pyspark_aerotape`; `register` is for sessions where that is disabled, and harmless in others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("aerotape")` known to a session.

    Workers must be able to import aerotape: set PYSPARK_PYTHON to the interpreter of its
    environment (locally `sys.executable`) before the session starts.

    Args:
        spark: the session.
    """
    from aerotape.spark.data_source import AerotapeDataSource

    spark.dataSource.register(AerotapeDataSource)
