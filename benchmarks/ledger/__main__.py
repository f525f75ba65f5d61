"""`python -m benchmarks.ledger`: builds the logs, runs the cases and prints the tables."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.ledger.cases import cases

MARK = "ledger measured"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    given = report.parser("ledger", "Delta Lake's log and dagflow's, in turn, in one go.").parse_args(arguments)
    told = report.Report(given, MARK, report.typed("ledger", arguments))
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        for case in cases(Path(folder), given.quick):
            told.run(case)
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()  # so that the many files go in any case
    sys.exit(main())
