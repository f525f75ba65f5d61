"""Kills launches that write to two tables of a database around the steps of publishing, and lets others resume there.

Judged by reading the database only.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, ReaderRecord
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, Map
from operators.sinks.database.publishing import Publisher
from operators.sinks.database.staging import Staging
from tests.chaos.dying import after, before, die_at, in_child
from tests.operators.databases import Database

STEPS = {
    "before staging": before("finish", Staging),
    "after staging": after("finish", Staging),
    "after the decision": after("decide", WindowLog),
    "before the record": before("_claim", Publisher),
    "before the rows": before("_insert", Publisher),
    "before COMMIT": after("_note", Publisher),
    "after COMMIT": after("publish", Publisher),
    "before the mark": before("done", WindowLog),
    "after sweeping": after("sweep", Publisher),
}
"""The steps at which a launch is killed."""

LINES = [f"line {number}" for number in range(70)]


@attrs.frozen
class Line:
    name: str
    length: int


def populate(folder: Path, database: Database) -> Callable[[DAG, Any], None]:
    """All lines are appended to one table, and the longest of each name is put into the other."""

    def line_of(record: ReaderRecord[str]) -> Line:
        return Line(record.record, len(record.record))

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(folder / "in")], block_size=60, blocks_threshold=2))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        made = dag.add_operator("made", Map[Any, Line](line_of))
        dag.add_stream("lines", lines.messages, made.input)
        appended = dag.add_operator("appended", database.writer("appended"))
        upserted = dag.add_operator("upserted", database.writer("upserted", mode="upsert", keys=["name"]))
        dag.add_stream("made", made.output, appended.input, upserted.input)

    return populate_dag


def launched(folder: Path, database: Database, point: tuple[str, int] | None = None) -> int:
    """Launch in a child, which is killed at a point. Return its exit status."""

    def work() -> None:
        if point is not None:
            die_at(STEPS[point[0]], point[1])
        run_dag(populate(folder, database), {"run_folder": str(folder / "run")}, windows_in_flight=2)

    return in_child(work)


def wrong(folder: Path, database: Database, *points: tuple[str, int]) -> Iterator[str]:
    """Launch, killed at these points one after the other, and then once more to the end. Yield what is wrong then."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    statuses = [launched(folder, database, point) for point in points]
    for status, point in zip(statuses, points, strict=True):
        if status != -signal.SIGKILL:
            yield f"the launch that should die at {point} ended with {status}"
    for _ in range(2):
        if (status := launched(folder, database)) != 0:
            yield f"the launch after {points} ended with {status}"
        for table in ("appended", "upserted"):
            rows = Counter(database.rows(table))
            if rows != Counter((line, len(line)) for line in LINES):
                yield f"after {points}, {table} has {sorted(rows.items())}"
    if staged := database.staged():
        yield f"after {points}, there is still {staged}"
