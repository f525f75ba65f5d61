"""What runs ahead of an exchange, and where."""

from __future__ import annotations

from typing import Any

import pytest

from dagflow import DAG
from dagflow.model.checks import check
from dagflow.model.dag import PortName
from dagflow.plan.ahead import with_ahead
from dagflow.plan.place import place
from operators import Console, Count, Deduplicate, FileInput, FlatMap


def words(line: Any) -> list[str]:
    return line.record.split()


def counted(*counts: Any) -> DAG:
    dag = DAG()
    files, split = dag.add_module("files", FileInput("/")), dag.add_operator("words", FlatMap(words))
    dag.add_stream("lines", files.messages, split.input)
    made = [dag.add_operator(f"count{number}", count) for number, count in enumerate(counts)]
    dag.add_stream("words", split.output, *(count.input for count in made), dag.add_operator("show", Console()).input)
    for number, count in enumerate(made):
        dag.add_stream(f"counts{number}", count.output, dag.add_operator(f"show{number}", Console()).input)
    return dag


def test_each_sink_of_a_stream_has_its_own() -> None:
    found = with_ahead(check(counted(Count(by="value"), Count(by=len), Count(by="value", combiner=False))))
    streams = {name: [str(sink) for sink in stream.sinks] for name, stream in found.streams.items()}
    assert streams["words"] == ["count0.ahead.input", "count1.ahead.input", "count2.input", "show.input"]
    assert streams["count0.ahead"] == ["count0.partials"]
    assert list(found.nodes).index("count0.ahead") < list(found.nodes).index("count0")
    assert found.types[PortName("count0", "partials")] == found.types[PortName("count0.ahead", "output")]


@pytest.mark.parametrize("operator", [Count(by="value"), Deduplicate()])
def test_once_is_enough(operator: Any) -> None:
    """Also where what runs ahead leads to the same port."""
    once = with_ahead(check(counted(operator)))
    assert "count0.ahead" in once.nodes
    assert list(with_ahead(once).nodes) == list(once.nodes)


@pytest.mark.parametrize("count", [Count(by="value", combiner=False), Count(by="value", on_error="route")])
def test_nothing_to_run_ahead(count: Any) -> None:
    dag = counted(count)
    if count.on_error == "route":
        dag.add_stream("errors", count.errors, dag.add_operator("errors", Console()).input)
    checked = check(dag)
    assert with_ahead(checked) is checked


def test_it_runs_where_the_records_come_from() -> None:
    placed = place(check(counted(Count(by="value"))))
    assert (placed.groups["count0.ahead"], placed.levels["count0.ahead"]) == ("files.reader", 0)
    assert [str(port) for port in placed.exchanges] == ["count0.partials"]
