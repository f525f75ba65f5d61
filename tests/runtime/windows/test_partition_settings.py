"""Keys from configuration, and keys that cannot travel."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator
from dagflow.errors import NotPicklable
from dagflow.launching.build import build, examine
from dagflow.model.graph.partitioning import key_of_port
from dagflow.runtime.task.compile import pickled, stage_program
from tests.conformance.keys.exchanges import Counted, Tally, read, split_and_tally


@attrs.define
class Join(Operator):
    left = InputPort[Counted](partition_by="word")
    right = InputPort[Counted](partition_by="word")

    @left.process
    def one(self, counted: Counted) -> None: ...

    @right.process
    def other(self, counted: Counted) -> None: ...


def application(source: Path, **attributes: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        split, tally = split_and_tally(dag, Tally())
        join = dag.add_operator("join", Join(), **attributes)
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, tally.input, join.left)
        dag.add_stream("totals", tally.output, join.right)

    return populate_dag


def keys(source: Path, *definitions: str) -> dict[str, str]:
    built = build(application(source), definitions=definitions)
    return {str(port): str(exchange.key) for port, exchange in built.plan().exchanges.items()}


def test_keys_are_set_by_configuration(tmp_path: Path) -> None:
    assert keys(tmp_path) == {"tally.input": "word", "join.left": "word", "join.right": "word"}
    assert keys(tmp_path, "operator.tally.partition_by=n")["tally.input"] == "n"
    both = keys(tmp_path, "operator.join.partition_by=word, n", "operator.join.port.right.partition_by=n")
    assert (both["join.left"], both["join.right"]) == ("word, n", "n")
    assert set(keys(tmp_path, "operator.*.partition_by=n").values()) == {"n"}, "of all that have a key"


def test_a_key_is_taken_away_by_configuration(tmp_path: Path) -> None:
    built = build(application(tmp_path), definitions=["operator.tally.partition_by=none"])
    assert key_of_port(built.plan().dag.nodes["tally"], "input") is None


def test_what_is_wrong_with_a_key_from_configuration_is_told_before_anything_runs(tmp_path: Path) -> None:
    *_, problems = examine(application(tmp_path), definitions=["operator.tally.partition_by=wrod"])
    assert "port tally.input cannot be partitioned by 'wrod'" in str(problems[0])
    assert "Did you mean 'word'?" in str(problems[0])


def test_a_key_that_cannot_travel_is_told(tmp_path: Path) -> None:
    lock = threading.Lock()
    plan = build(application(tmp_path, partition_by=lambda counted: (lock, counted.word)), definitions=[]).plan()
    with pytest.raises(NotPicklable) as caught:
        pickled(stage_program(plan, "s0"), plan)
    assert (caught.value.operator, caught.value.attribute) == ("join", "partition_by")
