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
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
from dagflow.render.report import report_text
from dagflow.runtime.events import Event, ReadersChanged, WindowDecided, WindowDone, WindowPlanned
from dagflow.runtime.run_report import ReaderFigures
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
from dagflow.testing import FakeClock, ReaderWindows
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


def windows_of(reader: BlockReader[Any], **options: Any) -> ReaderWindows:
    return ReaderWindows(reader, name="lines", **options)


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
        windows = windows_of(BlockReader(), partitioner=listening)
        windows.plan([block(10), block(20)], Backlog(5, 500))
        windows.plan([block(40)])
        windows.commit(0)
        windows.plan([block(1)])
        windows.commit(1)
        windows.commit(2)
        windows.plan([block(2)])
        assert listening.heard == [
            [OperatorStats(0, 0, 0), OperatorStats(UNASSIGNED, 7, 530)],
            [OperatorStats(0, 1, 10), OperatorStats(1, 1, 20), OperatorStats(UNASSIGNED, 1, 40)],
            [OperatorStats(0, 1, 40), OperatorStats(1, 0, 0), OperatorStats(UNASSIGNED, 1, 1)],
            [OperatorStats(0, 0, 0), OperatorStats(1, 0, 0), OperatorStats(UNASSIGNED, 1, 2)],
        ]

    def test_of_readers_that_are_gone_is_that_of_those_that_took_over(self) -> None:
        listening = Listening([1, 3, 2, 2])
        windows = windows_of(BlockReader(), partitioner=listening)
        windows.plan([block(10), block(10), block(10)])
        windows.plan([block(5), block(5)])
        windows.plan([block(1)])
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
        assert windows_of(BlockReader(min_readers=3)).plan([block(1)]) == 3
        assert windows_of(BlockReader(max_readers=3)).plan([block(1)] * 50) == 3
        assert windows_of(BlockReader()).plan([block(1)] * 50) == 16
        assert windows_of(BlockReader(), slots=2).plan([block(1)] * 50) == 4
        assert windows_of(BlockReader(), slots=None).plan([block(1)] * 10) == 5, "dynamic allocation has to start them"
        assert windows_of(BlockReader(), slots=None).plan([block(1)] * 50) == 16

    def test_what_waits_elsewhere_counts(self) -> None:
        assert windows_of(BlockReader()).plan([block(1)], Backlog(6, 6)) == 7

    def test_they_change_once_an_interval(self) -> None:
        windows = windows_of(BlockReader(interval_millis=2_000))
        assert windows.plan([block(1)] * 4) == 4
        assert windows.plan([block(1)] * 4, after=1.9) == 4
        assert windows.plan([block(1)] * 4, after=0.2) == 12, "nothing is committed yet"
        for window in range(3):
            windows.commit(window)
        assert windows.plan([block(1)], after=2) == 1
        assert [(e.window, e.before, e.readers, e.backlog) for e in windows.changes] == [
            (2, 4, 12, 12),
            (3, 12, 1, 1),
        ], "the first window begins with as many as it needs: nothing has changed"
        assert windows.figures() == ReaderFigures(1, 1, 16, lowest=1, highest=12, changes=2)

    def test_a_launch_goes_on_with_those_of_the_one_before(self) -> None:
        windows = windows_of(BlockReader(), resumed=8)
        assert windows.plan([block(1)] * 5) == 8
        windows.commit(0)
        assert windows.plan([block(1)] * 4, after=5) == 4
        assert len(windows.changes) == 1
        assert windows_of(BlockReader(max_readers=4), resumed=8).plan([block(1)] * 100) == 4

    def test_the_number_before_a_change_counts(self) -> None:
        windows = windows_of(BlockReader(), resumed=8)
        assert windows.plan([block(1)] * 4, after=60) == 4
        assert windows.figures() == ReaderFigures(1, 4, 16, lowest=4, highest=8, changes=1)

    def test_static(self) -> None:
        windows = windows_of(BlockReader(), partitioner=StatelessPartitioner(4))
        assert [windows.plan([block(1)] * n, after=60) for n in (1, 100)] == [4, 4]
        assert windows.figures() == ReaderFigures(4, 4, 4, lowest=4, highest=4)
        static = windows_of(BlockReader(min_readers=2, collect_stats=False))
        assert [static.plan([block(1)] * n, after=60) for n in (1, 100)] == [2, 2]

    def test_the_policy_of_the_original(self) -> None:
        windows = windows_of(BlockReader(policy="power_of_two"))
        found = [windows.plan([block(1)] * n, after=60) for n in (1,)]
        for window, n in enumerate((2, 7, 12, 15, 16, 3, 0)):
            windows.commit(window)
            found.append(windows.plan([block(1)] * n, after=60))
        assert found == [1, 2, 4, 8, 8, 16, 2, 1]

    def test_a_partitioner_that_is_used_again_begins_anew(self) -> None:
        own = BacklogPartitioner(1, 10)
        assert windows_of(BlockReader(), partitioner=own).plan([block(1)] * 50) == 10
        assert windows_of(BlockReader(), partitioner=own).plan([block(1)]) == 1

    def test_of_one_that_says_nothing_of_its_bounds_those_are_told_that_were_seen(self) -> None:
        windows = windows_of(BlockReader(), partitioner=Listening([1, 5, 3]))
        assert [windows.plan([block(1)]) for _ in range(2)] == [5, 3]
        assert windows.figures() == ReaderFigures(3, 3, 5, lowest=3, highest=5, changes=1)


def test_totals_never_shrink() -> None:
    windows = windows_of(BlockReader(), partitioner=Listening([1, 3, 2, 5]))
    for window, records in enumerate(([10, 5, 1], [1, 1])):
        windows.plan([block(1)])
        windows.commit(window, records)
    windows.plan([block(1)])
    assert windows.figures().counters == {"tasks": 5, "records": 18}
    changes = [(e.before, e.readers, e.counters) for e in windows.changes]
    assert changes == [(3, 2, {"tasks": 3, "records": 16}), (2, 5, {"tasks": 5, "records": 18})]


class Forgetful(Listening):
    """Makes new partitions, and does not think of what those before have counted."""

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return [Partition(each.operator) for each in super().define_partitions(partitions, context)]


def test_totals_do_not_shrink_whoever_makes_new_partitions() -> None:
    windows = windows_of(BlockReader(), partitioner=Forgetful([1, 3, 2, 1]))
    for n in range(1, 4):
        windows.plan([block(1)])
        windows.commit(n - 1, [10, 1])
        assert windows.figures().counters == {"tasks": 2 * n, "records": 11 * n}


def test_a_loop_that_takes_over_goes_on_with_the_figures() -> None:
    windows = windows_of(BlockReader())
    windows.plan([block(1)] * 5)
    windows.commit(0, [10, 5])
    plan, last, figures = windows.plan_of_run, windows.decided(0, windows.assignment), windows.readers.figures()
    taken_over = Readers(plan, slots=8, clock=windows.clock, last=last, figures=figures)
    taken_over.assign(plan.stages[0], 1, [block(1)], Backlog())
    expected = ReaderFigures(1, 1, 16, lowest=1, highest=5, changes=1, counters={"tasks": 2, "records": 15})
    assert taken_over.figures() == {"lines": expected}


def test_before_the_first_window_a_reader_has_figures_too(tmp_path: Path) -> None:
    assert windows_of(BlockReader(min_readers=2)).figures() == ReaderFigures(2, 2, 16, lowest=2, highest=2)
    (tmp_path / "in").mkdir()
    run = launch(chain(tmp_path / "in", sink=RecordWriter(str(tmp_path / "out"))), runner=Eight(), durability="process")
    assert run.report.windows == 0
    text = report_text(run.report)
    assert "  readers  lines: 1/1/16 (min/now/max)\n" in text
    assert "rebalanced" not in text  # nothing has run that could have been


def test_the_context_of_a_partitioner() -> None:
    listening = Listening([1, 1])
    windows = windows_of(BlockReader(), slots=None, partitioner=listening)
    windows.plan([block(1)])
    assert listening.contexts[0] == PartitioningContext(slots=None, grows=True, clock=windows.clock), "blocks do not go by key"


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
        windows_of(BlockReader(), partitioner=partitioner)


class TestSequential:
    def test_the_blocks_of_a_file_go_to_one_reader_in_order(self) -> None:
        windows = windows_of(BlockReader(sequential=True, min_readers=2, max_readers=2))
        items = [block(10, "a"), block(10, "a"), block(10, "b"), block(10, "a"), block(10, "c")]
        windows.plan(items)
        assert windows.assignment.places == [0, 0, 1, 0, 1]
        assert windows.assignment.weights == [30, 20]

    def test_a_file_stays_with_its_reader_in_the_next_window(self) -> None:
        windows = windows_of(BlockReader(sequential=True, min_readers=2, max_readers=2))
        windows.plan([block(10, "a"), block(10, "b")])
        windows.plan([block(10, "b"), block(10, "c")])
        assert windows.assignment.places == [1, 1]
        windows.plan([block(10, "d"), block(10, "e")])
        assert windows.assignment.places == [0, 1]

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
