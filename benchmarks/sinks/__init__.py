"""Sinks of tables beside other writers of the same tables. PostgreSQL runs beside, on the same processors.

Read `__main__` (PostgreSQL: COPY alone, and the peers in `others`), then `windows` (Delta and Iceberg: one large window, and
small ones after many others).
"""
