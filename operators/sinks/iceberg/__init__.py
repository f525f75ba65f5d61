"""Iceberg tables, as `iceberg_writer` uses them.

Read in this order: `types` (Arrow types as Iceberg stores them), `landed` (commits whose answer was lost), `snapshots` (a table,
opened by the package `pyiceberg`: its snapshots, its properties, and the commits of other writers), `durable_files` (files on
local disks that survive a power cut).
"""
