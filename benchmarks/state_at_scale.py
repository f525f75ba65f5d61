"""`python -m benchmarks.state_at_scale`: aggregate, deduplicate and join many rows, beside DuckDB; and the memory that it takes.

Both read the same Parquet files and write Parquet, on two processors. Each run is a process of its own, so that its memory can be
told. dagflow also keeps what a later launch needs to go on: the groups, the rows of each key, both sides of the join.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks import machine, report
from benchmarks.rounds import Case, Contestant, Goal, Limit
from dagflow import DAG, launch
from operators import Deduplicate, FileSplitterInput, GroupBy, HashJoin, ParquetFormat, ParquetWriter, ScanReader, agg

MARK = "state at scale measured"
OURS, PEER, SLOTS = "dagflow", "DuckDB", 2
MB = 1_000_000
FILES = 8
QUERIES = {
    "aggregate": "SELECT key, count(*) AS n, sum(a)::BIGINT AS total FROM '{left}' GROUP BY key",
    "deduplicate": "SELECT DISTINCT ON (key) * FROM '{left}' ORDER BY key, a, b, c",
    "join": "SELECT key, l.a, l.b, l.c, r.a AS a_right, r.b AS b_right, r.c AS c_right"
    " FROM '{left}' AS l JOIN '{right}' AS r USING (key)",
}
TITLES = {
    "aggregate": "Count and sum of {} rows by key",
    "deduplicate": "A row of each key of {}",
    "join": "{0} rows joined with as many",
}


@attrs.define
class Settings:
    """The settings of the applications below."""

    work: str
    left: str
    right: str
    output: str


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Do the work that the settings name."""

    def rows(side: str) -> Any:
        files = dag.add_operator(f"{side}_files", FileSplitterInput(files=getattr(conf, side)))
        reader = dag.add_operator(f"{side}_rows", ScanReader(ParquetFormat()))
        dag.add_stream(f"{side}_blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        return reader.batches

    sink = dag.add_operator("sink", ParquetWriter(conf.output, compression="snappy"))
    if conf.work == "join":
        join = dag.add_operator("join", HashJoin("key"))
        dag.add_stream("left", rows("left"), join.left)
        dag.add_stream("right", rows("right"), join.right)
        dag.add_stream("joined", join.output, sink.input)
        return
    if conf.work == "aggregate":
        keyed: Any = dag.add_operator("totals", GroupBy("key", n=agg.count(), total=agg.sum("a")))
    else:
        keyed = dag.add_operator("first", Deduplicate(by="key", order_by="a"))
    dag.add_stream("rows", rows("left"), keyed.input)
    dag.add_stream("results", keyed.output, sink.input)


def make_rows(folder: Path, rows: int, width: int, seed: int, *, unique: bool) -> Path:
    """Files of rows of so many bytes: a key, three numbers, and text where they are wider. `unique`: each key comes once."""
    folder.mkdir()
    chance = np.random.default_rng(seed)
    keys = chance.permutation(rows) if unique else chance.integers(0, rows, rows)
    letters = chance.integers(97, 123, 1 << 20, dtype=np.uint8).tobytes()
    for number in range(FILES):
        part = keys[number * rows // FILES : (number + 1) * rows // FILES]
        columns = {
            "key": part,
            "a": chance.integers(0, 1 << 20, len(part)),
            "b": np.arange(len(part)),
            "c": chance.random(len(part)),
        }
        table = pa.table(columns)
        if (rest := width - 32) > 0:
            starts = chance.integers(0, len(letters) - rest, len(part)).tolist()
            table = table.append_column(
                "text", pa.array([letters[at : at + rest] for at in starts], pa.binary()).cast(pa.string())
            )
        pq.write_table(table, folder / f"{number}.parquet", compression="snappy")
    return folder


def ours(work: str, left: str, right: str, output: str) -> None:
    """Launch the application, with the settings that launches have by default; without syncs, as the peer."""
    launch(populate_dag, Settings(work, left, right, output), runner="local", slots=SLOTS, durability="process", progress="none")


def peers(work: str, left: str, right: str, output: str) -> None:
    """Run the query."""
    import duckdb

    Path(output).mkdir(parents=True)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {SLOTS}")
    query = QUERIES[work].format(left=f"{left}/*.parquet", right=f"{right}/*.parquet")
    connection.execute(f"COPY ({query}) TO '{output}/result.parquet' (FORMAT parquet, COMPRESSION snappy)")


@attrs.define
class Runner:
    """Runs contestants in processes of their own. `peaks`: the most memory of a process of each, of all its runs, in MB."""

    left: Path
    right: Path
    output: Path
    peaks: dict[tuple[str, str], float] = attrs.field(factory=dict)

    def run(self, work: str, name: str) -> float:
        """Run one once, and return its seconds: from the start of its work, since the starts of Pythons are alike."""
        command = [sys.executable, "-m", __spec__.name, "--run", name, work, *map(str, (self.left, self.right, self.output))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            highest = [0]
            watching = threading.Thread(target=_watch, args=(process.pid, highest))
            watching.start()
            assert process.stdout is not None
            seconds = process.stdout.read()
        watching.join()
        if process.returncode:
            raise RuntimeError(f"{name} ended with {process.returncode}")
        self.peaks[work, name] = max(highest[0] / MB, self.peaks.get((work, name), 0))
        return float(seconds.split()[-1])

    def clean(self) -> None:
        """Remove the result."""
        shutil.rmtree(self.output, ignore_errors=True)

    def result(self) -> tuple[int, ...]:
        """Return the number of rows, and sums of the columns of integers."""
        rows = ds.dataset(sorted(map(str, self.output.rglob("*.parquet"))))
        count, sums = (
            0,
            dict.fromkeys((name for name in rows.schema.names if pa.types.is_integer(rows.schema.field(name).type)), 0),
        )
        for batch in rows.to_batches(columns=list(sums)):
            count += batch.num_rows
            for name in sums:
                sums[name] += int(batch.column(name).to_numpy().sum())
        return (count, *(sums[name] for name in sorted(sums)))


def _watch(pid: int, highest: list[int]) -> None:
    """Note the most that a process below another one has had in memory, or it itself, until it ends."""
    while machine.memory(pid, "VmRSS"):
        highest[0] = max(highest[0], *(machine.memory(each, "VmHWM") for each in (pid, *machine.descendants(pid))))
        time.sleep(0.05)


def cases(folder: Path, rows: int, width: int, works: Sequence[str]) -> Iterator[Case]:
    """Yield two cases for each kind of work: its time, and its memory."""
    left = make_rows(folder / "left", rows, width, 3, unique=False)
    right = make_rows(folder / "right", rows, width, 4, unique=True) if "join" in works else folder / "right"
    runner = Runner(left, right, folder / "output")
    for work in works:
        title = TITLES[work].format(f"{rows:,}") + f", {width} bytes each"

        def contestant(name: str, work: str = work) -> Contestant:
            return Contestant(name, partial(runner.run, work, name), runner.result, runner.clean)

        yield Case(work, title, [contestant(PEER), contestant(OURS)], [Goal(OURS, PEER, most=4)], warm_up=0)
        peaks = [Contestant(name, partial(runner.peaks.__getitem__, (work, name))) for name in (PEER, OURS)]
        yield Case(
            f"{work}, memory",
            f"{title}: the most memory of a process",
            peaks,
            [Limit(OURS, 2000, "MB")],
            "MB",
            rounds=1,
            warm_up=0,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("state_at_scale", "Aggregate, deduplicate and join many rows: DuckDB and dagflow, in turn.")
    parser.add_argument("--rows", type=float, default=1e7, help="rows of a side (1e7)")
    parser.add_argument("--width", type=int, default=32, help="bytes of a row (32)")
    parser.add_argument("--only", action="append", choices=list(QUERIES), help="do this work only; may be given again")
    parser.add_argument("--run", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.run:
        name, *rest = given.run
        began, used = time.perf_counter(), machine.processor_seconds()
        {OURS: ours, PEER: peers}[name](*rest)
        report.say(f"{name}: {machine.processor_seconds() - used:.1f} processor seconds, without imports")
        print(time.perf_counter() - began)
        return 0
    told = report.Report(given, MARK, report.typed("state_at_scale", arguments))
    rows = 2_000 if given.quick else int(given.rows)
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        for case in cases(Path(folder), rows, given.width, given.only or list(QUERIES)):
            told.run(case)
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
