"""Iceberg tables, as `iceberg_writer` uses them.

Read in this order: `types` (Arrow types as Iceberg stores them), `snapshots` (a table, opened by the package `pyiceberg`: its
snapshots, its properties, and the commits of other writers).
"""
