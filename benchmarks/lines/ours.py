"""Our side: small applications, and how they are run and timed."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc

from dagflow import DAG, ReaderRecord, launch
from operators import BlockReader, FileSplitterInput, Filter, FixedBytesReaderContext, FSSliceReader, RecordWriter
from operators.files.scanner import TimeBasedDirectoryScanner


@attrs.define
class Settings:
    """The settings of the applications below."""

    input: list[str]
    output: str
    block_size: int | None = None
    blocks_threshold: int | None = None


def _chain(dag: DAG, conf: Settings, reader: Any, predicate: Any = None, terminator: str = "\n", **options: Any) -> None:
    splitter = FileSplitterInput(files=conf.input, block_size=conf.block_size, blocks_threshold=conf.blocks_threshold, **options)
    files = dag.add_operator("splitter", splitter)
    reading = dag.add_operator("reader", reader)
    writer = dag.add_operator("writer", RecordWriter(path=conf.output, terminator=terminator))
    dag.add_stream("blocks", files.blocks_metadata_output, reading.blocks_metadata_input)
    if predicate is None:
        dag.add_stream("records", reading.messages, writer.input)
        return
    keep = dag.add_operator("keep", Filter(predicate))
    dag.add_stream("records", reading.messages, keep.input)
    dag.add_stream("kept", keep.output, writer.input)


def is_wanted(record: ReaderRecord[str]) -> bool:
    """The plain Python of the line filter."""
    return not record.record.startswith(".")


def vectorised(dag: DAG, conf: Settings) -> None:
    """The line filter with an expression."""
    _chain(dag, conf, BlockReader(), ~pc.starts_with(pc.field("record"), "."))


def by_function(dag: DAG, conf: Settings) -> None:
    """The line filter with a Python function for each record."""
    _chain(dag, conf, BlockReader(), is_wanted)


def slices(dag: DAG, conf: Settings) -> None:
    """Copies slices of 256 KiB."""
    _chain(dag, conf, FSSliceReader(reader_context=FixedBytesReaderContext(length=256 * 1024)), terminator="")


def scanned(dag: DAG, conf: Settings) -> None:
    """Copies the lines of files whose names match."""
    scanner = TimeBasedDirectoryScanner(file_pattern_regular_exp=r".*\.txt", ignore_file_pattern_regular_exp=r".*/_.*")
    _chain(dag, conf, BlockReader(), scanner=scanner, window_bytes=1 << 50)  # all in one window


Application = Callable[[DAG, Settings], None]


def run(
    application: Application, source: Path, output: Path, *, runner: str = "spark", durability: str = "process", **more: Any
) -> Any:
    """Runs an application once to its end; the ended run."""
    shown = {name: more.pop(name) for name in ("block_size", "blocks_threshold") if name in more}
    settings = Settings(input=[str(source)], output=str(output), **shown)
    return launch(application, settings, runner=runner, durability=durability, progress="none", **more)


class Times:
    """Listens to a run's events: when windows were planned and done, and when the run began."""

    def __init__(self) -> None:
        self.began = 0.0
        self.planned: list[float] = []
        self.done: list[float] = []

    def __call__(self, event: Any) -> None:
        if event.kind == "run_started":
            self.began = event.at
        elif event.kind == "window_planned":
            self.planned.append(event.at)
        elif event.kind == "window_done":
            self.done.append(event.at)

    def each_window(self) -> float:
        """Median seconds from one window's end to the next one's: what one window costs when they follow each other."""
        return statistics.median(after - before for before, after in zip(self.done, self.done[1:], strict=False))


def remove(*paths: Path) -> None:
    """Removes files and folders, if they are there."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
