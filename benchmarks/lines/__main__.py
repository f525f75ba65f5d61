"""`python -m benchmarks.lines`: runs the cases and prints the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import report
from benchmarks.lines.cases import CASES
from benchmarks.lines.place import Place
from dagflow.config.values.units import parse_size

MARK = "measured"
QUICK = 8_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    given = _parser().parse_args(arguments)
    told = report.Report(given, MARK, report.typed("lines", arguments))
    with Place(QUICK if given.quick else given.size, given.quick, given.beam_python, given.disk) as place:
        for name in given.only or CASES:
            for case in CASES[name](place):
                if not given.match or given.match in case.name:
                    told.run(case)
    return told.end()


def _parser() -> argparse.ArgumentParser:
    parser = report.parser("lines", "Peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=2_000_000_000, help="bytes of the large inputs (2GB)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this group of cases; may be given again")
    parser.add_argument("--match", help="of these, only the cases with this in their name: memory, say")
    parser.add_argument("--beam-python", help="a Python that has apache-beam, where this one does not")
    return parser


if __name__ == "__main__":
    report.leave_in_order()  # so that the large files go in any case
    sys.exit(main())
