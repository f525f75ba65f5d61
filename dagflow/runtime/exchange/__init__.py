"""Exchanges: rows of Arrow batches that cross from one level of a window to the next by hash, round-robin, gather or forward.

Read `rows` (the row), `sender` (makes rows of records, and samples keys with `hot_keys`), then `channels` (the rows that arrive
for a task, and where it sends its own) and `pump` (lets a task send rows while it works). `dataframes` and `fitting` serve
operators whose body is a function of DataFrames.
"""
