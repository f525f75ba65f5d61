"""The same work as scripts: `python -m benchmarks.cold.peer ENGINE KIND SOURCE TARGET`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.scan import json_peers, peers

SCANS = {"csv": peers, "json": json_peers}
"""The peers of the warm benchmark, by the kind of input; each has a function for each engine."""


def _session() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def run(engine: str, kind: str, source: Path, target: Path) -> None:
    """Filter lines with Spark, or convert CSV or JSON lines to Parquet with any engine."""
    if kind == "lines":
        from pyspark.sql import functions as f

        _session().read.option("recursiveFileLookup", True).text(str(source)).filter(~f.col("value").startswith(".")).write.text(
            str(target)
        )
    elif engine == "spark":
        SCANS[kind].spark(_session())(source, target, None)
    else:
        getattr(SCANS[kind], engine)(source, target, None)


if __name__ == "__main__":
    engine, kind, source, target = sys.argv[1:]
    run(engine, kind, Path(source), Path(target))
