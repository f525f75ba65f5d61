"""Inputs whose lines say what they cost, and the application that works on them.

Costs are waited for, not computed: so they are the same however busy the machine is, and the ideal is known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState, launch
from operators import BlockReader, Count, FileSplitterInput, KeyValue, Map, RecordWriter

LINE = 100  # bytes
OWED = 0.002  # seconds that are waited for at once: a shorter sleep is never exact


@attrs.define
class Costly(Operator):
    """Takes as long for each line as it says: its first word are microseconds. `share` of it, for warming up."""

    share: float = attrs.field(default=1.0, kw_only=True)

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[ReaderRecord[str]]()
    owed = WindowState(0.0)  # what was waited too long is not waited again: it comes to nothing however lines are handed over

    @input.stream
    def work(self, lines: Iterator[ReaderRecord[str]]) -> None:
        """Waits, and hands on."""
        owed = self.owed
        for line in lines:
            owed += int(line.record[:8]) * 1e-6 * self.share
            self.output.emit(line)
            if owed >= OWED:
                began = time.perf_counter()
                time.sleep(owed)
                owed -= time.perf_counter() - began
        self.owed = owed


@attrs.frozen
class Input:
    """A folder to be read, the size of its blocks, and how many seconds of work it is. `counts`: by key, behind an exchange.

    `readers` and `blocks`: what a window has.
    """

    folder: Path
    block_size: int
    seconds: float
    counts: bool = False
    readers: int = 2
    blocks: int | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(path.stat().st_size for path in self.folder.iterdir())


def make_file(path: Path, blocks: Sequence[tuple[int, float]]) -> None:
    """A file of blocks: so many lines, which take so many seconds in all."""
    with path.open("w", encoding="ascii") as file:
        for lines, seconds in blocks:
            cost = f"{round(seconds / lines * 1e6):08d} "
            file.write((cost.ljust(LINE - 1, "x") + "\n") * lines)


def slow_block(folder: Path, unit: float) -> Input:
    """One block in 40 costs 30 times the others."""
    folder.mkdir()
    lines = 500
    make_file(folder / "a.txt", [(lines, 30 * unit if n == 7 else unit) for n in range(40)])
    return Input(folder, lines * LINE, 69 * unit)


def before_a_keyed_level(folder: Path, unit: float) -> Input:
    """The same; what comes out of it is counted by key."""
    return attrs.evolve(slow_block(folder, unit), counts=True)


def huge_file(folder: Path, unit: float) -> Input:
    """One file of 90 % of the bytes, in one huge block, among 20 small ones."""
    folder.mkdir()
    for n in range(20):
        make_file(folder / f"{n:02d}.txt", [(100, unit / 2)])
    make_file(folder / "07-huge.txt", [(18_000, 90 * unit)])
    return Input(folder, 18_000 * LINE, 100 * unit)


def last_block(folder: Path, unit: float) -> Input:
    """All the work is in the last block of 40."""
    folder.mkdir()
    make_file(folder / "a.txt", [(500, 69 * unit if n == 39 else 0.0) for n in range(40)])
    return Input(folder, 500 * LINE, 69 * unit)


def quick_then_slow(folder: Path, unit: float) -> Input:
    """One block, so small that it is read in one go: quick lines, then slow ones."""
    folder.mkdir()
    make_file(folder / "a.txt", [(2_000, 0.0), (8_000, 69 * unit)])
    return Input(folder, 10_000 * LINE, 69 * unit)


def even(folder: Path, unit: float) -> Input:
    """40 blocks that cost the same."""
    folder.mkdir()
    make_file(folder / "a.txt", [(500, 2 * unit) for _ in range(40)])
    return Input(folder, 500 * LINE, 80 * unit)


def many_windows(folder: Path, unit: float) -> Input:
    """Small files in windows of 8 readers each, four times as many as there are slots; hardly any work."""
    folder.mkdir()
    files = 8 * max(2, round(120 * unit))
    for n in range(files):
        make_file(folder / f"{n:03d}.txt", [(20, 0.0)])
    return Input(folder, 1 << 20, 0.0, readers=8, blocks=8)


def small_files(folder: Path, unit: float) -> Input:
    """Files of 50 KB, which cost the same, in one window."""
    folder.mkdir()
    for n in range(max(20, round(20_000 * unit))):
        make_file(folder / f"{n:04d}.txt", [(500, 0.0)])
    return Input(folder, 1 << 20, 0.0)


INPUTS = {
    "slow": slow_block,
    "keyed": before_a_keyed_level,
    "huge": huge_file,
    "last": last_block,
    "turn": quick_then_slow,
    "even": even,
    "windows": many_windows,
    "small": small_files,
}


def number(line: ReaderRecord[str]) -> int:
    """A key: one of 97."""
    return line.position // LINE % 97


def told(counted: KeyValue[int, int]) -> str:
    """A key and its count as a line."""
    return f"{counted.key} {counted.value}"


def run(
    source: Path,
    block_size: int,
    output: Path,
    *,
    readers: int,
    rebalance: str,
    share: float = 1.0,
    counts: bool = False,
    blocks: int | None = None,
) -> Any:
    """Runs the application once; the report."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=block_size, blocks_threshold=blocks))
        reader = dag.add_operator("reader", BlockReader(min_readers=readers, max_readers=readers, collect_stats=False))
        work = dag.add_operator("work", Costly(share=share))
        writer: RecordWriter[Any] = dag.add_operator("writer", RecordWriter(str(output)))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, work.input)
        if not counts:
            dag.add_stream("done", work.output, writer.input)
            return
        count = dag.add_operator("count", Count(by=number))
        text = dag.add_operator("text", Map(told))
        dag.add_stream("done", work.output, count.input)
        dag.add_stream("counts", count.output, text.input)
        dag.add_stream("told", text.output, writer.input)

    return launch(populate_dag, runner="spark", durability="process", progress="none", rebalance=rebalance).report
