"""The driver's work for a window grows as the window does: twice the items and tasks are twice the operations, not four times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata
from dagflow.launching.build import build
from dagflow.model.types.keys import KeyAssignment
from dagflow.model.types.plain_data import encode
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.parts import Part, uncovered, without
from dagflow.runtime.stage.program import ExchangeLayout, RunOptions, TaskSpec, Work
from dagflow.runtime.windows.jobs import tasks_of
from dagflow.runtime.windows.rebalance import Rebalancing, further, holder
from dagflow.scaling import Partition, assign_partition_keys, key_owners, resized
from dagflow.state import SegmentRef, StateAssignment, StateRef
from dagflow.storage import MemoryStore
from operators import BlockReader, Count, FileSplitterInput, ParquetWriter
from tests.operations import growth

Call = Callable[[int], Callable[[], object]]
LINEAR = 1.3


def counting(dag: DAG, conf: Any) -> None:
    """Lines are read in tasks of level 0, and counted in tasks of level 1."""
    files = dag.add_operator("files", FileSplitterInput(files=["in"]))
    lines = dag.add_operator("lines", BlockReader())
    count = dag.add_operator("count", Count(by="record"))
    out = dag.add_operator("out", ParquetWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, count.input)
    dag.add_stream("counts", count.output, out.input)


PLAN = build(counting).plan()


def window(tasks: int) -> WindowPlan:
    """Plan a window with so many tasks in each of two levels, and ten items for each task."""
    places = [number // 10 for number in range(10 * tasks)]
    return WindowPlan(
        window=0,
        items={"lines": [["blocks_metadata_input", {"block_id": number}] for number in range(len(places))]},
        partitions={"lines": tasks, "count": tasks},
        places={"lines": places},
        states={},
        driver=TaskReport("driver", 0),
    )


def task(stage: int, partition: int, partitions: int) -> TaskSpec:
    layout = ExchangeLayout(level=stage)
    return TaskSpec(
        window=0, epoch="r", stage=f"s{stage}", partition=partition, partitions=partitions, head="lines", layout=layout
    )


def tasks(size: int) -> Callable[[], object]:
    planned = window(size)
    return lambda: tasks_of(PLAN, planned, RunOptions(), "r")


def forms(size: int) -> Callable[[], object]:
    specs = [task(stage, number, size) for stage in (0, 1) for number in range(size)]
    return lambda: Rebalancing("", {}).with_forms(specs, 0)


def states(now: int) -> Call:
    """All tasks of a keyed stage begin with the maps of the window before, from `now` times as many partitions."""

    def call(size: int) -> Callable[[], object]:
        assignment = StateAssignment({"s1": ["count"]}, (), {"count": [ref(number) for number in range(size * now)]})
        return lambda: [assignment.start("s1", number, KeyAssignment(size)) for number in range(size)]

    return call


def ref(number: int) -> StateRef:
    return StateRef("", 0, segment=SegmentRef(f"state/{number}", "", 0))


def owners(size: int) -> Callable[[], object]:
    partitions = resized([Partition()], size)
    assign_partition_keys(partitions, "input")
    return lambda: key_owners(partitions, ["input"], ("count", "Mine"))


def left(size: int) -> Callable[[], object]:
    """Of all items, half have been read in part."""
    items, read = [Part(number) for number in range(size)], [Part(number, None, 5) for number in range(0, size, 2)]
    return lambda: without(items, read)


def yielded(size: int) -> Callable[[], tuple[TaskSpec, ...]]:
    """All tasks have stopped in the middle of their items, for a slot that was idle."""
    blocks = [FileBlockMetadata(number, "in", 0, 1 << 20, 1 << 20) for number in range(size)]
    planned = attrs.evolve(
        window(size),
        items={"lines": [["blocks_metadata_input", encode(block, "a block")] for block in blocks]},
        places={"lines": list(range(size))},
    )
    log = WindowLog(MemoryStore())
    specs = []
    for spec in tasks_of(PLAN, planned, RunOptions(), "r")[:size]:
        specs.append(attrs.evolve(spec, work=attrs.evolve(spec.work, form="yield", room=size)))
        log.report(spec.report_name, TaskReport(spec.name, 1, parts=[[spec.partition, None, 1 << 19]]))
    outcomes = [TaskOutcome(task=spec.name, attempt="1", started=0, ended=1, has_left=True) for spec in specs]
    return lambda: further(log, planned, specs, outcomes, holder(PLAN))


def test_what_all_tasks_leave_is_cut_into_some_pieces_for_each_slot() -> None:
    made = yielded(40)()
    parts = [part for spec in made for part in spec.work.parts]
    assert len(made) == 40
    assert len(parts) == 40 * 8, "not a piece of each item for each slot"
    assert uncovered([*parts, *(Part(number, None, 1 << 19) for number in range(40))], 40) == []


@pytest.mark.parametrize(
    "call",
    [yielded, tasks, forms, states(1), states(3), owners, left],
    ids=["parts of a further job", "tasks", "forms", "states", "states of more partitions", "owners of keys", "what is left"],
)
def test_work_grows_as_the_window_does(call: Call) -> None:
    assert growth(call, 32) < LINEAR


def test_tasks_get_their_items_and_the_places_of_those_behind_them() -> None:
    made = tasks_of(PLAN, attrs.evolve(window(3), places={"lines": [0, 2, 0, *[1] * 27]}), RunOptions(), "r")
    lines, counts = made[:3], made[3:]
    assert [each.work.numbers for each in lines] == [(0, 2), tuple(range(3, 30)), (1,)]
    assert [(each.layout.next_tasks, each.layout.destinations) for each in lines] == [(3, {counts[0].stage: (0, 3)})] * 3
    assert [(each.layout.next_tasks, each.layout.senders) for each in counts] == [(0, {lines[0].stage: 0})] * 3


def test_work_items_of_a_partition_stay_in_their_order() -> None:
    spec = tasks_of(PLAN, window(2), RunOptions(), "r")[1]
    assert spec.work.numbers == tuple(range(10, 20))
    assert _ids(spec.work) == list(range(10, 20))


def _ids(work: Work) -> Sequence[int]:
    return [item["block_id"] for _, _, item in work.items]
