"""`python -m benchmarks.exchange`: runs the cases and prints the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import report
from benchmarks.exchange.cases import CASES
from benchmarks.lines.place import Place
from dagflow.config.values.units import parse_size

MARK = "exchange measured"
QUICK = 2_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("exchange", "Word counts over an exchange: peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=2_000_000_000, help="bytes of the largest input (2GB)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this case; may be given again")
    parser.add_argument("--beam-python", help="a Python that has apache-beam, where this one does not")
    given = parser.parse_args(arguments)
    told = report.Report(given, MARK, report.typed("exchange", arguments))
    with Place(QUICK if given.quick else given.size, given.quick, given.beam_python, given.disk) as place:
        for name in given.only or CASES:
            told.run(CASES[name](place))
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()  # so that the large files go in any case
    sys.exit(main())
