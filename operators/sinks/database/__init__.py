"""Windows in tables of a database: staged by tasks, published in one transaction with a record of the window.

Read in this order:

1. `dialect`: the parts in which databases differ: `SqlDialect`. `sqlite` and `postgres` are two of them.
2. `staging`: a task loads its rows into tables of its own.
3. `publishing`: the transaction that brings these rows into the table, and the record of the window with them.
   `row_changes`: upserts by whole rows.
4. `writer`: the base of the operators, which puts these together.

`errors`: the failures. docs/how-to/postgres.md has the guarantees in a table.
"""
