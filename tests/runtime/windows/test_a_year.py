"""A year of continuous running has a bounded disk."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import attrs
import pytest

from dagflow import DAG, InputOperator, MapState, OperatorContext, OutputPort, State
from dagflow.launching.run import Run
from dagflow.ledger import Ledger, read_dataset
from dagflow.runtime.run_folder import events_file
from dagflow.testing import FakeClock
from operators import RecordWriter
from tests.runtime.windows.test_datasets import Spread

HOURS = 365 * 24
EVERY = 8  # hours from one line to the next
KEEP = 20


@attrs.define
class OncePerShift(InputOperator):
    """A line every eight hours, and nothing in between; the hour passes with every question."""

    output = OutputPort[str]()
    hours = State(0)
    seen = MapState[str, int]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.hours < HOURS:
            self.context.clock.sleep(3600)
            self.hours += 1
            if self.hours % EVERY == 0:
                self.output.emit(f"hour {self.hours}")
                self.seen[f"key {self.hours % 100}"] = self.hours
            self.context.close_window()

    def is_exhausted(self) -> bool:
        return self.hours >= HOURS


def populate_dag(dag: DAG, conf: dict[str, str]) -> None:
    source = dag.add_operator("source", OncePerShift())
    spread = dag.add_operator("spread", Spread())
    out = dag.add_operator("out", RecordWriter[str](conf["out"]))
    dag.add_stream("lines", source.output, spread.input)
    dag.add_stream("spread lines", spread.output, out.input)


@attrs.define
class Disk:
    """The content of a run folder, but for the ledger's entries: files; bytes of the state, of the events, and of all else."""

    files: int
    state: int
    events: int
    rest: int


def disk(folder: Path) -> Disk:
    paths = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    paths = [path for path in paths if path.parent.parent.name != "ledger"]
    sizes = Counter({"state": 0, "events": 0})
    for path in paths:
        sizes[path.relative_to(folder).parts[0]] += path.stat().st_size
    return Disk(len(paths), sizes["state"], sizes["events"], sizes.total() - sizes["state"] - sizes["events"])


@pytest.mark.full
def test_a_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_file, "FILE_BYTES", 64 << 10)
    monkeypatch.setattr(events_file, "FILES", 3)
    out = tmp_path / "out"
    disks: list[Disk] = []
    runs: list[Run] = []

    def look(event: object) -> None:
        if getattr(event, "kind", "") == "window_done":
            window = event.window  # type: ignore[attr-defined]
            if window % 10 == 9:  # often enough to meet the files of events when they are full
                disks.append(disk(out / "_dagflow"))
            if window == HOURS // EVERY - 1:
                runs[0].stop()

    from dagflow.launching.build import build
    from dagflow.launching.launch import start

    options = {"continuous": True, "durability": "process", "runner": "local", "retain_windows": KEEP, "window": 0.5}
    built = build(populate_dag, code={"out": str(out)}, run=options)
    runs.append(start(built, subscribers=[look], clock=FakeClock(1_700_000_000.0)))
    runs[0].run_in_background()
    assert runs[0].wait(120).status == "interrupted"

    assert len(list(out.glob("part-*"))) == HOURS // EVERY
    assert read_dataset(str(out)).count_rows() == HOURS // EVERY
    half = len(disks) // 2
    first, second = disks[:half], disks[half:]
    # the layers of a state merge like the digits of a number: twice as many windows may be one digit more, in each partition
    assert max(each.files for each in second) <= max(each.files for each in first) + 10
    assert max(each.state for each in second) <= 1.5 * max(each.state for each in first)
    assert max(each.events for each in disks) <= 3.1 * (64 << 10)  # a file is closed after the line that fills it
    assert max(each.rest for each in second) <= 1.02 * max(each.rest for each in first)
    assert disks[-1].files < 3 * KEEP + 100
    entries = [entry for entry in Ledger.open(str(out)).entries() if entry.data is not None]
    assert len(entries) == HOURS // EVERY  # the hours in which nothing came have none
