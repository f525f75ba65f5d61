"""`python -m benchmarks.tpch`: queries of TPC-H by operators, beside DuckDB and PySpark with the same rows; prints the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import report, suite
from benchmarks.tpch.data import make_data
from benchmarks.tpch.queries import TPCH


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = suite.parser(TPCH, "Queries of TPC-H over Parquet files, by operators. No start of a process counts.")
    parser.add_argument("--scale", type=float, default=1, help="the scale factor: 1 are 6,000,000 lines (1)")
    given = parser.parse_args(arguments)
    return suite.run(TPCH, given, arguments, lambda folder: make_data(folder, 0.01 if given.quick else given.scale))


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
