"""A year of continuous running has a bounded disk."""

from __future__ import annotations

import os
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


def housekeeping(folder: Path) -> tuple[int, int]:
    """Files and bytes in the run folder, but for the ledger's entries."""
    found = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    found = [path for path in found if path.parent.parent.name != "ledger"]
    return len(found), sum(path.stat().st_size for path in found)


@pytest.mark.full
def test_a_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_file, "FILE_BYTES", 64 << 10)
    monkeypatch.setattr(events_file, "FILES", 3)
    out = tmp_path / "out"
    sizes: list[tuple[int, int]] = []
    runs: list[Run] = []

    def look(event: object) -> None:
        if getattr(event, "kind", "") == "window_done":
            window = event.window  # type: ignore[attr-defined]
            if window % 10 == 9:  # often enough to meet the files of events when they are full
                sizes.append(housekeeping(out / "_dagflow"))
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
    half = len(sizes) // 2
    # the layers of a state merge like the digits of a number: twice as many windows may be one digit more, in each partition
    assert max(files for files, _ in sizes[half:]) <= max(files for files, _ in sizes[:half]) + 10
    assert max(size for _, size in sizes[half:]) <= 1.1 * max(size for _, size in sizes[:half])
    assert sizes[-1][0] < 3 * KEEP + 100
    entries = [entry for entry in Ledger.open(str(out)).entries() if entry.data is not None]
    assert len(entries) == HOURS // EVERY  # the hours in which nothing came have none
