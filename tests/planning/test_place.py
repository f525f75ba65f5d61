from __future__ import annotations

import re
from typing import Any, ClassVar

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata, FileMetadata, InputPort, MapState, Operator, OutputPort, State, WindowState
from dagflow.errors import MapStateNotKeyed, MergeMissing, NotSupported, UnrelatedPartitions
from dagflow.model.operator.state import StateField
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
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
    output = OutputPort[str]()

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


@attrs.define
class Alone(Operator):
    partitionable: ClassVar[bool] = False
    input = InputPort[Any]()

    @input.process
    def each(self, record: Any) -> None: ...


def two_readers(dag: DAG) -> tuple[dict[str, Any], Join]:
    found = chain(dag)
    more = dag.add_operator("more", FileSplitterInput(files=["/"]))
    second = dag.add_operator("second", BlockReader())
    join = dag.add_operator("join", Join())
    dag.add_stream("more blocks", more.blocks_metadata_output, second.blocks_metadata_input)
    dag.add_stream("left", found["reader"].blocks_metadata_output, join.left)
    dag.add_stream("right", second.messages, join.right)
    return found, join


def planned(dag: DAG) -> tuple[Plan, list[tuple[int, str, tuple[str, ...]]], dict[str, str]]:
    """The plan, its stages as `(level, head, operators)`, and its exchanges by port."""
    plan = make_plan(dag)
    exchanges = {str(port): str(exchange) for port, exchange in plan.exchanges.items()}
    return plan, [(s.level, s.head, s.operators) for s in plan.stages], exchanges


def test_a_reader_behind_a_reader_is_one_level_higher() -> None:
    dag = DAG()
    found = chain(dag)
    again, second = dag.add_operator("again", Again()), dag.add_operator("second", BlockReader())
    dag.add_stream("round", found["reader"].blocks_metadata_output, again.input)
    dag.add_stream("again", again.output, second.blocks_metadata_input)
    plan, stages, exchanges = planned(dag)
    assert stages == [(0, "reader", ("reader", "keep", "show", "again")), (1, "second", ("second",))]
    assert exchanges == {"second.blocks_metadata_input": "round-robin"}
    assert plan.placement["second"] == "counted"


def test_a_key_asks_for_an_exchange_and_what_follows_is_parallel_with_it() -> None:
    dag = DAG()
    found = chain(dag)
    dag.set_attributes(found["keep"], partition_by="record")
    plan, stages, exchanges = planned(dag)
    assert stages == [(0, "reader", ("reader",)), (1, "keep", ("keep", "show"))]
    assert exchanges == {"keep.input": "hash by record"}
    assert (plan.placement["keep"], plan.placement["show"]) == ("keyed", "parallel")


@pytest.mark.parametrize(
    ("attributes", "placement", "kind"),
    [
        ({"partitioner": StatelessPartitioner(4)}, "counted", "round-robin"),
        ({"partitioner": StatelessPartitioner(1)}, "single", "gather"),
        ({"partition_by": ("block_id", "position")}, "keyed", "hash by block_id, position"),
        ({"partition_by": len}, "keyed", "hash by len()"),
    ],
)
def test_an_operator_says_how_it_is_partitioned(attributes: dict[str, Any], placement: str, kind: str) -> None:
    dag = DAG()
    dag.set_attributes(chain(dag)["keep"], **attributes)
    plan, _, exchanges = planned(dag)
    assert (plan.placement["keep"], exchanges) == (placement, {"keep.input": kind})


def test_a_port_that_is_not_to_be_parallel_gets_an_exchange() -> None:
    dag = DAG()
    dag.set_port_attributes(chain(dag)["keep"].input, partition_parallel=False)
    plan, _, exchanges = planned(dag)
    assert (plan.placement["keep"], exchanges) == ("counted", {"keep.input": "round-robin"})


def test_a_partitioner_gives_way_to_a_port_that_is_to_be_parallel() -> None:
    """As in the original: the number of the operator upstream overrides its own."""
    dag = DAG()
    keep = chain(dag)["keep"]
    dag.set_attributes(keep, partitioner=StatelessPartitioner(4))
    dag.set_port_attributes(keep.input, partition_parallel=True)
    plan, stages, exchanges = planned(dag)
    assert (plan.placement["keep"], exchanges, len(stages)) == ("parallel", {}, 1)


def test_what_is_not_partitionable_gets_everything() -> None:
    dag = DAG()
    alone = dag.add_operator("alone", Alone())
    dag.add_stream("errors", chain(dag)["reader"].errors, alone.input)
    plan, _, exchanges = planned(dag)
    assert (plan.placement["alone"], exchanges) == ("single", {"alone.input": "gather"})


def test_readers_that_are_not_related_meet_by_key() -> None:
    dag = DAG()
    _, join = two_readers(dag)
    dag.set_port_attributes(join.left, partition_by=lambda block: block.file_path)
    dag.set_port_attributes(join.right, partition_by="record")
    _, stages, exchanges = planned(dag)
    assert stages == [(0, "reader", ("reader", "keep", "show")), (0, "second", ("second",)), (1, "join", ("join",))]
    assert exchanges == {"join.left": "hash by a function", "join.right": "hash by record"}


def test_one_port_may_stay_parallel_and_the_other_cross() -> None:
    """A parallel operator is forwarded to: it keeps its partition, one level higher."""
    dag = DAG()
    _, join = two_readers(dag)
    dag.set_port_attributes(join.right, partition_parallel=False)
    plan, stages, exchanges = planned(dag)
    assert stages[2] == (1, "reader", ("join",))
    assert exchanges == {"join.left": "forward", "join.right": "round-robin"}
    assert plan.placement["join"] == "parallel"


def test_inputs_of_different_levels() -> None:
    """The upper of two keyed operators also gets what the reader emits: that crosses two exchanges."""
    dag = DAG()
    found = chain(dag)
    dag.set_attributes(found["keep"], partition_by="record")
    join = dag.add_operator("join", Join(), partition_by=repr)
    dag.add_stream("blocks read", found["reader"].blocks_metadata_output, join.left)
    dag.add_stream("kept errors", found["keep"].errors, join.right)
    _, stages, _ = planned(dag)
    assert [stage[:2] for stage in stages] == [(0, "reader"), (1, "keep"), (2, "join")]


def test_records_of_the_driver_are_relayed_to_operators_behind_exchanges() -> None:
    dag = DAG()
    found = chain(dag)
    join = dag.add_operator("join", Join(), partition_by=repr)
    dag.add_stream("files", found["files"].files_metadata_output, join.left)
    dag.add_stream("done", found["reader"].blocks_metadata_output, join.right)
    plan, stages, _ = planned(dag)
    assert [stage[1:] for stage in stages if stage[0] == 0] == [
        ("reader", ("reader", "keep", "show")),
        ("relay to join.left", ("relay to join.left",)),
    ]
    assert [str(port) for port in plan.work_ports()] == ["reader.blocks_metadata_input", "relay to join.left.input"]


def test_a_key_behind_the_driver_is_relayed() -> None:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    show = dag.add_operator("show", Console(), partition_by="file_path")
    dag.add_stream("found", files.files_metadata_output, show.input)
    _, stages, exchanges = planned(dag)
    assert stages == [(0, "relay to show.input", ("relay to show.input",)), (1, "show", ("show",))]
    assert exchanges == {"show.input": "hash by file_path"}


def test_parallel_with_partitions_that_are_not_related_is_refused() -> None:
    dag = DAG()
    two_readers(dag)
    with pytest.raises(UnrelatedPartitions) as caught:
        make_plan(dag)
    assert re.sub(r"tests/planning/test_place\.py:\d+", "LINE", str(caught.value)) == (
        "operator 'join' cannot be parallel with operators whose partitions are not related (LINE)\n"
        "  left  gets records from the partitions of 'reader'\n"
        "  right  gets records from the partitions of 'second'\n"
        "  help: let an exchange bring them together: dag.set_attributes(operator, partition_by=…) where equal keys must meet,\n"
        "        partitioner=StatelessPartitioner(n) where they need not; or partition_parallel=False for port right"
    )


def keeping(kept: StateField[Any]) -> DAG:
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


def test_a_map_in_partitions_must_be_by_key() -> None:
    with pytest.raises(MapStateNotKeyed) as caught:
        make_plan(keeping(MapState[str, int]()))
    line = "kept = State[dict[str, int]](factory=dict, merge=merged)"
    assert (caught.value.operator, caught.value.states, caught.value.lines) == ("keeps", ("kept",), (line,))
    assert line in str(caught.value)


def test_state_in_partitions_that_merges_is_fine() -> None:
    assert make_plan(keeping(State(0, merge=sum))).placement["keeps"] == "parallel"


def test_other_things_kept_stay_on_the_driver() -> None:
    with pytest.raises(NotSupported, match=r"operator 'keeps' keeps StateField 'kept', but runs in partitions"):
        make_plan(keeping(StateField(0)))
