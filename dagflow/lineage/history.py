"""Windows of earlier runs: what a run folder still knows of them, and their tasks made again."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

import attrs

from dagflow.errors import InfrastructureError
from dagflow.launching.build import LoadedApplication
from dagflow.launching.errors import ApplicationUnknown
from dagflow.ledger import DataFile, LedgerEntry
from dagflow.lineage.errors import ApplicationChanged, MadeOnDriver, RunFolderMissing, StateForgotten, WindowForgotten
from dagflow.model.types.plain_data import encode
from dagflow.planning.emission import EACH_WINDOW, Emission
from dagflow.planning.held_changes import HeldChanges
from dagflow.planning.plan import Plan, Stage
from dagflow.runtime.run_folder.folders import read_app_id
from dagflow.runtime.run_folder.launch_record import LaunchRecord
from dagflow.runtime.run_folder.layout import OWNER
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.parts import Part, part_of
from dagflow.runtime.stage.program import RunOptions, TaskSpec
from dagflow.runtime.windows import datasets
from dagflow.runtime.windows.commit import place_of
from dagflow.runtime.windows.compatibility import differences, other_values
from dagflow.runtime.windows.emission import with_holders, withheld
from dagflow.runtime.windows.event_time import event_times
from dagflow.runtime.windows.jobs import tasks_of, with_start, work_of
from dagflow.state import StateAssignment
from dagflow.state.errors import SegmentMissing, StateLost
from dagflow.state.task_states import TaskStates, declared_states
from dagflow.storage import OWN_FOLDER, absolute, base_name, explained, file_system, inside, may_follow, open_store
from dagflow.storage.records.errors import PlanMismatch, RecordRefused

_ATTEMPT = re.compile(r"\d+\..+\.(?P<task>[^.]+-\d{4,})-(?P<attempt>[^.]*)\.(?P<number>\d+)")


@attrs.frozen
class PlannedBlock:
    """A block of a file as a plan holds it: the fields of `FileBlockMetadata`, as far as the source has them."""

    file_path: str
    start: int | None = None
    stop: int | None = None
    file_length: int | None = None
    modified_ns: int | None = None
    record_end: Any = None

    @classmethod
    def of(cls, value: object) -> PlannedBlock | None:
        """Return the block that is plain data of a plan; None for an item that is not read from a file."""
        if not isinstance(value, dict) or not isinstance(path := value.get("file_path"), str):
            return None
        numbers = {name: value.get(name) for name in ("start", "stop", "file_length", "modified_ns")}
        integers = {name: number for name, number in numbers.items() if isinstance(number, int)}
        return cls(path, **integers, record_end=value.get("record_end"))


@attrs.frozen
class Item:
    """A work item of a task: the port that got it, and the item as plain data. `block`: of an item that is read from a file."""

    port: str
    value: Any
    block: PlannedBlock | None = attrs.field(
        init=False, default=attrs.Factory(lambda self: PlannedBlock.of(self.value), takes_self=True)
    )

    @property
    def path(self) -> str | None:
        """The file that it is a part of."""
        return None if self.block is None else self.block.file_path

    @property
    def start(self) -> int | None:
        """The position in the file at which it begins."""
        return None if self.block is None else self.block.start

    @property
    def stop(self) -> int | None:
        """The position behind its last byte."""
        return None if self.block is None else self.block.stop


@attrs.frozen
class FileOrigin:
    """Who wrote a file: the operator, in which task (None: on the driver), and which of this task's files by this operator."""

    operator: str
    task: str | None
    number: int


@attrs.frozen(kw_only=True)
class PastWindow:
    """A window of an earlier run: what it was to do, and what it did."""

    log: WindowLog
    run_folder: str
    plan: WindowPlan
    decision: Decision

    @classmethod
    def of(cls, dataset: str, entry: LedgerEntry, run_folder: str | None = None) -> PastWindow:
        """Return the window that an entry of a dataset committed.

        `run_folder`: its present run folder, if that differs from the dataset's record. Raises RunFolderMissing, WindowForgotten.
        """
        assert entry.data is not None
        txn = entry.data.txn
        folder = absolute(run_folder) if run_folder is not None else run_folder_of(dataset)
        store = open_store(folder, durable=False)
        log = WindowLog(store)
        kept = log.windows("plan")
        app_id = read_app_id(store)
        if not kept and app_id is None:
            raise RunFolderMissing(dataset, folder, "there is no window log")
        if app_id is not None and app_id != txn.app_id:
            raise RunFolderMissing(dataset, folder, f"that is of {app_id}, and the entry of {txn.app_id}")
        plan, decision = log.read_plan(txn.window_id), log.read_decision(txn.window_id)
        if plan is None or decision is None:
            raise WindowForgotten(folder, txn.window_id, min(kept, default=None))
        return cls(log=log, run_folder=folder, plan=plan, decision=decision)

    @property
    def window(self) -> int:
        """The number of the window."""
        return self.plan.window

    @property
    def launch(self) -> str:
        """The launch that decided it."""
        return self.decision.round.rstrip("+").partition(".")[0]

    def other(self, window: int) -> PastWindow | None:
        """Return another window of the run; None if its records are no longer kept."""
        plan, decision = self.log.read_plan(window), self.log.read_decision(window)
        return None if plan is None or decision is None else attrs.evolve(self, plan=plan, decision=decision)

    def published(self, dataset: str, file: DataFile) -> StagedFile | None:
        """Return the record of a committed file in the decision. The dataset may have been moved since."""
        alike = [
            each for each in self.decision.files if (each.name, each.records, each.size) == (file.path, file.rows, file.size)
        ]
        here = [each for each in alike if absolute(each.folder) == dataset]
        windows = here or alike
        return windows[0] if len({each.folder for each in windows}) == 1 else None

    def written(self, file: StagedFile) -> FileOrigin:
        """Who wrote a file of this window."""
        task, _ = _task_of(file)
        mine = [each for each in self.decision.files if each.operator == file.operator and _task_of(each)[0] == task]
        mine.sort(key=lambda each: _task_of(each)[1])
        return FileOrigin(file.operator, task, mine.index(file))

    def items(self, head: str, partition: int) -> list[Item]:
        """Return the work items of a partition of a stage, in order. Of an item that others read in part, its own part."""
        parts = self.parts(head, partition)
        if parts is not None:
            items = self.plan.items[head]
            return [Item(items[part.number][0], _narrowed(items[part.number][1], part)) for part in parts]
        pairs = zip(self.plan.items.get(head, ()), self.plan.places.get(head, ()), strict=False)
        return [Item(item[0], item[1]) for item, place in pairs if place == partition]

    def level_of(self, task: str) -> int:
        """Return the level of a task, by its name."""
        return self.plan.levels.get(task.rpartition("-")[0], 0)

    def items_above(self, operator: str) -> list[Item]:
        """Return all work items of the window that may have a part in an operator's input over exchanges."""
        above = self._above(operator)
        return [Item(*item) for head, items in self.plan.items.items() if head in above for item in items]

    def keeping_above(self, operator: str) -> list[str]:
        """Return those among an operator and its predecessors that kept state of earlier windows in their partitions."""
        return sorted(self._above(operator) & self.decision.partition_states.keys()) if self.window else []

    def parts(self, head: str, partition: int) -> tuple[Part, ...] | None:
        """Return the parts of items that a partition has read, if not exactly its assignment."""
        stored_parts = self.decision.parts.get(place_of(head, partition))
        return None if stored_parts is None else tuple(part_of(part) for part in stored_parts)

    def head_above(self, operator: str) -> str | None:
        """Return the operator at the head of an operator's stage: the one that got the window's work items."""
        above = self._above(operator, until=self.plan.items)
        return next((head for head in self.plan.items if head in above), None)

    def _above(self, operator: str, until: Container[str] = ()) -> set[str]:
        """Return an operator and those that lead to it, up to the given ones."""
        streams = [what.partition("stream ")[2].split(" → ") for what in self.plan.shape if " → " in what]
        ends = [(source.rpartition(".")[0], sink.rpartition(".")[0]) for source, sink in streams]
        above = {operator}
        while more := {source for source, sink in ends if sink in above} - above:
            if any(each in until for each in above):
                break
            above |= more
        return above

    def launched(self) -> LaunchRecord:
        """Return the launch that decided it. Raises ApplicationUnknown, RecordRefused."""
        record = self.log.read_launched(self.decision.round)
        if record is None:
            raise ApplicationUnknown(f"of window {self.window}", f"{self.run_folder} does not keep how it was launched")
        return record

    def planned(self, built: LoadedApplication) -> Plan:
        """Return the plan of an application as it was then: the launch may have been another one, which keeps no changes."""
        plan = built.plan(Emission())
        holding = [name for name, node in plan.dag.nodes.items() if isinstance(node.operator, HeldChanges)]
        has_held = any(name in self.decision.operators for name in holding)
        return plan if has_held or not holding else built.plan(EACH_WINDOW)

    def check_application(self, built: LoadedApplication, plan: Plan) -> tuple[str, ...]:
        """Return the properties that have changed since. Raises ApplicationChanged if it is another application."""
        changes = differences(self.plan, plan)
        if changes:
            raise ApplicationChanged(built.dag.name, self.window, changes)
        return tuple(other_values(self.plan, plan))

    def task(self, plan: Plan, stage: Stage, partition: int, base: str) -> TaskSpec:
        """Return a task of it, to run again."""
        return next(task for task in self.tasks(plan, stage, base) if task.partition == partition)

    def tasks(self, plan: Plan, stage: Stage, base: str) -> Iterator[TaskSpec]:
        """Return the tasks of a stage of it, to run again. Those of further jobs come last."""
        before = self._before()
        states = StateAssignment({stage.name: _stateful(plan, stage)}, (), {} if before is None else before.partition_states)
        times, silent = event_times(plan, self.plan, before), withheld(plan, self.plan, before)
        options = RunOptions(base=base, durable=False)
        window = with_holders(plan, self.plan)
        planned = [t for t in tasks_of(plan, window, options, self.decision.round) if t.stage == stage.name]
        for task in planned:
            yield self._as_it_ran(with_start(task, states, times, silent))
        for partition in itertools.count(len(planned)):
            if self.parts(stage.head, partition) is None:
                return
            yield self._as_it_ran(attrs.evolve(planned[0], partition=partition))

    def _as_it_ran(self, task: TaskSpec) -> TaskSpec:
        """Return a task with the parts of items that it has read, if they are not exactly its assignment."""
        parts = self.parts(task.head, task.partition) if task.layout.level == 0 else None
        return task if parts is None else attrs.evolve(task, work=work_of(self.plan, task.head, parts))

    def items_of(self, stage: Stage, partition: int) -> list[Item]:
        """Return the work items of a task; after an exchange, all that may have a part in it."""
        return self.items(stage.head, partition) if stage.level == 0 else self.items_above(stage.operators[0])

    def states(self, plan: Plan, stage: Stage, task: TaskSpec) -> TaskStates:
        """Return the states that a task began with. Raises StateForgotten."""
        if self.window and self._before() is None and (names := _stateful(plan, stage)):
            raise StateForgotten(tuple(names), self.window)
        return TaskStates(self.log.store, False, self.window, task.partition, task.keys, task.start)

    def _before(self) -> Decision | None:
        """Return the decision of the window before; None if it is no longer stored."""
        return self.log.read_decision(self.window - 1) if self.window else None


def _stateful(plan: Plan, stage: Stage) -> list[str]:
    """Return the operators of a stage with State."""
    return [name for name in stage.operators if declared_states(plan.dag.nodes[name].operator)]


@contextlib.contextmanager
def states_kept(task: TaskSpec) -> Iterator[None]:
    """Raise StateForgotten where the states of a task are not there any more: later windows have replaced them."""
    try:
        yield
    except (StateLost, SegmentMissing, Abort) as error:  # rows of a table are read while the operator works
        if isinstance(error, Abort) and not isinstance(error.error, StateLost | SegmentMissing):
            raise
        raise StateForgotten(tuple({**task.start.states, **task.start.chains}), task.window) from None


def check_end(dataset: str) -> None:
    """Raise LedgerDamaged when the run folder of a dataset, as far as it is found, has committed more than its ledger says."""
    with contextlib.suppress(RunFolderMissing, PlanMismatch, RecordRefused, InfrastructureError):  # told by verify_run_folder
        store = open_store(run_folder_of(dataset), durable=False)
        app_id = read_app_id(store)
        if app_id is not None:
            datasets.check_end(WindowLog(store), dataset, app_id)


def _narrowed(value: Any, part: Part) -> Any:
    """Narrow a work item, as plain data, to a part of it."""
    if not isinstance(value, dict):
        return value
    bounds = {"start": part.start, "stop": part.stop}
    return {**value, **{name: encode(at, f"the {name} of a part") for name, at in bounds.items() if at is not None}}


def stage_of(plan: Plan, written: FileOrigin, window: int) -> tuple[Stage, int]:
    """Return the stage and the partition of the task that wrote a file. Raises MadeOnDriver."""
    if written.task is None:
        raise MadeOnDriver(written.operator, window)
    name, _, partition = written.task.rpartition("-")
    return next(stage for stage in plan.stages if stage.name == name), int(partition)


def changed_sources(items: Sequence[Item]) -> Iterator[str]:
    """Yield the files of blocks that have changed since the blocks were planned. A reader that minds refuses them anyway."""
    for path, block in {item.block.file_path: item.block for item in items if item.block is not None}.items():
        with explained(path, "looking at the source"):
            try:
                now = file_system(path).status(path)
            except FileNotFoundError:
                yield f"{path} has been removed since"
                continue
        length, modified_ns = block.file_length, block.modified_ns
        if block.record_end is not None and now.length >= (length or 0):
            continue  # it is appended to, and the splitter checks the part that it has planned
        if length not in (None, now.length) or (modified_ns and now.modified_ns and modified_ns != now.modified_ns):
            sizes = f"{length:,} bytes then, {now.length:,} now" if length is not None else f"{now.length:,} bytes now"
            yield f"{path} has changed since ({sizes})"


@contextlib.contextmanager
def standing_in(folder: str) -> Iterator[None]:
    """Let relative paths start from a folder, if it exists, while this lasts. No other thread may run meanwhile."""
    if not os.path.isdir(folder):
        yield
        return
    with contextlib.chdir(folder):
        yield


def run_folder_of(dataset: str) -> str:
    """Return the folder of a dataset's window log as its owner has noted it, or beside the dataset if both have moved."""
    ours = inside(dataset, OWN_FOLDER)
    record = open_store(ours, durable=False).read(OWNER.form)
    if record is None:
        raise RunFolderMissing(dataset, None, "")
    owner = os.fsdecode(record)
    if not may_follow(dataset, owner):
        why = "that is not a path" if "\0" in owner or not owner else "that is on another host, which no file is followed to"
        raise RunFolderMissing(dataset, owner, why)
    has_own = base_name(owner) == OWN_FOLDER and WindowLog(open_store(ours, durable=False)).windows("plan")
    return ours if owner != ours and has_own else owner


def _task_of(file: StagedFile) -> tuple[str | None, int]:
    """Return the task that wrote a file, None for the driver, and its number among the files of the attempt."""
    name = base_name(file.attempt)
    match = _ATTEMPT.fullmatch(name)
    if match is None:
        number = name.rpartition(".")[2]
        return None, int(number) if number.isdigit() else 0
    return match["task"], int(match["number"])
