"""A run of two tasks over lines some of which are slow.

Slow lines are very slow until work has moved from one task to the other. So a steal does not depend on how soon a busy machine
lets the other task begin.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata, ReaderRecord
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.yielding import YieldingWork
from dagflow.runtime.run_report import RunReport
from operators import BlockReader, Map, RecordWriter
from tests.conformance.apps import chain
from tests.runtime.rebalancing.threads import ThreadRunner

SLOW = 0.004  # seconds
VERY_SLOW = 0.2
YIELDED = "yielded"
MOVED = ("stolen", YIELDED)
"""Steps after which work has moved: a failpoint, and a task that stops early because another one is idle."""

UNTIL: Path | None = None
"""A file: until it is there, slow lines are very slow. Code travels to tasks by value, so an event would not be shared."""


@contextlib.contextmanager
def very_slow_until(*steps: str) -> Iterator[None]:
    """While this lasts, `pause` takes very long until a task comes to one of these steps; without any, it never does."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        reached = Path(folder, "reached")

        def tell(step: str) -> None:
            if step in steps:
                reached.touch()

        def hit(step: str) -> None:
            tell(step)
            hook(step)

        def stop(work: YieldingWork, now: float) -> None:
            tell(YIELDED)
            stop_early(work, now)

        hook, stop_early = failpoints.hook, YieldingWork._stop
        patch.setattr(failpoints, "hook", hit)
        patch.setattr(YieldingWork, "_stop", stop)
        patch.setattr(sys.modules[__name__], "UNTIL", reached if steps else None)
        yield


def pause() -> None:
    """Take the time of a slow record."""
    began = time.monotonic()
    while UNTIL is not None and not UNTIL.exists():
        if time.monotonic() > began + VERY_SLOW:
            return
        time.sleep(0.005)
    time.sleep(SLOW)


NOTES: Path | None = None
"""The file in which tasks note what they have come to, in the order of time: lines by positions, blocks by starts."""


def note(kind: str, position: int) -> None:
    if NOTES is not None:
        with NOTES.open("a", encoding="ascii") as file:
            file.write(f"{kind} {position}\n")


def noted(block: FileBlockMetadata) -> str:
    note("block", block.start)
    return str(block.start)


def slowly(line: ReaderRecord[str]) -> ReaderRecord[str]:
    if line.record.startswith("slow"):
        pause()
    note("line", line.position)
    return line


def run(
    source: Path,
    output: Path,
    runner: Any = None,
    *,
    blocks: int = 2,
    rebalance: str = "auto",
    per_block: bool = False,
    told: Path | None = None,
    until: tuple[str, ...] = MOVED,
) -> tuple[RunReport, list[Event]]:
    """`told`: where to write the numbers of the blocks that have been read; `until`: of `very_slow_until`."""
    size = sum(path.stat().st_size for path in source.iterdir())
    reader: Any = BlockReader(min_readers=2, max_readers=2)
    application = chain(
        source,
        Map(slowly),
        sink=RecordWriter(str(output), per_block=per_block),
        reader=reader,
        block_size=-(-size // blocks),
    )

    def and_blocks(dag: DAG, conf: Any) -> None:
        application(dag, conf)
        if told is not None:
            ids = dag.add_operator("ids", Map(noted))
            sink = dag.add_operator("told", RecordWriter(str(told)))
            dag.add_stream("read", reader.blocks_metadata_output, ids.input)
            dag.add_stream("ids", ids.output, sink.input)

    events: list[Event] = []
    with very_slow_until(*until):
        report = launch(
            and_blocks, runner=runner or ThreadRunner(), durability="process", subscribers=[events.append], rebalance=rebalance
        ).report
    return report, events


def expected(source: Path) -> Counter[bytes]:
    return Counter(line for path in source.iterdir() for line in path.read_bytes().splitlines())


@attrs.define
class Settings:
    input: str
    output: str


def skewed(dag: DAG, conf: Settings) -> None:
    """An application that is found again by its name: two readers, slow lines."""
    reader: Any = BlockReader(min_readers=2, max_readers=2)
    chain(Path(conf.input), Map(slowly), sink=RecordWriter(conf.output), reader=reader, block_size=6000)(dag, conf)
