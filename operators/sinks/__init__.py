"""Operators at the end of a stream, which write records to files or print them.

Read in this order:

1. `console`: the simplest sink.
2. `file_sink`: the base of all that write files: the folder, the names, when a file is full.
3. `record_writer`: lines of text.
4. `table_writer`: the base of sinks of columns, which are `csv_writer`, `json_lines_writer` and `parquet_writer`.
5. `encoding`: records and batches as text. `files`: open files, their names and folders. `parquet`: row groups and encodings.
6. `tables`: what is common to sinks that write tables of other systems.
7. `delta_writer`, `iceberg_writer`: tables with a log of transactions. `table_formats` has what both share, `delta` and
   `iceberg` the rest.
8. `sql_writer` and `postgres_writer`: rows in a database. `database` is behind them.
9. `logs`: messages in topics and streams.

A sink that writes elsewhere derives from `dagflow.Sink`.
"""
