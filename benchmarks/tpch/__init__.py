"""TPC-H by operators, beside DuckDB and PySpark: `python -m benchmarks.tpch`. Its queries also show the short form of DAGs.

Read in this order:

1. `queries`: the queries, by operators and as SQL.
2. `data`: the tables.
3. `__main__`: the command. `benchmarks.suite` runs the queries.
"""
