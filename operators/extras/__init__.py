"""Packages of extras, loaded where they are used.

Read in this order:

1. `tables`: the packages of table formats, and the catalogs of Iceberg tables.
2. `errors`: a package that is missing.
"""
