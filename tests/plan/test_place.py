from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata, FileMetadata, InputPort, Operator, OutputPort, State, WindowState
from dagflow.errors.dag import MergeMissing, NotSupported
from dagflow.model.kept import Kept
from dagflow.plan.plan import make_plan
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, Console, FileSplitterInput, Filter, FSSliceReader, RecordWriter


def chain(dag: DAG) -> dict[str, Any]:
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader())
    keep = dag.add_operator("keep", Filter(lambda line: True))
    show = dag.add_operator("show", Console())
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, show.input)
    return {"files": files, "reader": reader, "keep": keep, "show": show}


def test_the_driver_ends_where_the_first_partitioner_stands() -> None:
    dag = DAG()
    found = chain(dag)
    listing = dag.add_operator("listing", Console())
    dag.add_stream("names", found["files"].files_metadata_output, listing.input)
    plan = make_plan(dag)
    parallel = {name for name, place in plan.placement.items() if place == "parallel"}
    assert parallel == {"reader", "keep", "show"}
    assert set(plan.driver) == {"files", "listing"}
    assert [(stage.name, stage.operators, stage.head) for stage in plan.stages] == [("s0", ("reader", "keep", "show"), "reader")]
    assert [str(port) for port in plan.work_ports()] == ["reader.blocks_metadata_input"]
    assert plan.partitioner(plan.stages[0]) is found["reader"]


def test_a_partitioner_may_be_set_from_outside_or_taken_away() -> None:
    dag = DAG()
    found = chain(dag)
    sizer = StatelessPartitioner(3)
    dag.set_attributes(found["reader"], partitioner=sizer)
    plan = make_plan(dag)
    assert plan.partitioner(plan.stages[0]) is sizer
    dag.set_attributes(found["reader"], partitioner=None)
    plan = make_plan(dag)
    assert (plan.stages, set(plan.placement.values())) == ((), {"driver"})


def test_what_hangs_together_runs_in_one_pass() -> None:
    dag = DAG()
    found = chain(dag)
    files = found["files"]
    slices = dag.add_operator("slices", FSSliceReader())
    out = dag.add_operator("out", RecordWriter("/tmp/out"))
    more = dag.add_operator("more", FileSplitterInput(files=["/"]))
    dag.add_stream("more blocks", more.blocks_metadata_output, slices.blocks_metadata_input)
    dag.add_stream("slices", slices.messages, out.input)
    dag.add_stream("all files", files.files_metadata_output, dag.add_operator("all", Console()).input)
    assert [stage.operators for stage in make_plan(dag).stages] == [("reader", "keep", "show"), ("slices", "out")]


@attrs.define
class Join(Operator):
    left = InputPort[Any]()
    right = InputPort[Any]()

    @left.process
    def one(self, record: Any) -> None: ...

    @right.process
    def other(self, record: Any) -> None: ...


@attrs.define
class Again(Operator):
    """Sends blocks round to another reader."""

    input = InputPort[Any]()
    output = OutputPort[FileBlockMetadata]()
    files = OutputPort[FileMetadata]()

    @input.process
    def each(self, record: Any) -> None: ...


def partitioned_again(dag: DAG) -> None:
    found = chain(dag)
    again, second = dag.add_operator("again", Again()), dag.add_operator("second", BlockReader())
    dag.add_stream("round", found["reader"].blocks_metadata_output, again.input)
    dag.add_stream("again", again.output, second.blocks_metadata_input)


def from_both_sides(dag: DAG) -> None:
    found = chain(dag)
    join = dag.add_operator("join", Join())
    dag.add_stream("files", found["files"].files_metadata_output, join.left)
    dag.add_stream("done", found["reader"].blocks_metadata_output, join.right)


def asks_for_an_exchange(dag: DAG) -> None:
    dag.set_port_attributes(chain(dag)["keep"].input, partition_parallel=False)


def unrelated_readers_meet(dag: DAG) -> None:
    found = chain(dag)
    more = dag.add_operator("more", FileSplitterInput(files=["/"]))
    second = dag.add_operator("second", BlockReader())
    join = dag.add_operator("join", Join())
    dag.add_stream("more blocks", more.blocks_metadata_output, second.blocks_metadata_input)
    dag.add_stream("left", found["reader"].blocks_metadata_output, join.left)
    dag.add_stream("right", second.messages, join.right)


@pytest.mark.parametrize(
    ("populate", "text"),
    [
        (
            partitioned_again,
            "operator 'second' is partitioned by itself but follows one that is partitioned already: "
            "that needs an exchange (LINE)\n"
            "  help: set its partitioner to None, so that it runs in the partitions of the operator upstream",
        ),
        (
            from_both_sides,
            "operator 'join' gets records both from the driver and from partitioned operators (LINE)\n"
            "  help: feed it from one side only; exchanges are not built yet",
        ),
        (
            asks_for_an_exchange,
            "port keep.input says partition_parallel = false, which asks for an exchange (LINE)\n"
            "  help: leave the attribute out: the operator then runs in the partitions of the operator upstream",
        ),
        (
            unrelated_readers_meet,
            "operator 'join' cannot run in the partitions of 'reader' and 'second': they are not related (LINE)\n"
            "  help: give each branch an operator of its own, or one reader for both inputs; exchanges are not built yet",
        ),
    ],
)
def test_what_needs_an_exchange_is_refused(populate: Callable[[DAG], None], text: str) -> None:
    dag = DAG()
    populate(dag)
    with pytest.raises(NotSupported) as caught:
        make_plan(dag)
    assert re.sub(r"tests/plan/test_place\.py:\d+", "LINE", str(caught.value)) == text


def keeping(kept: Kept[Any]) -> DAG:
    class Keeps(Operator):
        input = InputPort[object]()
        within = WindowState(0)

        @input.process
        def each(self, record: object) -> None: ...

    kept.__set_name__(Keeps, "kept")
    Keeps.kept = kept  # type: ignore[attr-defined]
    dag = DAG()
    found = chain(dag)
    keeps = dag.add_operator("keeps", Keeps())
    dag.add_stream("errors", found["reader"].errors, keeps.input)
    return dag


@pytest.mark.parametrize(
    ("kept", "line"),
    [
        (State(0), "kept = State(0, merge=sum)"),
        (State[float](0.5), "kept = State[float](0.5, merge=sum)"),
        (State(True), "kept = State(True, merge=any)"),
        (State(""), "kept = State('', merge=max)"),
        (State[str | None](None), "kept = State[str | None](None, merge=merged)"),
        (
            State[list[str]](factory=list),
            "kept = State[list[str]](factory=list, merge=lambda parts: [item for part in parts for item in part])",
        ),
        (State[dict[str, int]](factory=dict), "kept = State[dict[str, int]](factory=dict, merge=merged)"),
    ],
)
def test_state_in_partitions_must_merge(kept: State[Any], line: str) -> None:
    with pytest.raises(MergeMissing) as caught:
        make_plan(keeping(kept))
    assert (caught.value.operator, caught.value.states, caught.value.lines) == ("keeps", ("kept",), (line,))


def test_state_in_partitions_that_merges_is_fine() -> None:
    assert make_plan(keeping(State(0, merge=sum))).placement["keeps"] == "parallel"


def test_other_things_kept_stay_on_the_driver() -> None:
    with pytest.raises(NotSupported, match=r"operator 'keeps' keeps Kept 'kept', but runs in partitions"):
        make_plan(keeping(Kept(0)))
