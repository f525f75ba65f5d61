"""The rows that a launch reads again which was killed in the middle of a bounded input: those not decided, and no more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.testing import Collector, run_dag
from operators import Deduplicate, Distinct, GroupBy, HashJoin, agg
from tests.conformance.faults.dying import Died

FILES, ROWS, A_WINDOW = 15, 50, 3
READ: Counter[str] = Counter()
LAST: list[int] = []


@attrs.define
class Counted(Operator):
    """Counts the rows that tasks of this process have read, and dies at the last of them that it may read."""

    scope = "rows"
    selects_rows = True
    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.batch
    def each(self, batch: pa.RecordBatch) -> None:
        READ["rows"] += batch.num_rows
        if LAST and READ["rows"] > LAST[0]:
            raise Died
        self.output.emit_batch(batch)


def populating(folder: Path, kind: str, seen: Collector[Any]) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        def rows(name: str, part: str) -> Any:
            source = dag.read(folder / part, "csv", schema="k: int64, v: int64", name=name)
            dag.operators[f"{name}_files"].operator.window_bytes = A_WINDOW * size_of_file
            return source.to(Counted(), name=f"{name}_counted")

        size_of_file = max(file.stat().st_size for file in folder.rglob("*.csv"))
        left = rows("left", "one")
        if kind == "join":
            joined = dag.add_operator("it", HashJoin(by="k"))
            dag.add_stream("lefts", left, joined.left)
            dag.add_stream("rights", rows("right", "other").to(Distinct("k"), name="keys"), joined.right)
            left = joined.output
        else:
            left = left.to(GroupBy("k", n=agg.count()) if kind == "group" else Deduplicate(by="k", order_by="v"), name="it")
        left.to(seen, name="seen")

    return populate_dag


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part, count in (("one", FILES), ("other", FILES // 2)):
        (tmp_path / part).mkdir()
        for number in range(count):
            rows = "".join(f"{row * 7919 % 97},{1000 + row}\n" for row in range(ROWS))
            (tmp_path / part / f"{number:03d}.csv").write_text(f"k,v\n{rows}")
    return tmp_path


def run(populate_dag: Any, run_folder: Path, last: int | None = None) -> int:
    """Launch, and return how many rows were read until the end or the kill."""
    READ.clear()
    LAST[:] = [] if last is None else [last]
    try:
        run_dag(populate_dag, run_folder=str(run_folder))
        assert last is None
    except Died:
        assert last is not None
    return READ["rows"]


@pytest.mark.parametrize("kind", ["group", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("deduplicate", "join"))])
def test_a_killed_launch_reads_only_windows_again_that_were_not_decided(folder: Path, kind: str) -> None:
    whole, seen = Collector[Any](), Collector[Any]()
    total = run(populating(folder, kind, whole), folder / "whole")
    populate_dag = populating(folder, kind, seen)
    killed = run(populate_dag, folder / "run", last=total * 9 // 10)
    rest = run(populate_dag, folder / "run")
    read_again = killed + rest - total
    sources = 2 if kind == "join" else 1
    assert killed > total * 8 // 10
    assert 0 < read_again <= sources * A_WINDOW * ROWS, "a part of the window that was killed"
    assert Counter(map(repr, seen.records)) == Counter(map(repr, whole.records))
