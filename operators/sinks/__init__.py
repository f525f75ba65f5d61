"""Operators at the end of a stream, which write records to files or print them.

Read in this order:

1. `console`: the simplest sink.
2. `file_sink`: the base of all that write files: the folder, the names, when a file is full.
3. `record_writer`: lines of text.
4. `table_writer`: the base of sinks of columns, which are `csv_writer`, `json_lines_writer` and `parquet_writer`.
5. `encoding`: records and batches as text. `files`: open files, their names and folders. `parquet`: row groups and encodings.

A sink that writes elsewhere than to files derives from `dagflow.Sink`.
"""
