"""Every kind of record in the run folder flipped, cut short, removed, copied and exchanged: a launch refuses it, or is right."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, State
from dagflow.errors import DagflowError, RecordMisplaced
from dagflow.ledger import Ledger
from dagflow.runtime.events import WindowRetried
from dagflow.runtime.live import task as live_task
from dagflow.runtime.run_folder import layout
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.task.execute import MAPS
from dagflow.runtime.windows import loop
from dagflow.runtime.windows.directories import Directories
from dagflow.scaling import StatelessPartitioner
from dagflow.state import task_states
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, RecordWriter, Union
from tests.conformance.faults.crash import Tallied, Told

KINDS = ("app-id", "plan", "decision", "done", "reports", "launches", "task-states", "keyed-state", "state", "staging")
FILES = 5


class Died(BaseException):
    """The end of a launch, as a kill would be."""


@attrs.define
class Counted(Operator):
    """Tells how many lines there have been: a state that is small enough to stand in the decision itself."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    count = State(0, merge=sum)

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.count += 1
        self.output.emit(f"line {self.count}")


@attrs.define
class Place:
    """An application with all kinds of state on a run folder, and copies of what it left."""

    folder: Path

    @property
    def ours(self) -> Path:
        return self.folder / "lines" / "_dagflow"

    def populate_dag(self, dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(self.folder / "in"), blocks_threshold=1))
        reader = dag.add_operator("reader", BlockReader[str](max_readers=1))
        told, tallied = dag.add_operator("told", Told()), dag.add_operator("tallied", Tallied())
        counted, both = dag.add_operator("counted", Counted()), dag.add_operator("both", Union[str](2))
        dag.set_attributes(tallied, partitioner=StatelessPartitioner(2))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("read", reader.messages, told.input, tallied.input, counted.input)
        dag.add_stream("told", told.output, both.inputs[0])
        dag.add_stream("counted", counted.output, both.inputs[1])
        for name, output in (("lines", both.output), ("totals", tallied.output)):
            dag.add_stream(name, output, dag.add_operator(f"{name} out", RecordWriter[str](str(self.folder / name))).input)

    def run(self, **options: Any) -> None:
        MAPS.clear()  # as another process
        run_dag(self.populate_dag, **options)

    def lines(self) -> Counter[tuple[str, str]]:
        return Counter(
            (name, line)
            for name in ("lines", "totals")
            for path in (self.folder / name).glob("[!._]*")
            for line in path.read_text().splitlines()
        )

    def keep(self, aside: str) -> None:
        for name in ("lines", "totals"):
            shutil.copytree(self.folder / name, self.folder / aside / name)

    def restore(self, aside: str) -> None:
        for name in ("lines", "totals"):
            shutil.rmtree(self.folder / name)
            shutil.copytree(self.folder / aside / name, self.folder / name)

    def records(self) -> list[Path]:
        staging = [self.folder / name / "_dagflow" / "staging" for name in ("lines", "totals")]
        places = [*(self.ours / kind for kind in KINDS if kind != "staging"), *staging]
        return sorted(path for place in places for path in ([place] if place.is_file() else place.rglob("*")) if path.is_file())


def kind_of(path: Path) -> str:
    return next(kind for kind in KINDS if kind in path.parts)  # keyed-state has a folder state


def is_sealed(path: Path) -> bool:
    """Return whether `verify` checks the bytes of this record. Files of attempts and live records carry no hash of their own."""
    kind = layout.kind_of(path.as_posix().rpartition("/_dagflow/")[2])
    return kind is not None and kind.sealed


def flipped(at: float) -> Callable[[Path, list[Path]], None]:
    def flip(path: Path, alike: list[Path]) -> None:
        data = bytearray(path.read_bytes())
        data[min(int(at * len(data)), len(data) - 1)] ^= 1
        path.write_bytes(data)

    return flip


def cut(path: Path, alike: list[Path]) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path, alike: list[Path]) -> None:
    path.write_bytes(b"")


def removed(path: Path, alike: list[Path]) -> None:
    path.unlink()


def copied_on(path: Path, alike: list[Path]) -> None:
    """To the name of the next window."""
    window, dot, rest = path.name[:10], path.name[10:11], path.name[11:]
    shutil.copy(path, path.with_name(f"{int(window) + 1:010d}{dot}{rest}" if window.isdigit() else f"{path.name}0"))


def replaced(path: Path, alike: list[Path]) -> None:
    others = [each for each in alike if each != path and each.read_bytes() != path.read_bytes()]
    if others:
        shutil.copy(others[-1], path)


def exchanged(path: Path, alike: list[Path]) -> None:
    others = [each for each in alike if each != path]
    if others:
        data = path.read_bytes()
        shutil.copy(others[0], path)
        others[0].write_bytes(data)


CHANGES = {
    "flipped at the start": flipped(0.02),
    "flipped in the body": flipped(0.55),
    "flipped in the seal": flipped(0.99),
    "cut": cut,
    "emptied": emptied,
    "replaced": replaced,
    "exchanged": exchanged,
}
"""Changes of bytes: `verify` sees them all in sealed records."""
MOVES = {"removed": removed, "copied on": copied_on}


def stop_at(monkeypatch: pytest.MonkeyPatch, target: Any, name: str, window: int, after: bool) -> None:
    """Ends a launch before or after a step of a window."""
    step = getattr(target, name)

    def dying(*args: Any, **options: Any) -> Any:
        at = next((n for each in args if (n := each if isinstance(each, int) else getattr(each, "window", None)) is not None), -1)
        if at == window and not after:
            raise Died
        result = step(*args, **options)
        if at == window:
            raise Died
        return result

    monkeypatch.setattr(target, name, dying)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("damage"))
    (place.folder / "in").mkdir()
    for number in range(FILES):
        (place.folder / "in" / f"{number}.txt").write_text(f"a{number}\nb{number}\n{'c' * number}\n")
    patched = pytest.MonkeyPatch()
    patched.setattr(task_states, "INLINE", 30)  # small states inline, larger ones in objects
    patched.setattr(live_task, "BRIEF", 0.0)  # each task leaves its live record, as a slow one does
    place.run()
    place.keep("whole")
    yield place
    patched.undo()


STAGES: dict[str, tuple[Any, str, int, bool] | None] = {
    "finished": None,
    "planned": (WindowLog, "decide", 2, False),
    "decided": (WindowLog, "decide", 2, True),
    "named": (Directories, "give_names", 2, True),
    "followed": (WindowLog, "done", 2, False),
}


@pytest.fixture
def stage(place: Place, at: str, monkeypatch: pytest.MonkeyPatch) -> str:
    name = at
    if not (place.folder / name).exists():
        for output in ("lines", "totals"):
            shutil.rmtree(place.folder / output)
        if (point := STAGES[name]) is None:
            place.run(max_windows=3)
        else:
            with monkeypatch.context() as patch:
                stop_at(patch, *point)
                with pytest.raises(Died):
                    place.run()
        place.keep(name)
    return name


def continued(place: Place) -> str | None:
    """Continues the run; the error that it ends with."""
    try:
        place.run()
    except DagflowError as error:
        return error.message()
    return None


QUICK = {("finished", "flipped in the body"), ("finished", "removed"), ("planned", "exchanged"), ("decided", "replaced")}
CASES = [(stage, change) for stage in STAGES for change in (*CHANGES, *MOVES)]
IN_CI = [case for number, case in enumerate(CASES) if case in QUICK or (number + number // len(STAGES)) % 3 == 0]
"""Each change at a stage or two: all of them at all stages take minutes, and are nightly."""


def ends_of_kinds(paths: list[Path]) -> list[Path]:
    """Return the first and the last record of each kind."""
    alike = [list(group) for _, group in itertools.groupby(sorted(paths, key=kind_of), key=kind_of)]
    return [path for group in alike for path in dict.fromkeys((group[0], group[-1]))]


@pytest.mark.parametrize(
    ("at", "change"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.full) for case in IN_CI]
)
def test_a_launch_refuses_what_was_damaged_or_is_right(place: Place, stage: str, change: str) -> None:
    each_one_damaged(place, stage, change, ends_of_kinds)


@pytest.mark.nightly
@pytest.mark.parametrize(("at", "change"), CASES)
def test_a_launch_refuses_whichever_record_was_damaged_or_is_right(place: Place, stage: str, change: str) -> None:
    each_one_damaged(place, stage, change, list)


def each_one_damaged(place: Place, stage: str, change: str, chosen: Callable[[list[Path]], list[Path]]) -> None:
    place.restore("whole")
    reference = place.lines()
    place.restore(stage)
    names = [path.relative_to(place.folder) for path in chosen(place.records())]
    wrong, unseen, refused = [], [], 0
    for name in names:
        place.restore(stage)
        path = place.folder / name
        before = {each: each.read_bytes() for each in place.records()}
        (CHANGES | MOVES)[change](path, [each for each in before if kind_of(each) == kind_of(path)])
        if before == {each: each.read_bytes() for each in place.records()}:
            continue
        problems = verify_run_folder(str(place.ours)).problems
        error = continued(place)
        refused += error is not None
        if error is None:
            lines = place.lines()
            if lines != reference:
                wrong.append(f"{name}: lines that are missing {reference - lines}, that are too many {lines - reference}")
            for output in ("lines", "totals"):
                wrong += [f"{name}: {each}" for each in Ledger.open(str(place.folder / output)).verify().problems]
        elif place.lines() - reference:
            wrong.append(f"{name}: refused, and published {place.lines() - reference}")
        if is_sealed(path) and not problems and (change in CHANGES or error is not None):
            unseen.append(f"{name}: {error}")
    assert wrong == []
    assert unseen == [], "verify knows no less than a launch"
    assert refused or change == "copied on"


@pytest.mark.parametrize("at", STAGES)
def test_nothing_is_found_where_nothing_is_damaged(place: Place, stage: str) -> None:
    place.restore(stage)
    report = verify_run_folder(str(place.ours))
    assert report.problems == ()
    assert report.records > 10
    assert {kind_of(path) for path in place.records()} >= set(KINDS) - {"staging", "reports"}


@pytest.mark.parametrize(
    "change", [pytest.param(each, marks=() if each in ("cut", "copied on") else pytest.mark.full) for each in (*CHANGES, *MOVES)]
)
def test_reports_that_are_damaged_before_the_decision_make_the_window_run_again(
    place: Place, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.restore("whole")
    reference = place.lines()
    for output in ("lines", "totals"):
        shutil.rmtree(place.folder / output)
    decide, damaged = loop.decide, []

    def late(log: WindowLog, plan: WindowPlan, round: str, *rest: Any) -> Decision:
        reports = sorted((place.ours / "reports").glob(f"{plan.window:010d}.{round}.*"))
        if plan.window == 2 and not damaged:
            damaged.append(round)
            (CHANGES | MOVES)[change](reports[0], reports)
        return decide(log, plan, round, *rest)

    monkeypatch.setattr(loop, "decide", late)
    events: list[Any] = []
    if change == "copied on":  # the next window's task finds its name taken
        with pytest.raises(RecordMisplaced, match=r"reports/0000000003\..* is out of place .it is reports/0000000002"):
            place.run()
    place.run(subscribers=[events.append], retry_delay=0.0)
    assert place.lines() == reference
    reasons = [event.reason for event in events if isinstance(event, WindowRetried)]
    assert len(reasons) == (change != "copied on")
    assert all(f"reports/0000000002.{damaged[0]}." in reason or "no report from" in reason for reason in reasons)
