"""Packages of extras, loaded where they are used.

Read in this order:

1. `tables`: the packages of table formats, and the catalogs of Iceberg tables.
2. `unavailable`: catalogs that are busy, or do not answer.
3. `stores`: object stores of tables that are busy.
4. `delta_log`: entries in the log of a Delta table that have no bytes.
5. `errors`: a table that cannot be opened, or whose log is damaged.
"""
