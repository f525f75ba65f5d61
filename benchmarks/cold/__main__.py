"""`python -m benchmarks.cold`: runs whole commands in turn and prints the tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import machine, report
from benchmarks.lines.inputs import counted, make_many, size_of
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal, Limit
from benchmarks.scan.inputs import make_json, make_table, summed
from benchmarks.scan.peers import is_there
from dagflow.config.values.units import parse_size

MARK = "cold starts measured"
QUICK = 2_000_000
ROOT = Path(__file__).parents[2]
SCRIPT, COLD, WARMED, LOCAL, NATIVE, GREP, DUCKDB, POLARS = (
    "Spark script",
    "dagflow, no class archive",
    "dagflow, class archive",
    "dagflow, local runner",
    "dagflow, local runner, dagflow-native",
    "grep -v, one process",
    "DuckDB",
    "Polars",
)


def _command(arguments: Sequence[str | Path], output: Path | None = None) -> float:
    """Run a command, and return its seconds; JVMs that outlive it by a moment count for its processor seconds."""
    from dagflow.spark.jvm.java import find_java

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # users have bytecode
    environment |= {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    others, began = machine.children(), time.perf_counter()
    with (output or Path(os.devnull)).open("wb") as file:
        done = subprocess.run([*map(str, arguments)], cwd=ROOT, env=environment, stdout=file, stderr=subprocess.PIPE, check=False)
    seconds = time.perf_counter() - began
    machine.bury_orphans(others)
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return seconds


def _launch(application: str, source: Path, target: Path, *options: str) -> list[str]:
    program = [sys.executable, "-m", "dagflow", "launch", application, "-D", f"input={source}", "-D", f"output={target}"]
    return [*program, "--progress", "none", *options]


def _peer(engine: str, kind: str, source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.cold.peer", engine, kind, str(source), str(target)]


def _contestants(
    place: Place, application: str, source: Path, peers: dict[str, list[str]], check: Callable[[Path], object]
) -> Iterator[Contestant]:
    target, clean, size = place.target("disk"), partial(place.clean, "disk"), size_of(source)
    commands = {**peers, LOCAL: _launch(application, source, target, "--runner", "local")}
    if not place.quick:
        commands[COLD] = _launch(application, source, target, "--class-archive", "off")
        commands[WARMED] = _launch(application, source, target, "--class-archive", "use")
    for name, command in commands.items():
        yield Contestant(name, partial(_command, command), partial(check, target), clean, size)


def _lines_of(target: Path) -> int:
    return counted(target)[0]


def lines(place: Place) -> Iterator[Case]:
    """Lines, filtered."""
    source, target = place.lines(), place.target("disk")
    peers = {} if place.quick else {SCRIPT: _peer("spark", "lines", source, target)}
    grep = Contestant(
        GREP,
        partial(_command, ["grep", "-v", r"^\.", source], target),
        partial(_lines_of, target),
        partial(place.clean, "disk"),
        source.stat().st_size,
    )
    contestants = [*_contestants(place, "apps/line_filter", source, peers, _lines_of), grep]
    goals = [Goal(COLD, SCRIPT, most=0.75), Goal(WARMED, SCRIPT, most=0.5)]
    yield Case("lines", "Lines, filtered", contestants, [*goals, Goal(LOCAL, SCRIPT, most=0.2), Goal(LOCAL, GREP, most=1.0)])
    source.unlink()


def small(place: Place) -> Iterator[Case]:
    """Lines of many small files, filtered."""
    source = place.small_files()
    peers = {} if place.quick else {SCRIPT: _peer("spark", "lines", source, place.target("disk"))}
    contestants = [*_contestants(place, "apps/line_filter", source, peers, _lines_of)]
    yield Case("small", "Lines of 8,000 files of 12 KB, filtered", contestants, [Goal(LOCAL, SCRIPT, least=3.0)])
    shutil.rmtree(source)


def tiny(place: Place) -> Iterator[Case]:
    """Two tiny files, filtered: what a launch itself takes."""
    source = make_many(place.disk / "tiny", 2)
    local = [each for each in _contestants(place, "apps/line_filter", source, {}, _lines_of) if each.name == LOCAL]
    yield Case("tiny", "Two files of one line, filtered", local, [Limit(LOCAL, 0.7)])
    shutil.rmtree(source)


def _scan(place: Place, name: str, title: str, source: Path, most: float, native: str | None = None) -> Iterator[Case]:
    application, target = f"benchmarks/scan/ours.py:{name}_to_parquet", place.target("disk")
    engines = {} if place.quick else {SCRIPT: "spark"}
    engines |= {label: package for label, package in ((DUCKDB, "duckdb"), (POLARS, "polars")) if is_there(package)}
    others = {label: _peer(engine, name, source, target) for label, engine in engines.items()}
    goals = [Goal(WARMED, SCRIPT, most=0.4), Goal(LOCAL, DUCKDB, most=most)]
    if native is not None:
        others[NATIVE] = [native, *_launch(application, source, target, "--runner", "local")[1:]]
        goals.append(Goal(NATIVE, DUCKDB, most=most))
    yield Case(name, title, [*_contestants(place, application, source, others, summed)], goals)
    source.unlink()


def csv(place: Place) -> Iterator[Case]:
    """CSV to Parquet."""
    yield from _scan(place, "csv", "CSV, 20 columns, to Parquet", make_table(place.disk / "table.csv", place.size // 2), 1.0)


def json(place: Place, native: str | None = None) -> Iterator[Case]:
    """JSON lines to Parquet. `native`: a Python that has dagflow and `dagflow-native`."""
    source = make_json(place.disk / "table.jsonl", place.size // 2)
    yield from _scan(place, "json", "JSON lines, 20 columns, to Parquet", source, 1.2, native)


CASES = {"lines": lines, "small": small, "tiny": tiny, "csv": csv, "json": json}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that are selected. Return 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("cold", "Whole commands from a shell: peers and dagflow, in turn, in one go.")
    parser.add_argument("--size", type=parse_size, default=1_000_000_000, help="bytes of the lines; CSV and JSON have half (1GB)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="run this group of cases; may be given again")
    parser.add_argument("--native-python", metavar="PYTHON", help="a Python that has dagflow and dagflow-native")
    given = parser.parse_args(arguments)
    results = report.Report(given, MARK, report.typed("cold", arguments))
    machine.adopt_orphans()  # JVMs, whose launches do not wait for them
    cases: dict[str, Callable[[Place], Iterator[Case]]] = {**CASES, "json": partial(json, native=given.native_python)}
    with Place(QUICK if given.quick else given.size, given.quick, None, given.disk) as place:
        if not given.quick:
            _command([sys.executable, "-m", "dagflow", "warm"])
        for name in given.only or CASES:
            for case in cases[name](place):
                results.run(case)
    return results.end()


if __name__ == "__main__":
    report.leave_in_order()  # so that the large files go in any case
    sys.exit(main())
