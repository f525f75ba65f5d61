"""Rows that are taken back leave Delta and Iceberg tables: upserts of changing streams, against a dict and DuckDB."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG, StagedWindow
from dagflow.errors import ChangesRefused, KeysNotUnique, RowsShareKeys
from dagflow.testing import OperatorTask, run_dag
from operators import DeltaWriter, FileSplitterInput, GroupBy, IcebergWriter, JsonLinesFormat, ScanReader, agg
from tests.chaos.dying import die_at
from tests.operators.sinks.test_table_kills import STEPS, Died, die, lose_the_answer
from tests.tiers import examples

kinds = pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
SCHEMA = pa.schema(
    {"k": pa.int64(), "name": pa.string(), "v": pa.float64(), "part": pa.string(), "all": pa.struct({"n": pa.list_(pa.int64())})}
)
Key = tuple[int, str]
Change = tuple[int, Any]
"""A sign, and a row or a batch."""


def sink_of(kind: str, folder: Path, keys: Sequence[str], mode: Any = "upsert", **options: Any) -> Any:
    if kind == "delta":
        return DeltaWriter(f"{folder}/table", mode, keys=keys, **options)
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/table"}
    return IcebergWriter("shop.rows", catalog, mode, keys=keys, **options)


def content(kind: str, folder: Path) -> list[dict[str, Any]]:
    """The rows, as Polars reads a Delta table, and pyiceberg an Iceberg table."""
    if kind == "delta":
        return pl.read_delta(f"{folder}/table").to_dicts()
    rows: list[dict[str, Any]] = sink_of(kind, folder, []).open_table().table.scan().to_arrow().to_pylist()
    return rows


def comparable(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows in an order, in which every NaN is the same value, and -0.0 is 0.0."""
    return sorted(
        repr([None if row[name] is None else row[name] + 0.0 if name == "v" else row[name] for name in SCHEMA.names])
        for row in rows
    )


def staged(sink: Any, number: int, *tasks: list[Change]) -> StagedWindow:
    """Stage the changes of a window in tasks of their own, each change as a chunk."""
    found = []
    for changes in tasks:
        with OperatorTask(writer := attrs.evolve(sink), name="sink", window=number) as task:
            task.context.application = "app"
            task.begin_window()
            for sign, row in changes:
                batch = row if isinstance(row, pa.RecordBatch) else pa.RecordBatch.from_pylist([row], SCHEMA)
                task.give("input", batch, retracts=sign < 0)
            task.end_window()
            found.append(writer.stage())
    return StagedWindow("app", number, tuple(each for each in found if each is not None), "sink", f"{number:015x}")


def publish(sink: Any, number: int, *tasks: list[Change]) -> None:
    window = staged(sink, number, *tasks)
    sink.check_window(window)
    sink.publish(window)
    sink.publish(window)  # again, as after a lost answer
    assert sink.is_published(window)
    sink.sweep(window)


ROWS = st.fixed_dictionaries(
    {
        "v": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
        "part": st.sampled_from(["a", "b", None]),
        "all": st.sampled_from([None, {"n": None}, {"n": []}, {"n": [1, None]}]),
    }
)
KEYS = st.tuples(st.integers(0, 2), st.sampled_from(["", "x", "X"]))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[list[Change]], list[dict[str, Any]]]]:
    """The changes of windows by task, in any order, and the rows that stand after each."""
    stands: dict[Key, dict[str, Any]] = {}
    windows = []
    for _ in range(draw(st.integers(1, 4))):
        changes: list[Change] = []
        for key in draw(st.lists(KEYS, max_size=4)):  # one may change several times
            following = draw(st.none() | ROWS)
            if (before := stands.pop(key, None)) is not None:
                changes.append((-1, before))
            if following is not None:
                stands[key] = {"k": key[0], "name": key[1], **following}
                changes.append((1, stands[key]))
        if draw(st.booleans()):  # a row that never came
            changes.append((-1, {"k": 9, "name": "never", **draw(ROWS)}))
        changes = draw(st.permutations(changes))
        cut = draw(st.integers(0, len(changes)))
        windows.append(([changes[:cut], changes[cut:]], list(stands.values())))
    return windows


@kinds
@pytest.mark.parametrize("partition_columns", [(), ("part",)])
@given(history=histories())
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changes(
    kind: str, partition_columns: tuple[str, ...], history: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("changes")
    sink, had_rows = sink_of(kind, folder, ["k", "name"], partition_columns=partition_columns), False
    for number, (tasks, expected) in enumerate(history):
        publish(sink, number, *tasks)
        had_rows = had_rows or any(tasks)
        assert comparable(content(kind, folder) if had_rows else []) == comparable(expected)


def row(k: int, name: str = "x", v: float | None = None) -> dict[str, Any]:
    return {"k": k, "name": name, "v": v, "part": None, "all": None}


@kinds
def test_a_table_can_become_empty_and_each_window_is_in_it_once(kind: str, tmp_path: Path) -> None:
    sink = sink_of(kind, tmp_path, ["k"])
    windows: list[list[Change]] = [
        [(1, row(1)), (1, row(2))],
        [(-1, row(1, v=1.0)), (1, row(1, v=1.0))],  # nothing changes
        [(-1, row(7))],  # nor here
        [(-1, row(1)), (-1, row(2))],
        [(-1, row(1))],
    ]
    for number, changes in enumerate(windows):
        publish(sink, number, changes)
        assert sink.open_table().mark("app/sink").number == number
        assert len(content(kind, tmp_path)) == (2 if number < 3 else 0)


@kinds
def test_a_row_is_taken_back_by_its_key(kind: str, tmp_path: Path) -> None:
    """As in databases: the other columns of the row that is taken back are not compared with those of the table."""
    sink = sink_of(kind, tmp_path, ["k"])
    publish(sink, 0, [(1, row(1, "a")), (1, row(2, "b"))])
    publish(sink, 1, [(-1, row(1, "never"))])
    assert [each["k"] for each in content(kind, tmp_path)] == [2]


@kinds
@pytest.mark.parametrize(
    "changes",
    [
        [(1, row(1)), (1, row(1))],
        [(1, row(1, "a")), (1, row(1, "b"))],
        [(-1, row(1, "a")), (1, row(1, "b")), (1, row(1, "c"))],
    ],
)
def test_keys_that_do_not_identify_a_row_are_refused_before_the_decision(
    kind: str, changes: list[Change], tmp_path: Path
) -> None:
    sink = sink_of(kind, tmp_path, ["k"])
    for tasks in ([changes], [[each] for each in changes]):
        with pytest.raises(KeysNotUnique, match="several rows have the same k, and rows are taken back by their keys"):
            sink.check_window(staged(sink, 0, *tasks))
    assert sink.open_table() is None
    sink.check_window(staged(sink, 0, [*changes, (-1, changes[-1][1])]))


@kinds
def test_tasks_with_other_columns(kind: str, tmp_path: Path) -> None:
    """Rows are the same whatever the width of their integers; a row of the other columns is null there."""
    sink = sink_of(kind, tmp_path, ["k"], on_schema_change="evolve")
    publish(sink, 0, [(1, pa.record_batch({"k": [1, 2], "v": [1, 2]}))])
    narrow = pa.record_batch({"k": [1, 2], "v": pa.array([1, 2], pa.int32())})
    wide = pa.record_batch({"k": [1, 2], "v": [3, 2], "longest": ["-", None]})
    publish(sink, 1, [(-1, narrow)], [(1, wide)])
    found = sorted(content(kind, tmp_path), key=lambda each: int(each["k"]))
    assert found == [{"k": 1, "v": 3, "longest": "-"}, {"k": 2, "v": 2, "longest": None}]


# ------------------------------------------------------------------------------------------------------------- launches

FILES = [
    [("a", 1), ("b", 2), ("c", None)],
    [("b", 5), ("a", -1), ("d", 4)],
    [(None, 7), ("c", 0), ("a", 9)],
]


def totals(kind: str, folder: Path, mode: Any = "upsert", keys: Sequence[str] = ("k",)) -> Callable[[DAG, Any], None]:
    """The totals of the rows of files, one of each key in a table."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(folder / "in")], block_size=20))
        reader = dag.add_operator("reader", ScanReader[Any](JsonLinesFormat(), schema="k: string, v: int64"))
        by = dag.add_operator("by", GroupBy("k", n=agg.count(), total=agg.sum("v"), most=agg.max("v")))
        sink = dag.add_operator("sink", sink_of(kind, folder, keys, mode))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, by.input)
        dag.add_stream("groups", by.output, sink.input)

    return populate_dag


def arrive(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows = [{"k": "-" if k is None else k, "v": v} for k, v in FILES[number]]
    (folder / "in" / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def expected(folder: Path) -> list[dict[str, Any]]:
    query = f"""
        SELECT k, count(*) AS n, sum(v)::BIGINT AS total, max(v) AS most
        FROM read_json('{folder}/in/*.jsonl', columns = {{k: 'VARCHAR', v: 'BIGINT'}}) GROUP BY k ORDER BY k
    """
    rows: list[dict[str, Any]] = duckdb.sql(query).to_arrow_table().to_pylist()
    return rows


def in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda each: str(each["k"]))


@kinds
def test_totals_over_three_launches(kind: str, tmp_path: Path) -> None:
    for number in range(len(FILES)):
        arrive(tmp_path, number)
        run_dag(totals(kind, tmp_path), run_folder=str(tmp_path / "run"))
        assert in_order(content(kind, tmp_path)) == expected(tmp_path)


@kinds
@pytest.mark.parametrize(
    "step",
    [
        step if step == "after the commit" else pytest.param(step, marks=pytest.mark.full)
        for step in STEPS
        if step != "after one name"
    ],
)
def test_every_step(step: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(len(FILES)):
        arrive(tmp_path, number)
        with monkeypatch.context() as patch, contextlib.suppress(Exception, Died):
            die_at(STEPS[step], 0, die, patch.setattr)
            run_dag(totals(kind, tmp_path), run_folder=str(tmp_path / "run"))
            pytest.fail(f"nothing has died {step}")
        run_dag(totals(kind, tmp_path), run_folder=str(tmp_path / "run"))
        assert in_order(content(kind, tmp_path)) == expected(tmp_path)


@kinds
@pytest.mark.parametrize("step", ["before the commit", "after the commit"])
def test_a_lost_answer_is_found_in_the_table(step: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(len(FILES)):
        arrive(tmp_path, number)
        with monkeypatch.context() as patch:
            die_at(STEPS[step], 0, lose_the_answer, patch.setattr)
            run_dag(totals(kind, tmp_path), {"retry_delay": 0.01}, run_folder=str(tmp_path / "run"))
        assert in_order(content(kind, tmp_path)) == expected(tmp_path)


@kinds
def test_a_launch_is_refused_before_the_decision_and_goes_on_with_other_keys(kind: str, tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    (tmp_path / "in" / "1.jsonl").write_text('{"k": "z", "v": 1}\n')
    with pytest.raises(RowsShareKeys, match="rows stand with the same n"):
        run_dag(totals(kind, tmp_path, keys=["n"]), run_folder=str(tmp_path / "run"))
    run_dag(totals(kind, tmp_path), run_folder=str(tmp_path / "run"))
    assert in_order(content(kind, tmp_path)) == expected(tmp_path)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_only_takes_rows_is_refused(kind: str, tmp_path: Path) -> None:
    arrive(tmp_path, 0)
    with pytest.raises(ChangesRefused, match="use a sink of files or tables without a mode"):
        run_dag(totals(kind, tmp_path, "append", keys=()))


def test_other_writers_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken back from the table as other writers have left it."""
    sink = sink_of("delta", tmp_path, ["k"])
    publish(sink, 0, [(1, row(1)), (1, row(2))])
    commit = DeltaWriter.commit

    def late(self: Any, *arguments: Any) -> Any:
        monkeypatch.setattr(DeltaWriter, "commit", commit)
        other = pa.Table.from_pylist([row(3)], SCHEMA)
        deltalake.write_deltalake(f"{tmp_path}/table", other, mode="append")
        return commit(self, *arguments)

    monkeypatch.setattr(DeltaWriter, "commit", late)
    publish(sink, 1, [(-1, row(1)), (-1, row(3))])
    assert [each["k"] for each in content("delta", tmp_path)] == [2]
