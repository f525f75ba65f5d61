"""Launches of a query while files come."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from benchmarks.suite import Suite, duckdb_over, ours


def check_launches(suite: Suite, data: Path, folder: Path, name: str) -> None:
    """Assert that a query has the rows of DuckDB after each of three launches, which find more files each time."""
    tables, chance = folder / "tables", random.Random(name)
    program = ours(suite, tables, folder / "ours", {"slots": 1, "durability": "process"}, final=False)
    files = sorted(path for table in suite.tables for path in (data / table).iterdir())
    coming = [next(path for path in files if path.parent.name == table) for table in suite.tables]  # from the start: one of each
    later = [path for path in files if path not in coming]
    chance.shuffle(later)
    cut = chance.randrange(1, len(later))
    for new in (coming, later[:cut], later[cut:]):
        for path in new:
            (tables / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tables / path.parent.name)
        program.run(name)
        duckdb = duckdb_over(suite, tables, folder / "duckdb")
        duckdb.run(name)
        assert program.rows() == duckdb.rows()
    assert duckdb.rows(), "a query without rows shows nothing"
