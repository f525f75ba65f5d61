"""`python -m benchmarks.live`: launches with and without live figures, in turn, and prints their processor time.

Without: tasks write no live records, and the driver reads none and sends no `operator_progress`. No setting does that, so the
processes of the launch find a `sitecustomize` that replaces these methods. Operators are timed in both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import machine, report
from benchmarks.lines.inputs import counted
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal
from dagflow.config.values.units import parse_size

MARK = "live figures measured"
QUICK = 2_000_000
ON, OFF = "with live figures", "without"
FOLDERS = {ON: "on", OFF: "off"}
HERE = Path(__file__).parent


def launched(name: str, runner: str, source: Path, target: Path, application: str = "apps/line_filter") -> float:
    """Run a launch, and return the processor seconds of all its processes."""
    paths = [str(HERE / FOLDERS[name]), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "dagflow", "launch", application, "-D", f"input={source}", "-D", f"output={target}"]
    others, before = machine.children(), machine.processor_seconds()
    subprocess.run(
        [*command, "--runner", runner, "--progress", "none"],
        cwd=HERE.parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    machine.bury_orphans(others)
    return machine.processor_seconds() - before


def cases(place: Place, runners: Sequence[str]) -> Iterator[Case]:
    """Yield a case for each runner."""
    source, target = place.lines(), place.target("disk")
    for runner in runners:
        contestants = [
            Contestant(
                name, partial(launched, name, runner, source, target), partial(counted, target), partial(place.clean, "disk")
            )
            for name in (OFF, ON)
        ]
        title = f"Processor seconds to filter lines, {runner} runner"
        yield Case(runner, title, contestants, [Goal(ON, OFF, most=1.01)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases. Return 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("live", "A launch with live figures and without, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=1_000_000_000, help="bytes of the input (1GB)")
    parser.add_argument("--only", action="append", choices=["local", "spark"], help="use this runner; may be given again")
    given = parser.parse_args(arguments)
    results = report.Report(given, MARK, report.typed("live", arguments))
    machine.adopt_orphans()  # JVMs, whose launches do not wait for them
    with Place(QUICK if given.quick else given.size, given.quick, None, given.disk) as place:
        for case in cases(place, given.only or (["local"] if given.quick else ["local", "spark"])):
            results.run(case)
    return results.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
