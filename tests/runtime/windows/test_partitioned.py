"""Partitioners by configuration."""

from __future__ import annotations

from typing import Any

import pytest

from dagflow import DAG
from dagflow.errors import ConfigError, NotAPartitioner
from dagflow.launching.build import LoadedApplication, build
from dagflow.model.graph.checks import partitioner_of
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, Console, FileSplitterInput


def populate_dag(dag: DAG, conf: Any) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
    lines = dag.add_operator("lines", BlockReader())
    show = dag.add_operator("show", Console())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, show.input)


def built(*definitions: str) -> LoadedApplication:
    return build(populate_dag, definitions=definitions)


def partitioner(made: LoadedApplication) -> Any:
    return partitioner_of(made.dag.operators["lines"])


def test_a_number_a_class_or_none() -> None:
    assert partitioner(built()) == "self"
    assert partitioner(built("operator.lines.partitioner=3")) == StatelessPartitioner(3)
    assert partitioner(built("operator.lines.partitioner=dagflow.scaling.StatelessPartitioner:2")) == StatelessPartitioner(2)
    assert partitioner(built("operator.lines.partitioner=none")) is None


def test_all_that_are_partitioned() -> None:
    made = built("operator.*.partitioner=3")
    assert partitioner(made) == StatelessPartitioner(3)
    assert partitioner_of(made.dag.operators["files"]) is None
    assert partitioner(built("operator.*.partitioner=3", "operator.lines.partitioner=4")) == StatelessPartitioner(4)


def test_what_is_none() -> None:
    with pytest.raises(
        ConfigError, match=r"`operator.lines.partitioner` cannot be 'many' \(-D\)\n  because: 'many' does not name a module"
    ):
        built("operator.lines.partitioner=many")
    with pytest.raises(ConfigError, match="has no property `partitoner`"):
        built("operator.lines.partitoner=3")


def test_in_code_that_is_found_with_the_other_mistakes() -> None:
    def wrong(dag: DAG, conf: Any) -> None:
        populate_dag(dag, conf)
        dag.set_attributes(dag.operator("lines"), partitioner=4)

    with pytest.raises(
        NotAPartitioner, match=r"the partitioner of operator 'lines' is 4, which has no method define_partitions\(\)"
    ):
        build(wrong).plan()
