"""`python -m benchmarks.measurements`: the challenge of a billion rows, with ten million lines of a station and a temperature.

The smallest, mean and largest temperature of each of 413 stations, from one file of lines such as `Lund;12.3` to Parquet, beside
DuckDB. Both run in this process, or in as many as there are slots. Nothing is kept: the launches are final.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from benchmarks import report
from benchmarks.rounds import Case, Contestant, Goal
from dagflow import launch
from dagflow.ledger import read_dataset
from operators import CsvFormat, GroupBy, ParquetWriter, agg

STATIONS = 413
SCHEMA = "station: string, temperature: double"
QUERY = (
    "SELECT station, min(temperature) AS lowest, avg(temperature) AS mean, max(temperature) AS highest"
    " FROM read_csv('{data}', delim = ';', header = false, columns = {{'station': 'VARCHAR', 'temperature': 'DOUBLE'}})"
    " GROUP BY station"
)


def make_rows(path: Path, rows: int) -> Path:
    """Write a file of so many lines: each station has temperatures around one of its own."""
    chance = np.random.default_rng(5)
    names = np.array([f"station {number} {'x' * (number % 17)}" for number in range(STATIONS)])
    usual = chance.uniform(-10, 35, STATIONS)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, rows, 1 << 20):
            stations = chance.integers(0, STATIONS, min(1 << 20, rows - start))
            degrees = chance.normal(usual[stations], 10).round(1)
            file.writelines(
                f"{name};{degree:.1f}\n" for name, degree in zip(names[stations].tolist(), degrees.tolist(), strict=True)
            )
    return path


def ours(data: Path, output: Path, slots: int) -> None:
    """Launch the application."""

    def populate_dag(dag: Any, conf: Any) -> None:
        rows = dag.read(str(data), CsvFormat(delimiter=";", header=False), SCHEMA)
        degrees = {"lowest": agg.min("temperature"), "mean": agg.mean("temperature"), "highest": agg.max("temperature")}
        rows.to(GroupBy("station", **degrees)).to(ParquetWriter(str(output)))

    launch(populate_dag, runner="local", slots=slots, final=True, progress="none").wait()


def peers(data: Path, output: Path, threads: int) -> None:
    """Run the query."""
    import duckdb

    output.mkdir(parents=True)
    with duckdb.connect(config={"threads": threads}) as database:
        database.execute(f"COPY ({QUERY.format(data=data)}) TO '{output}/rows.parquet'")


def result(output: Path, name: str) -> tuple[tuple[object, ...], ...]:
    """Return the rows, with as many digits as sums in any order have in common: no mean is halfway between two of them."""
    rows = (read_dataset(str(output)) if name.startswith("dagflow") else ds.dataset(output)).to_table().to_pylist()
    return tuple(
        sorted((row["station"], *(f"{row[column] + 1e-9:.6f}" for column in ("lowest", "mean", "highest"))) for row in rows)
    )


def cases(data: Path, output: Path) -> list[Case]:
    """Return two cases: with one slot or thread, and what a second one brings."""

    def contestant(name: str, run: Any, slots: int) -> Contestant:
        clean = partial(shutil.rmtree, output, ignore_errors=True)
        return Contestant(name, partial(run, data, output, slots), partial(result, output, name), clean, data.stat().st_size)

    one = contestant("dagflow", ours, 1)
    two = contestant("dagflow, 2 slots", ours, 2)
    return [
        Case(
            "one",
            "Temperatures by station, one slot",
            [contestant("DuckDB", peers, 1), one],
            [Goal("dagflow", "DuckDB", most=1.2)],
        ),
        Case("two", "Temperatures by station, two slots", [one, two], [Goal("dagflow, 2 slots", "dagflow", most=0.6)]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser(
        "measurements", "The smallest, mean and largest temperature of each station: DuckDB and dagflow, in turn."
    )
    parser.add_argument("--rows", type=float, default=1e7, help="lines (1e7)")
    given = parser.parse_args(arguments)
    told = report.Report(given, "measurements measured", report.typed("measurements", arguments))
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        data = make_rows(Path(folder, "measurements.txt"), 20_000 if given.quick else int(given.rows))
        for case in cases(data, Path(folder, "output")):
            told.run(case)
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
