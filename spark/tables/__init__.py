"""Jobs that convert recordings into tables: folders of Parquet files, and Delta tables."""
