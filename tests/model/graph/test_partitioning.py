from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, ReaderRecord
from dagflow.errors import DagError, KeyConflict, KeyFixed, KeyMissing, KeyRefused, NotPartitionable
from dagflow.model.graph.checks import check
from dagflow.model.graph.partitioning import key_of_port
from operators import BlockReader, Count, Deduplicate, FileSplitterInput, TopN


@attrs.define
class Join(Operator):
    by: str | None = None
    left = InputPort[ReaderRecord[str]](partition_by="record")
    right = InputPort[ReaderRecord[str]](partition_by="record")

    def partition_key(self, port: str) -> Any:
        return self.by

    @left.process
    def one(self, record: Any) -> None: ...

    @right.process
    def other(self, record: Any) -> None: ...


@attrs.define
class Alone(Join):
    partitionable: ClassVar[bool] = False


def joined(join: Join) -> DAG:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader())
    dag.add_operator("join", join)
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, join.left, join.right)
    return dag


def test_whose_word_counts() -> None:
    """The port's attribute, then the operator's, then what the operator says, then the declaration."""
    join = Join()
    dag = joined(join)
    node = dag.operators["join"]
    assert str(key_of_port(node, "left")) == "record"
    join.by = "position"
    assert str(key_of_port(node, "left")) == "position"
    dag.set_attributes(join, partition_by="block_id")
    assert str(key_of_port(node, "left")) == "block_id"
    dag.set_port_attributes(join.left, partition_by=("block_id", "position"))
    assert str(key_of_port(node, "left")) == "block_id, position"
    assert str(key_of_port(node, "right")) == "block_id"
    dag.set_port_attributes(join.left, partition_by=None)
    assert key_of_port(node, "left") is None


def no_key_on_one_port(dag: DAG, join: Join) -> None:
    dag.set_port_attributes(join.right, partition_by=None)


def parallel_and_keyed(dag: DAG, join: Join) -> None:
    dag.set_port_attributes(join.right, partition_parallel=True)


def misspelt(dag: DAG, join: Join) -> None:
    dag.set_port_attributes(join.right, partition_by="recrod")


def no_key_at_all(dag: DAG, join: Join) -> None:
    dag.set_port_attributes(join.right, partition_by=3)


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (
            no_key_on_one_port,
            KeyMissing,
            "operator 'join' is partitioned by the key of port left, but port right has none (LINE)\n"
            "  help: dag.set_port_attributes(operator.right, partition_by=…), or partition_by for the whole operator",
        ),
        (
            parallel_and_keyed,
            KeyConflict,
            "port join.right has both the key record and partition_parallel=True (LINE)\n"
            "  help: remove one of partition_by and partition_parallel=True",
        ),
        (
            misspelt,
            KeyRefused,
            "port join.right cannot be partitioned by 'recrod': its records have no such column (LINE). Did you mean 'record'?\n"
            "  help: give a function of the record, the name of a column (a field of its class), or a tuple of names",
        ),
        (
            no_key_at_all,
            KeyRefused,
            "port join.right cannot be partitioned by 3: it is neither a function of the record nor names of columns (LINE).\n"
            "  help: give a function of the record, the name of a column (a field of its class), or a tuple of names",
        ),
    ],
)
def test_conflicts_are_errors_of_the_check(wrong: Callable[[DAG, Join], None], kind: type[DagError], text: str) -> None:
    join = Join()
    dag = joined(join)
    wrong(dag, join)
    with pytest.raises(kind) as caught:
        check(dag)
    assert re.sub(r"tests/model/graph/test_partitioning\.py:\d+", "LINE", str(caught.value)) == text


def test_what_is_not_partitionable_has_no_key() -> None:
    with pytest.raises(DagError) as caught:
        check(joined(Alone()))
    problems = getattr(caught.value, "problems", (caught.value,))
    assert [type(problem) for problem in problems] == [NotPartitionable, NotPartitionable]
    assert "its port 'left' has a key (partition_by)" in str(problems[0])


@pytest.mark.parametrize("operator", [Count, Deduplicate, TopN])
@pytest.mark.parametrize("combiner", [True, False])
def test_the_key_of_an_aggregate_is_its_own(operator: Any, combiner: bool) -> None:
    found = operator(**({"n": 1, "of": "position"} if operator is TopN else {}), by="record", combiner=combiner)
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader())
    dag.add_operator("found", found, partition_by=("record",))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, found.input)
    check(dag)
    for other in ("position", None):
        dag.set_attributes(found, partition_by=other)
        with pytest.raises(
            KeyFixed, match=f"port found.input cannot be partitioned by {other!r}: the key of its operator is fixed to .*record"
        ):
            check(dag)


def test_several_columns_in_one_text_get_a_hint() -> None:
    join = Join()
    dag = joined(join)
    dag.set_port_attributes(join.right, partition_by="record, position")
    with pytest.raises(
        KeyRefused, match=r"""give a tuple, \("record", "position"\); on the command line a list, '\["record", "pos"""
    ):
        check(dag)
