"""Operators that read sources other than files.

`postgres_input`: PostgresInput, which reads a table of PostgreSQL by a key that grows. The package `postgres` has its parts.
"""
