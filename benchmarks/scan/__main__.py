"""`python -m benchmarks.scan`: runs the cases and prints the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import report
from benchmarks.lines.place import Place
from benchmarks.scan.cases import CASES
from dagflow.config.values.units import parse_size

MARK = "scans measured"
QUICK = 2_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("scan", "Scans to Parquet: peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=2_000_000_000, help="bytes of the inputs (2GB)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this group of cases; may be given again")
    parser.add_argument("--match", help="of these, only the cases with this in their name: 3 of 20, say")
    given = parser.parse_args(arguments)
    told = report.Report(given, MARK, report.typed("scan", arguments))
    with Place(QUICK if given.quick else given.size, given.quick, None, given.disk) as place:
        for name in given.only or CASES:
            for case in CASES[name](place):
                if not given.match or given.match in case.name:
                    told.run(case)
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()  # so that the large files go in any case
    sys.exit(main())
