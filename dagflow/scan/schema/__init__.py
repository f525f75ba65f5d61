"""Schemas of scans: the columns that are read, provided, selected, and returned.

Read `plain` and `types` (names and Arrow types), `time_formats` and `numbers` (dates, times and numbers in text), then `table` (a
schema that the caller provides), `projection` and `implicit` (columns that are selected; columns that are known of each file),
then `shape` (the columns that a scan returns), and `cast` (values into them).
"""
