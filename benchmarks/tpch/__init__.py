"""TPC-H by operators, beside DuckDB and PySpark: `python -m benchmarks.tpch`. Its queries also show the short form of DAGs.

Read in this order:

1. `queries`: the queries, by operators and as SQL.
2. `peers`: programs that run the SQL, and what came out, made comparable.
3. `__main__`: the cases.
"""
