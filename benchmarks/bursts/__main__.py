"""`python -m benchmarks.bursts`: runs for half a minute, and draws the blocks and readers of its windows, from its events."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks import machine
from benchmarks.report import leave_in_order, typed, write_between
from dagflow import DAG, launch
from dagflow.runtime.events import ReadersChanged, WindowDone, WindowPlanned
from operators import BlockReader, FileSplitterInput, RecordWriter, TimeBasedDirectoryScanner

MARK = "bursts run"
BURSTS = (1, 40, 12, 3, 1, 200, 9, 2, 1)  # files that are moved into the folder
PAUSE = 4.0  # seconds between bursts
MOST_DRAWN = 40
SLOTS = 8


@attrs.define
class Listener:
    """Notes what the run's events say of windows and readers, and when."""

    began: float = attrs.field(factory=time.monotonic)
    windows: list[tuple[float, int, int]] = attrs.field(factory=list)  # second, blocks, tasks
    changes: list[ReadersChanged] = attrs.field(factory=list)
    done: int = 0

    def __call__(self, event: Any) -> None:
        if isinstance(event, WindowPlanned):
            self.windows.append((time.monotonic() - self.began, event.items, event.tasks))
        elif isinstance(event, ReadersChanged):
            self.changes.append(event)
        elif isinstance(event, WindowDone):
            self.done += 1


def populate(folder: Path) -> Any:
    """Lines of the files below `in`, to `out`."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        scanner = TimeBasedDirectoryScanner(files=[str(folder / "in")], scan_interval_millis=200)
        files = dag.add_operator("files", FileSplitterInput(scanner=scanner))
        reader = dag.add_operator("reader", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, dag.add_operator("writer", RecordWriter(str(folder / "out"))).input)

    return populate_dag


def arrive(folder: Path, number: int, files: int) -> None:
    """So many small files are moved into the folder at once."""
    staged = folder / f"burst{number}"
    staged.mkdir()
    for n in range(files):
        (staged / f"{n}.txt").write_text("line of a burst\n" * 100)
    os.rename(staged, folder / "in" / staged.name)


def run(folder: Path, bursts: Sequence[int], pause: float, **options: Any) -> Listener:
    """Runs until all bursts have been read; a first one before them warms Spark up, and is not told."""
    (folder / "in").mkdir()
    arrive(folder, 0, SLOTS)
    heard = Listener()
    running = launch(populate(folder), once=False, subscribers=[heard], durability="process", progress="none", **options)
    _until(lambda: heard.done >= 1)
    arrive(folder, 1, 1)  # as few readers as there can be, when it begins
    _until(lambda: heard.done >= 2)
    told = len(heard.windows)
    heard.changes.clear()
    heard.began = time.monotonic()
    for number, files in enumerate(bursts, 2):
        due = heard.began + (number - 2) * pause
        time.sleep(max(0.0, due - time.monotonic()))
        arrive(folder, number, files)
    everything = sum(bursts)
    _until(lambda: sum(blocks for _, blocks, _ in heard.windows[told:]) == everything and heard.done == len(heard.windows))
    running.stop()
    running.wait(60)
    del heard.windows[:told]
    return heard


def _until(is_so: Any) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("the run does not get on")
        time.sleep(0.02)


def drawn(heard: Listener) -> str:
    """A Mermaid chart of the windows."""
    columns = zip(*heard.windows, strict=True)
    seconds, blocks, readers = ([round(value, 1) if value % 1 else value for value in column] for column in columns)
    shown = [min(MOST_DRAWN, count) for count in blocks]
    rows = [
        "```mermaid",
        "xychart-beta",
        f'  title "blocks of each window (bars, at most {MOST_DRAWN} shown) and its readers (line)"',
        f'  x-axis "second" {[round(second, 1) for second in seconds]}',
        f'  y-axis "blocks, readers" 0 --> {MOST_DRAWN}',
        f"  bar {shown}",
        f"  line {readers}",
        "```",
    ]
    changes = ", ".join(f"{each.before} → {each.readers} (backlog {each.backlog})" for each in heard.changes)
    return "\n".join([*rows, "", f"Its events `readers_changed`: {changes}."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints the chart, and writes it where it is wanted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bursts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three bursts, a second apart")
    parser.add_argument("--runner", default="spark", choices=["spark", "local"])
    parser.add_argument("--markdown", type=Path, help="write the chart here, between its marks")
    given = parser.parse_args(arguments)
    bursts, pause = ((1, 12, 2), 1.0) if given.quick else (BURSTS, PAUSE)
    options = {"master": f"local[{SLOTS},4]"} if given.runner == "spark" else {}
    with tempfile.TemporaryDirectory(prefix="dagflow-bursts-") as folder:
        heard = run(Path(folder), bursts, pause, runner=given.runner, **options)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    page = f"Made by `{typed('bursts', arguments)}` on {today}; {machine.describe()}.\n\n{drawn(heard)}"
    print(page)
    if given.markdown is not None:
        write_between(given.markdown, page, MARK)
    return 0


if __name__ == "__main__":
    leave_in_order()
    sys.exit(main())
