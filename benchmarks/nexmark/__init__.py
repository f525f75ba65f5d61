"""Nexmark by operators, beside DuckDB and PySpark: `python -m benchmarks.nexmark`. Queries over auctions, with time windows.

They are those of Apache Beam (https://beam.apache.org/documentation/sdks/java/testing/nexmark/) and of Apache Flink
(https://github.com/nexmark/nexmark). Read in this order:

1. `queries`: the queries, by operators and as SQL.
2. `data`: the tables.
3. `__main__`: the command. `benchmarks.suite` runs the queries.
"""
