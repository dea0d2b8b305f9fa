"""Registration of the data source "aerotape" with PySpark.

At the first use of a Python data source, PySpark 4 imports each top-level module whose name
begins with `pyspark_` and registers its `DefaultSource`. An import that fails would take all
other data sources of the session down with it, so this imports nothing native.
"""

from aerotape.spark.data_source import AerotapeDataSource as DefaultSource

__all__ = ["DefaultSource"]
