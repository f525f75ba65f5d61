"""`python -m benchmarks.lines`: runs the cases and prints the tables."""

from __future__ import annotations

import argparse
import datetime
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from benchmarks.lines import machine, table
from benchmarks.lines.cases import CASES
from benchmarks.lines.place import Place
from benchmarks.lines.rounds import Result, compete
from dagflow.config.units import parse_size

START, STOP = "<!-- measured: begin -->", "<!-- measured: end -->"
QUICK = 8_000_000
WATCH = 3.0  # seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    given = _parser().parse_args(arguments)
    size = QUICK if given.quick else given.size
    command = shlex.join(["python", "-m", "benchmarks.lines", *(arguments if arguments is not None else sys.argv[1:])])
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    results: list[Result] = []
    patience = given.patience * 60.0
    with Place(size, given.quick, given.beam_python, given.disk) as place:
        for name in given.only or CASES:
            for case in CASES[name](place):
                if given.match and given.match not in case.name:
                    continue
                patience = _wait_for_calm(given.calm, patience)
                results.append(compete(case, 1 if given.quick else given.rounds, _say))
                print(f"\n{case.title}\n{table.figures_table(results[-1])}", flush=True)
                if given.markdown is not None:  # after each case: a run of half an hour may be ended before its time
                    _write(given.markdown, table.page(results, command, machine.describe(), today))
    print("\n" + table.goals_table(results))
    outcomes = [result.outcome(goal) for result in results for goal in result.case.goals]
    return 0 if given.quick or all(outcome is None or outcome[1] for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lines", description="Peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=2_000_000_000, help="bytes of the large inputs (2GB)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count; one more warms up (5)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this group of cases; may be given again")
    parser.add_argument("--match", help="of these, only the cases with this in their name: memory, say")
    parser.add_argument("--quick", action="store_true", help="everything small, one round: shows that it works, not how fast")
    parser.add_argument("--markdown", type=Path, help="write the tables here (between the marks, where the file has them)")
    parser.add_argument(
        "--calm", type=float, default=0.2, help="wait until others use at most this share of the processors (0.2)"
    )
    parser.add_argument("--patience", type=float, default=0, help="minutes to wait for that at most, in all (0)")
    parser.add_argument("--beam-python", help="a Python that has apache-beam, where this one does not")
    parser.add_argument("--disk", help="a folder on a local disk for inputs and outputs (that for temporary files)")
    return parser


def _write(path: Path, page: str) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, start, rest = text.partition(START)
    _, stop, after = rest.partition(STOP)
    path.write_text(f"{before}{start}\n\n{page}\n{stop}{after}" if start and stop else page, encoding="utf-8")


def _wait_for_calm(wanted: float, patience: float) -> float:
    """Waits until the machine is calm; the seconds of patience that are left."""
    while patience > 0 and machine.busy(WATCH) > wanted:
        patience -= WATCH
    return patience


def _say(text: str) -> None:
    print(f"  {text} (load {machine.load():.1f})", file=sys.stderr, flush=True)


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)  # so that the large files go in any case
    sys.exit(main())
