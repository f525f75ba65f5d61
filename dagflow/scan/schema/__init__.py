"""Schemas of scans: the columns that are read, provided, asked for, and returned.

Read `plain` and `types` (names and Arrow types), then `table` (a schema that the caller provides), `projection` and `implicit`
(columns asked for; columns of the file itself), then `shape` (the columns that a scan returns), and `cast` (values into them).
"""
