"""Our side: one application for each kind of input, as `dagflow launch app.py:NAME` runs them."""

from __future__ import annotations

from benchmarks.scan.ours import csv_to_parquet, json_to_parquet

__all__ = ["csv_to_parquet", "json_to_parquet"]
