"""The number of readers of windows: the backlog that their partitioner gets, its decision, and the report on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import PartitionerFailed
from dagflow.launching.launch import launch
from dagflow.local.runner import LocalRunner
from dagflow.plan.plan import Plan
from dagflow.plan.steps import make_plan
from dagflow.render.report import report_text
from dagflow.runtime.events import Event, ReadersChanged, WindowDecided, WindowDone, WindowPlanned
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.run_report import ReaderFigures
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.windows.readers import Readers, known_to
from dagflow.scaling import (
    UNASSIGNED,
    Backlog,
    BacklogPartitioner,
    OperatorStats,
    Partition,
    PartitioningContext,
    Response,
    StatelessPartitioner,
    resized,
)
from dagflow.testing import FakeClock
from operators import BlockReader, Console, FileSplitterInput, RecordWriter
from tests.conformance.apps import chain, lines_in


@attrs.frozen
class Item:
    """A block."""

    file_path: str
    start: int
    stop: int


def block(size: int, path: str = "a") -> Item:
    return Item(path, 0, size)


def plan_of(reader: BlockReader[Any], **attributes: Any) -> Plan:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
    lines = dag.add_operator("lines", reader, **attributes)
    show = dag.add_operator("show", Console())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, show.input)
    return make_plan(dag)


class Loop:
    """The calls that the window loop makes of readers."""

    def __init__(self, reader: BlockReader[Any], slots: int | None = 8, last: int | None = None, **attributes: Any) -> None:
        self.plan = plan_of(reader, **attributes)
        self.stage = self.plan.stages[0]
        self.clock = FakeClock()
        self.told: list[Event] = []
        before = None if last is None else self.window(7, last, [])
        self.readers = Readers(self.plan, slots=slots, clock=self.clock, last=before, tell=self.told.append)
        self.next = 0

    def window(self, window: int, partitions: int, places: list[int], weights: list[int] | None = None) -> WindowPlan:
        return WindowPlan(
            window=window,
            items={},
            partitions={"lines": partitions},
            places={"lines": places},
            weights={"lines": weights or [0] * partitions},
            states={},
            driver=TaskReport("driver", 0),
        )

    def assign(self, items: Sequence[Item], known: Backlog = Backlog(), passing: float = 0) -> int:  # noqa: B008  # frozen
        """Plans a window of these items, after so many seconds; its number of readers."""
        self.clock.advance(passing)
        assignment = self.readers.assign(self.stage, self.next, items, known)
        self.readers.planned(self.window(self.next, assignment.partitions, assignment.places, assignment.weights))
        self.next += 1
        return assignment.partitions

    def commit(self, window: int, *outcomes: tuple[str, int]) -> None:
        ended = [TaskOutcome(task=task, attempt="1", started=0, ended=0, records=records) for task, records in outcomes]
        self.readers.decided(window, ended)


@attrs.define
class Listening:
    """Keeps what it hears; has as many partitions as `counts` says, one number a window."""

    counts: list[int] = attrs.field(factory=lambda: [1])
    heard: list[list[OperatorStats]] = attrs.field(factory=list)
    contexts: list[PartitioningContext] = attrs.field(factory=list)

    def process_stats(self, stats: Sequence[OperatorStats]) -> Response:
        self.heard.append(list(stats))
        return Response(repartition_required=True)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        self.contexts.append(context)
        return resized(partitions, self.counts.pop(0))


class TestTheBacklog:
    def test_is_all_that_is_known_and_not_committed(self) -> None:
        listening = Listening([1, 2, 2, 2, 2])
        loop = Loop(BlockReader(), partitioner=listening)
        loop.assign([block(10), block(20)], Backlog(5, 500))
        loop.assign([block(40)])
        loop.commit(0)
        loop.assign([block(1)])
        loop.commit(1)
        loop.commit(2)
        loop.assign([block(2)])
        assert listening.heard == [
            [OperatorStats(0, 0, 0), OperatorStats(UNASSIGNED, 7, 530)],
            [OperatorStats(0, 1, 10), OperatorStats(1, 1, 20), OperatorStats(UNASSIGNED, 1, 40)],
            [OperatorStats(0, 1, 40), OperatorStats(1, 0, 0), OperatorStats(UNASSIGNED, 1, 1)],
            [OperatorStats(0, 0, 0), OperatorStats(1, 0, 0), OperatorStats(UNASSIGNED, 1, 2)],
        ]

    def test_of_readers_that_are_gone_is_that_of_those_that_took_over(self) -> None:
        listening = Listening([1, 3, 2, 2])
        loop = Loop(BlockReader(), partitioner=listening)
        loop.assign([block(10), block(10), block(10)])
        loop.assign([block(5), block(5)])
        loop.assign([block(1)])
        assert listening.heard[2][:2] == [OperatorStats(0, 1 + 1 + 1, 10 + 10 + 5), OperatorStats(1, 2, 15)]

    def test_of_a_file_that_is_being_planned_and_of_files_that_wait(self, tmp_path: Path) -> None:
        listening = Listening([1] * 9)
        for name in "abc":
            (tmp_path / name).write_bytes(b"123456\n" * 10)
        source = FileSplitterInput(files=[str(tmp_path)], block_size=20, blocks_threshold=2)
        run_all(source, listening)
        waited = [next(s for s in heard if s.operator_id == UNASSIGNED) for heard in listening.heard]
        assert [each.queue_size for each in waited] == [12, 10, 8, 6, 4, 2]
        assert [each.queue_bytes for each in waited] == [210, 170, 140, 100, 70, 30]

    def test_of_operators_that_lead_to_a_stage_only(self) -> None:
        plan = plan_of(BlockReader())
        assert known_to(plan, {"files": Backlog(1, 2), "elsewhere": Backlog(9, 9)}) == {"s0": Backlog(1, 2)}


def run_all(source: FileSplitterInput, partitioner: Any, runner: LocalRunner | None = None) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", source)
        lines = dag.add_operator("lines", BlockReader(), partitioner=partitioner)
        show = dag.add_operator("show", Console(prefix="\b"))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, show.input)

    launch(populate_dag, runner=runner or LocalRunner(), clock=FakeClock(), windows_in_flight=1)


class TestHowMany:
    def test_between_the_bounds_from_the_first_window_on(self) -> None:
        assert Loop(BlockReader(min_readers=3)).assign([block(1)]) == 3
        assert Loop(BlockReader(max_readers=3)).assign([block(1)] * 50) == 3
        assert Loop(BlockReader()).assign([block(1)] * 50) == 16
        assert Loop(BlockReader(), slots=2).assign([block(1)] * 50) == 4
        assert Loop(BlockReader(), slots=None).assign([block(1)] * 10) == 5, "dynamic allocation has to start them"
        assert Loop(BlockReader(), slots=None).assign([block(1)] * 50) == 16

    def test_what_waits_elsewhere_counts(self) -> None:
        assert Loop(BlockReader()).assign([block(1)], Backlog(6, 6)) == 7

    def test_they_change_once_an_interval(self) -> None:
        loop = Loop(BlockReader(interval_millis=2_000))
        assert loop.assign([block(1)] * 4) == 4
        assert loop.assign([block(1)] * 4, passing=1.9) == 4
        assert loop.assign([block(1)] * 4, passing=0.2) == 12, "nothing is committed yet"
        for window in range(3):
            loop.commit(window)
        assert loop.assign([block(1)], passing=2) == 1
        assert [(e.window, e.before, e.readers, e.backlog) for e in loop.told if isinstance(e, ReadersChanged)] == [
            (2, 4, 12, 12),
            (3, 12, 1, 1),
        ], "the first window begins with as many as it needs: nothing has changed"
        assert loop.readers.figures() == {"lines": ReaderFigures(1, 1, 16, lowest=1, highest=12, changes=2)}

    def test_a_launch_goes_on_with_those_of_the_one_before(self) -> None:
        loop = Loop(BlockReader(), last=8)
        assert loop.assign([block(1)] * 5) == 8
        loop.commit(0)
        assert loop.assign([block(1)] * 4, passing=5) == 4
        assert len(loop.told) == 1
        assert Loop(BlockReader(max_readers=4), last=8).assign([block(1)] * 100) == 4

    def test_static(self) -> None:
        loop = Loop(BlockReader(), partitioner=StatelessPartitioner(4))
        assert [loop.assign([block(1)] * n, passing=60) for n in (1, 100)] == [4, 4]
        assert loop.readers.figures()["lines"] == ReaderFigures(4, 4, 4, lowest=4, highest=4)
        static = Loop(BlockReader(min_readers=2, collect_stats=False))
        assert [static.assign([block(1)] * n, passing=60) for n in (1, 100)] == [2, 2]

    def test_the_policy_of_the_original(self) -> None:
        loop = Loop(BlockReader(policy="power_of_two"))
        found = [loop.assign([block(1)] * n, passing=60) for n in (1,)]
        for n in (2, 7, 12, 15, 16, 3, 0):
            loop.commit(loop.next - 1)
            found.append(loop.assign([block(1)] * n, passing=60))
        assert found == [1, 2, 4, 8, 8, 16, 2, 1]

    def test_a_partitioner_that_is_used_again_begins_anew(self) -> None:
        own = BacklogPartitioner(1, 10)
        assert Loop(BlockReader(), partitioner=own).assign([block(1)] * 50) == 10
        assert Loop(BlockReader(), partitioner=own).assign([block(1)]) == 1

    def test_of_one_that_says_nothing_of_its_bounds_those_are_told_that_were_seen(self) -> None:
        loop = Loop(BlockReader(), partitioner=Listening([1, 5, 3]))
        assert [loop.assign([block(1)]) for _ in range(2)] == [5, 3]
        assert loop.readers.figures()["lines"] == ReaderFigures(3, 3, 5, lowest=3, highest=5, changes=1)


def test_totals_never_shrink() -> None:
    loop = Loop(BlockReader(), partitioner=Listening([1, 3, 2, 5]))
    for ended in ([("s0-0000", 10), ("s0-0001", 5), ("s0-0002", 1)], [("s0-0000", 1), ("s0-0001", 1)]):
        loop.assign([block(1)])
        loop.commit(loop.next - 1, *ended)
    loop.assign([block(1)])
    assert loop.readers.figures()["lines"].counters == {"tasks": 5, "records": 18}
    changes = [(e.before, e.readers, e.counters) for e in loop.told if isinstance(e, ReadersChanged)]
    assert changes == [(3, 2, {"tasks": 3, "records": 16}), (2, 5, {"tasks": 5, "records": 18})]


class Forgetful(Listening):
    """Makes new partitions, and does not think of what those before have counted."""

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return [Partition(each.operator) for each in super().define_partitions(partitions, context)]


def test_totals_do_not_shrink_whoever_makes_new_partitions() -> None:
    loop = Loop(BlockReader(), partitioner=Forgetful([1, 3, 2, 1]))
    for n in range(1, 4):
        loop.assign([block(1)])
        loop.commit(loop.next - 1, ("s0-0000", 10), ("s0-0001", 1))
        assert loop.readers.figures()["lines"].counters == {"tasks": 2 * n, "records": 11 * n}


def test_a_loop_that_takes_over_goes_on_with_the_figures() -> None:
    loop = Loop(BlockReader())
    loop.assign([block(1)] * 5)
    loop.commit(0, ("s0-0000", 10), ("s0-0001", 5))
    figures = loop.readers.figures()
    taken_over = Readers(loop.plan, slots=8, clock=loop.clock, last=loop.window(0, 5, []), figures=figures, tell=loop.told.append)
    taken_over.assign(loop.stage, 1, [block(1)], Backlog())
    expected = ReaderFigures(1, 1, 16, lowest=1, highest=5, changes=1, counters={"tasks": 2, "records": 15})
    assert taken_over.figures() == {"lines": expected}


def test_before_the_first_window_a_reader_has_figures_too(tmp_path: Path) -> None:
    assert Loop(BlockReader(min_readers=2)).readers.figures() == {"lines": ReaderFigures(2, 2, 16, lowest=2, highest=2)}
    (tmp_path / "in").mkdir()
    run = launch(chain(tmp_path / "in", sink=RecordWriter(str(tmp_path / "out"))), runner=Eight(), durability="process")
    assert run.report.windows == 0
    text = report_text(run.report)
    assert "  readers  lines: 1/1/16 (min/now/max)\n" in text
    assert "  work     not rebalanced: tasks run one after the other\n" in text


def test_the_context_of_a_partitioner() -> None:
    listening = Listening([1, 1])
    loop = Loop(BlockReader(), slots=None, partitioner=listening)
    loop.assign([block(1)])
    assert listening.contexts[0] == PartitioningContext(slots=None, grows=True, clock=loop.clock), "blocks do not go by key"


class Raising:
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        raise RuntimeError("no idea")


@attrs.frozen
class Returning:
    what: list[Any]

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return self.what


@pytest.mark.parametrize(
    ("partitioner", "reason"),
    [
        (Raising(), r"\(Raising\) failed in define_partitions\(\): RuntimeError: no idea"),
        (Returning([]), r"\(Returning\) returned no partitions"),
        (Returning([4]), r"\(Returning\) returned 4 among its partitions"),
    ],
)
def test_partitioners_that_fail(partitioner: Any, reason: str) -> None:
    with pytest.raises(PartitionerFailed, match=f"^the partitioner of operator 'lines' {reason}"):
        Loop(BlockReader(), partitioner=partitioner)


class TestSequential:
    def test_the_blocks_of_a_file_go_to_one_reader_in_order(self) -> None:
        loop = Loop(BlockReader(sequential=True, min_readers=2, max_readers=2))
        items = [block(10, "a"), block(10, "a"), block(10, "b"), block(10, "a"), block(10, "c")]
        assignment = loop.readers.assign(loop.stage, 0, items, Backlog())
        assert assignment.places == [0, 0, 1, 0, 1]
        assert assignment.weights == [30, 20]

    def test_a_file_stays_with_its_reader_in_the_next_window(self) -> None:
        loop = Loop(BlockReader(sequential=True, min_readers=2, max_readers=2))
        loop.readers.assign(loop.stage, 0, [block(10, "a"), block(10, "b")], Backlog())
        assert loop.readers.assign(loop.stage, 1, [block(10, "b"), block(10, "c")], Backlog()).places == [1, 1]
        assert loop.readers.assign(loop.stage, 2, [block(10, "d"), block(10, "e")], Backlog()).places == [0, 1]

    def test_in_a_run(self, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        for name in "abcd":
            (logs / f"{name}.txt").write_text("".join(f"{name}{n}\n" for n in range(50)))

        class Wide(LocalRunner):
            slots = 4

        out = tmp_path / "out"
        events: list[Event] = []
        reader = BlockReader[str](lambda data: data.decode(), sequential=True)
        application = chain(logs, sink=RecordWriter(str(out)), reader=reader, block_size=16)
        launch(application, runner=Wide(), durability="process", subscribers=[events.append])
        assert [event.tasks for event in events if isinstance(event, WindowPlanned)] == [8]
        by_file = [path.read_text().split() for path in sorted(out.glob("part-*"))]
        assert sorted(by_file) == [[f"{name}{n}" for n in range(50)] for name in "abcd"]


class Eight(LocalRunner):
    slots = 8


def test_a_directory_that_fills_in_bursts_is_read_by_more_readers_and_then_by_fewer(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    clock, events, ended = FakeClock(), list[Event](), threading.Event()
    bursts = [12, 1, 10, 2, 16]
    arrived = [0]

    def arrive() -> None:
        """The next burst appears all at once, some seconds later."""
        staged = tmp_path / f"burst{len(arrived)}"
        staged.mkdir()
        for n in range(bursts[len(arrived) - 1]):
            (staged / f"{n}.txt").write_text("line\n")
        arrived.append(arrived[-1] + bursts[len(arrived) - 1])
        clock.advance(5)
        os.rename(staged, logs / staged.name)

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, WindowDone) and sum(e.records for e in events if isinstance(e, WindowDecided)) == arrived[-1]:
            if len(arrived) > len(bursts):
                ended.set()
            else:
                arrive()

    arrive()
    run = launch(
        chain(logs, sink=RecordWriter(str(out))),
        runner=Eight(),
        once=False,
        clock=clock,
        subscribers=[listen],
        durability="process",
    )
    assert ended.wait(60)
    run.stop()
    run.wait(60)
    assert sum(lines_in(out).values()) == sum(bursts)
    tasks = [event.tasks for event in events if isinstance(event, WindowPlanned)]
    assert tasks == [12, 1, 10, 2, 16]
    changes = [(event.before, event.readers) for event in events if isinstance(event, ReadersChanged)]
    assert changes == [(12, 1), (1, 10), (10, 2), (2, 16)]
    done = {"tasks": 41, "records": 41, "blocks": 41, "bytes": 41 * 5, "streams_opened": 41}
    figures = run.report.readers["lines"]
    assert {name: figures.counters[name] for name in done} == done, "also of readers that are gone"
    assert attrs.evolve(figures, counters={}) == ReaderFigures(1, 16, 16, lowest=1, highest=16, changes=4)
    told = [event.counters["blocks"] for event in events if isinstance(event, ReadersChanged)]
    assert told == [12, 13, 23, 25], "totals never shrink"
    assert "(min/now/max), 4 changes, from 1 to 16; together 41 tasks, 41 blocks, 41 records\n" in report_text(run.report)
