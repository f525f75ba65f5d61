"""A run of two tasks over lines some of which are slow."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, FileBlockMetadata, ReaderRecord
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event
from dagflow.runtime.run_report import RunReport
from operators import BlockReader, Map, RecordWriter
from tests.conformance.apps import chain
from tests.runtime.rebalancing.threads import ThreadRunner

SLOW = 0.004  # seconds


SLOW_UNTIL: Path | None = None
"""A file: until it is there, a slow line takes a twentieth of a second, and no time after that."""

NOTES: Path | None = None
"""Where tasks note what they have come to, in the order of time: lines by their positions, blocks by their starts."""


def note(kind: str, position: int) -> None:
    if NOTES is not None:
        with NOTES.open("a", encoding="ascii") as file:
            file.write(f"{kind} {position}\n")


def noted(block: FileBlockMetadata) -> str:
    note("block", block.start)
    return str(block.start)


def slowly(line: ReaderRecord[str]) -> ReaderRecord[str]:
    if line.record.startswith("slow"):
        if SLOW_UNTIL is None:
            time.sleep(SLOW)
        elif not SLOW_UNTIL.exists():
            time.sleep(0.05)
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
) -> tuple[RunReport, list[Event]]:
    """`told`: where to write the numbers of the blocks that have been read."""
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
