"""By what an application is known again: what was written, not what the planner makes of its properties."""

from __future__ import annotations

from typing import Any

from dagflow import DAG
from dagflow.plan.plan import Plan, make_plan
from dagflow.runtime.same import added, differences, shape
from dagflow.runtime.window_log import WindowPlan
from operators import Console, Count, FileInput, FlatMap


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
    assert "added stream words.output → counts.ahead.input" in added(one)
    assert not any("ahead" in stream for stream in added(other))
    assert any("relay to names.input" in stream for stream in added(other))
    assert differences(window_of(one), other) == differences(window_of(other), one) == ()


def test_what_was_written_is_compared() -> None:
    found = differences(window_of(planned(True)), planned(True, "show"))
    assert found == ("operator show is new", "stream counts.output → show.input is new")
