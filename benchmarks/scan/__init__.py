"""Scans of tables: formats to Parquet, beside Spark, DuckDB, Polars and pyarrow."""
