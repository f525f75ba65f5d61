"""Rows out of PostgreSQL beside other readers of the same table. The server runs beside, on the same processors.

Read `ours` (the application), `peers` (psycopg, and Spark's JDBC reader), then `__main__`.
"""
