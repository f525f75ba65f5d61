"""`python -m benchmarks.cold`: runs whole commands in turn and prints the tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal
from benchmarks.scan.inputs import make_json, make_table, summed
from benchmarks.scan.peers import is_there
from dagflow.config.values.units import parse_size

MARK = "cold starts measured"
QUICK = 2_000_000
ROOT = Path(__file__).parents[2]
SCRIPT, COLD, WARMED, LOCAL, GREP, DUCKDB, POLARS = (
    "Spark script",
    "dagflow, no class archive",
    "dagflow, class archive",
    "dagflow, local runner",
    "grep -v, one process",
    "DuckDB",
    "Polars",
)


def _command(arguments: Sequence[str | Path], output: Path | None = None) -> None:
    from dagflow.spark.jvm.java import find_java

    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    with (output or Path(os.devnull)).open("wb") as file:
        done = subprocess.run([*map(str, arguments)], cwd=ROOT, env=environment, stdout=file, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")


def _launch(application: str, source: Path, target: Path, *options: str) -> list[str]:
    program = [sys.executable, "-m", "dagflow", "launch", application, "-D", f"input={source}", "-D", f"output={target}"]
    return [*program, "--progress", "none", *options]


def _peer(name: str, source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.cold.peer", name, str(source), str(target)]


def _remove(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def _contestants(
    place: Place, application: str, source: Path, peers: dict[str, str], check: Callable[[Path], object]
) -> Iterator[Contestant]:
    target = place.disk / "out"
    commands = {name: _peer(peer, source, target) for name, peer in peers.items()}
    commands[LOCAL] = _launch(application, source, target, "--runner", "local")
    if not place.quick:
        commands[COLD] = _launch(application, source, target, "--class-archive", "off")
        commands[WARMED] = _launch(application, source, target, "--class-archive", "use")
    for name, command in commands.items():
        yield Contestant(
            name, partial(_command, command), partial(check, target), partial(_remove, target), source.stat().st_size
        )


def _lines_of(target: Path) -> int:
    files = [target] if target.is_file() else [p for p in target.rglob("*") if p.is_file() and not p.name.startswith(("_", "."))]
    return sum(path.read_bytes().count(b"\n") for path in files if "_dagflow" not in path.parts)


def lines(place: Place) -> Iterator[Case]:
    """Lines, filtered."""
    source, target = place.lines(), place.disk / "out"
    peers = {} if place.quick else {SCRIPT: "spark_lines"}
    grep = Contestant(
        GREP,
        partial(_command, ["grep", "-v", r"^\.", source], target),
        partial(_lines_of, target),
        partial(_remove, target),
        source.stat().st_size,
    )
    contestants = [*_contestants(place, "apps/line_filter", source, peers, _lines_of), grep]
    goals = [Goal(COLD, SCRIPT, most=0.75), Goal(WARMED, SCRIPT, most=0.5)]
    yield Case("lines", "Lines, filtered", contestants, [*goals, Goal(LOCAL, SCRIPT, most=0.2), Goal(LOCAL, GREP, most=1.0)])
    source.unlink()


def _scan(place: Place, name: str, title: str, source: Path, most: float) -> Iterator[Case]:
    peers = {} if place.quick else {SCRIPT: f"spark_{name}"}
    peers |= {label: f"{package}_{name}" for label, package in ((DUCKDB, "duckdb"), (POLARS, "polars")) if is_there(package)}
    contestants = [*_contestants(place, f"benchmarks/cold/app.py:{name}_to_parquet", source, peers, summed)]
    yield Case(name, title, contestants, [Goal(WARMED, SCRIPT, most=0.4), Goal(LOCAL, DUCKDB, most=most)])
    source.unlink()


def csv(place: Place) -> Iterator[Case]:
    """CSV to Parquet."""
    yield from _scan(place, "csv", "CSV, 20 columns, to Parquet", make_table(place.disk / "table.csv", place.size), 1.0)


def json(place: Place) -> Iterator[Case]:
    """JSON lines to Parquet."""
    yield from _scan(place, "json", "JSON lines, 20 columns, to Parquet", make_json(place.disk / "table.jsonl", place.size), 1.2)


CASES = {"lines": lines, "csv": csv, "json": json}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that are selected. Return 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("cold", "Whole commands from a shell: peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=500_000_000, help="bytes of the inputs (500MB)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this group of cases; may be given again")
    given = parser.parse_args(arguments)
    results = report.Report(given, MARK, report.typed("cold", arguments))
    with Place(QUICK if given.quick else given.size, given.quick, None, given.disk) as place:
        if not given.quick:
            _command([sys.executable, "-m", "dagflow", "warm"])
        for name in given.only or CASES:
            for case in CASES[name](place):
                results.run(case)
    return results.end()


if __name__ == "__main__":
    report.leave_in_order()  # so that the large files go in any case
    sys.exit(main())
