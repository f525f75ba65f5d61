"""Delta tables, as `delta_writer` uses them.

Read in this order: `types` (Arrow types as Delta stores them), `stats` (statistics of files), `appends` (versions that add files,
written without `deltalake`), `stand_in` (an empty copy of a table, which says what the table refuses), `log` (a table: its
version, its transactions, and the commits of other writers).
"""
