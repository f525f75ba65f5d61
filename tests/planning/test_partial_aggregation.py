"""Partial aggregations before exchanges, and where they run."""

from __future__ import annotations

from typing import Any

import pytest

from dagflow import DAG
from dagflow.model.graph.dag import PortName
from dagflow.planning.partial_aggregation import add_partial_aggregations
from dagflow.planning.place import place
from dagflow.planning.plan import Plan
from dagflow.planning.relays import add_relays
from dagflow.planning.steps import after
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


def checked(dag: DAG) -> Plan:
    plan = after(dag, "checked")
    assert isinstance(plan, Plan)
    return plan


def test_each_sink_of_a_stream_has_its_own() -> None:
    found = add_partial_aggregations(checked(counted(Count(by="value"), Count(by=len), Count(by="value", combiner=False)))).dag
    streams = {name: [str(sink) for sink in stream.sinks] for name, stream in found.streams.items()}
    assert streams["words"] == ["count0.partial.input", "count1.partial.input", "count2.input", "show.input"]
    assert streams["count0.partial"] == ["count0.partials"]
    assert list(found.nodes).index("count0.partial") < list(found.nodes).index("count0")
    assert found.types[PortName("count0", "partials")] == found.types[PortName("count0.partial", "output")]


@pytest.mark.parametrize("operator", [Count(by="value"), Deduplicate()])
def test_once_is_enough(operator: Any) -> None:
    """Also where a partial aggregation leads to the same port."""
    once = add_partial_aggregations(checked(counted(operator)))
    assert "count0.partial" in once.dag.nodes
    assert list(add_partial_aggregations(once).dag.nodes) == list(once.dag.nodes)


@pytest.mark.parametrize("count", [Count(by="value", combiner=False), Count(by="value", on_error="route")])
def test_operators_without_a_partial_aggregation(count: Any) -> None:
    dag = counted(count)
    if count.on_error == "route":
        dag.add_stream("errors", count.errors, dag.add_operator("errors", Console()).input)
    plan = checked(dag)
    assert add_partial_aggregations(plan) is plan


def test_it_runs_where_the_records_come_from() -> None:
    placed = place(add_relays(add_partial_aggregations(checked(counted(Count(by="value"))))))
    assert (placed.groups["count0.partial"], placed.levels["count0.partial"]) == ("files.reader", 0)
    assert [str(port) for port in placed.exchanges] == ["count0.partials"]
