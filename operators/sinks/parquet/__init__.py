"""Parquet files: `files` has the rows that wait for their row group, `encodings` chooses how columns are encoded."""
