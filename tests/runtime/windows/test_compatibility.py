"""By what an application is known again: what was written, not what the planner makes of its properties."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import PlanMismatch
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.windows.compatibility import added, changed_properties, differences, properties, shape
from dagflow.scan import Drift
from operators import Console, Count, FileInput, FileSplitterInput, FlatMap, GroupBy, ScanReader, TopN, agg


def words(line: Any) -> list[str]:
    return line.record.split()


def planned(combiner: bool, *more: str) -> Plan:
    """Words counted by key, and files by name: these come from the driver, over a relay."""
    dag = DAG()
    files, split = dag.add_module("files", FileInput("/")), dag.add_operator("words", FlatMap(words))
    counts = dag.add_operator("counts", Count(by="value", combiner=combiner))
    names = dag.add_operator("names", Count(by="file_name", combiner=combiner))
    dag.add_stream("lines", files.messages, split.input)
    dag.add_stream("words", split.output, counts.input)
    dag.add_stream("files", files.files_metadata_output, names.input)
    for name in more:
        dag.add_stream(name, counts.output, dag.add_operator(name, Console()).input)
    return make_plan(dag)


def window_of(plan: Plan) -> WindowPlan:
    rest: dict[str, Any] = {name: {} for name in ("items", "partitions", "places", "states")}
    return WindowPlan(window=0, driver=None, shape=shape(plan) | added(plan), **rest)


def test_what_the_planner_adds_is_kept_but_not_compared() -> None:
    one, other = planned(True), planned(False)
    assert shape(one) == shape(other)
    assert "added stream words.output → counts.partial.input" in added(one)
    assert not any("partial" in stream for stream in added(other))
    assert any("relay to names.input" in stream for stream in added(other))
    assert differences(window_of(one), other) == differences(window_of(other), one) == ()


def ranked(by: Any = "block_id", *, top: Any = None, totals: Any = None) -> Plan:
    """Rows whose top and whose counts are kept over windows."""
    dag = DAG()
    rows = dag.add_module("rows", FileInput("/"))
    top = dag.add_operator("top", TopN(2, "position", by=by) if top is None else top)
    counts = dag.add_operator("counts", Count(by=("position", "record")) if totals is None else totals)
    dag.add_stream("rows", rows.messages, top.input, counts.input)
    return make_plan(dag)


def change(now: Plan) -> list[str]:
    was = ranked()
    return changed_properties(now, attrs.evolve(window_of(was), properties=properties(was)), "out/_dagflow")


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (ranked(top=TopN(3, "position", by="block_id")), "top.n = 2 → 3"),
        (ranked(top=TopN(2, "record", by="block_id")), "top.of = position → record"),
        (ranked(top=TopN(2, "position", by="block_id", smallest=True)), "top.smallest = False → True"),
        (ranked(top=TopN(2, "position", by="block_id", scope="window")), "top.scope = all → window"),
        (ranked(by="record"), "top.by = block_id → record"),
        (ranked(totals=Count(by=("position",))), "counts.by = (position, record) → (position)"),
        (
            ranked(totals=Count(by=lambda row: (row.position, row.record))),
            "counts.by = (position, record) → a function",
        ),
    ],
)
def test_other_properties_than_those_of_what_is_kept_are_refused(now: Plan, what: str) -> None:
    with pytest.raises(PlanMismatch, match="belongs to the properties that they had:\n    ") as told:
        change(now)
    assert what in str(told.value)


def test_properties_that_nothing_kept_depends_on_are_told() -> None:
    assert change(ranked(totals=Count(by=("position", "record"), combiner=False))) == ["counts.combiner = True → False"]
    assert change(ranked()) == []


def scanned(**properties: Any) -> Plan:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    rows = dag.add_operator("rows", ScanReader(format="csv", **properties))
    dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
    return make_plan(dag)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({}, {"schema": {"a": "int64"}}, "rows.schema = None → {a: int64}"),
        ({"drift": Drift(extra="error")}, {"drift": Drift(extra="widen")}, "extra=widen"),
        ({"schema": {"a": "int64"}}, {"schema": {"a": lambda: 3}}, "rows.schema = (columns={a: (type=int64)}) → {a: a function}"),
        (
            {"schema": {"a": "int64"}},
            {"schema": {"a" * 2000: "int64"}},
            f"rows.schema = (columns={{a: (type=int64)}}) → {{{'a' * 59}… (",
        ),
    ],
)
def test_properties_with_parts_are_compared(before: dict[str, Any], now: dict[str, Any], told: str) -> None:
    was, plan = scanned(**before), scanned()
    for name, value in now.items():
        object.__setattr__(plan.written.nodes["rows"].operator, name, value)
    (text,) = changed_properties(plan, attrs.evolve(window_of(was), properties=properties(was)), "out/_dagflow")
    assert told in text


def test_what_was_written_is_compared() -> None:
    found = differences(window_of(planned(True)), planned(True, "show"))
    assert found == ("operator show is new", "stream counts.output → show.input is new")


def test_long_properties_are_compared_too() -> None:
    def grouped(last: Any) -> Plan:
        dag = DAG("grouped")
        aggregates = {f"smallest_of_column_{number}": agg.min(f"column_{number}") for number in range(20)}
        dag.read("rows", "parquet").to(GroupBy("k", **aggregates, last=last)).to(Console())
        return make_plan(dag)

    assert properties(grouped(agg.min("v"))) == properties(grouped(agg.min("v")))
    assert properties(grouped(agg.min("v"))) != properties(grouped(agg.max("v")))
