"""A run of two tasks over lines some of which are slow."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from dagflow import ReaderRecord
from dagflow.runtime.events import Event
from dagflow.runtime.launch import launch
from dagflow.runtime.report import RunReport
from operators import BlockReader, Map, RecordWriter
from tests.conformance.apps import chain
from tests.runtime.sharing.threads import ThreadRunner

SLOW = 0.004  # seconds


def slowly(line: ReaderRecord[str]) -> ReaderRecord[str]:
    if line.record.startswith("slow"):
        time.sleep(SLOW)
    return line


def run(
    source: Path, output: Path, runner: Any = None, *, blocks: int = 2, rebalance: str = "auto", per_block: bool = False
) -> tuple[RunReport, list[Event]]:
    size = sum(path.stat().st_size for path in source.iterdir())
    application = chain(
        source,
        Map(slowly),
        sink=RecordWriter(str(output), per_block=per_block),
        reader=BlockReader(min_readers=2, max_readers=2),
        block_size=-(-size // blocks),
    )
    events: list[Event] = []
    report = launch(
        application, runner=runner or ThreadRunner(), durability="process", subscribers=[events.append], rebalance=rebalance
    ).report
    return report, events


def expected(source: Path) -> Counter[bytes]:
    return Counter(line for path in source.iterdir() for line in path.read_bytes().splitlines())
