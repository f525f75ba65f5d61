"""Applications that the conformance cases run, on both runners, and what they need.

The cases are grouped by promise:

- `faults`: whatever dies or fails, the output is that of an undisturbed run;
- `cuts`: the rows are the same however files are cut, and whichever task reads which part;
- `keys`: records with one key meet, with the state of that key, over any number of partitions, windows and launches;
- `dags`: operators compose: any shape of DAG, form of handlers, windows, and errors that name their place.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dagflow import DAG, Operator
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter

Populate = Callable[[DAG, Any], None]


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for a condition, for a minute at most."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def wait_for_file(path: str) -> None:
    """Wait until another task has made a file. So work that is to be taken over lasts until that task is at hand."""
    wait_for(lambda: os.path.exists(path))


def is_kept(line: Any) -> bool:
    return not line.record.startswith(".")


def vectorised() -> Operator:
    """Keeps lines that do not start with a dot, by batches."""
    return Filter(~pc.starts_with(pc.field("record"), "."))


def by_function() -> Operator:
    """The same by a lambda."""
    return Filter(lambda line: not line.record.startswith("."))


def chain(source: Path, *middle: Operator, sink: Operator, reader: BlockReader[Any] | None = None, **splitter: Any) -> Populate:
    """Files → lines → each operator of `middle` by its port `output` → `sink`."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], **splitter))
        lines = dag.add_operator("lines", reader if reader is not None else BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        port: Any = lines.messages
        for number, operator in enumerate((*middle, sink)):
            added: Any = dag.add_operator("sink" if operator is sink else f"m{number}", operator)
            dag.add_stream(f"s{number}", port, added.input)
            port = getattr(added, "output", None)

    return populate_dag


def line_filter(source: Path, output: Path, keep: Operator, **splitter: Any) -> Populate:
    """Copies the kept lines of all files in `source`."""
    return chain(source, keep, sink=RecordWriter(str(output)), **splitter)


def written(output: Path) -> list[Path]:
    """The data files in an output folder."""
    return sorted(
        p for p in output.rglob("*") if p.is_file() and not any(part[0] in "._" for part in p.relative_to(output).parts)
    )


def lines_in(output: Path) -> Counter[bytes]:
    """All lines in an output folder, each with how often it is there. Every line must have its end."""
    found: Counter[bytes] = Counter()
    for path in written(output):
        data = path.read_bytes()
        assert data.endswith(b"\n"), f"{path} does not end with a line feed"
        found.update(data[:-1].split(b"\n"))
    return found


def left_over(output: Path) -> list[Path]:
    """Attempt files that are still in the staging folder."""
    staging = output / "_dagflow" / "staging"
    return sorted(staging.iterdir()) if staging.exists() else []
