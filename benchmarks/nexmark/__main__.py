"""`python -m benchmarks.nexmark`: queries of Nexmark by operators, beside DuckDB and PySpark with the same rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import report, suite
from benchmarks.nexmark.data import make_data
from benchmarks.nexmark.queries import NEXMARK

QUICK = (20_000, 400)
"""Events and rate with --quick: fifty seconds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = suite.parser(NEXMARK, "Queries of Nexmark over Parquet files, by operators. No start of a process counts.")
    parser.add_argument("--events", type=float, default=1e6, help="persons, auctions and bids in all (1e6)")
    parser.add_argument("--rate", type=float, default=10_000, help="events in a second of their own time (10000)")
    given = parser.parse_args(arguments)
    events, rate = QUICK if given.quick else (int(given.events), given.rate)
    return suite.run(NEXMARK, given, arguments, lambda folder: make_data(folder, events, rate))


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
