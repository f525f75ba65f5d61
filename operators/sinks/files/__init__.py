"""The files that a task's sink writes.

Read in this order: `open_files` (buffered, appended to by name, and followed by another when they are full), `packed_files`
(the same, compressed), `partitions` (batches cut by the values of columns that name folders),
`record_files` (the files of a sink of records).
"""
