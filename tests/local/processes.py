"""Helpers for the tests of worker processes: small applications, and a look at processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dagflow import DAG, ReaderRecord, launch
from dagflow.testing import Collector
from operators import BlockReader, FileSplitterInput, Map


def mapped(
    folder: Path, function: Callable[[ReaderRecord[str]], Any], seen: Collector[Any], readers: int = 2, **splitter: Any
) -> Any:
    """An application: the lines of all files in a folder, one block each, through a function."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=str(folder), **splitter))
        lines = dag.add_operator("lines", BlockReader(min_readers=readers, max_readers=readers))
        each = dag.add_operator("each", Map(function))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, each.input)
        dag.add_stream("all", each.output, dag.add_operator("seen", seen).input)

    return populate_dag


def results(folder: Path, function: Callable[[ReaderRecord[str]], Any], windows: bool = False, **options: Any) -> list[Any]:
    """Return the results of a function of all lines, in two processes. `windows`: each two files are a window."""
    seen = Collector[Any]()
    options = {"slots": 2, "runner": "local", "durability": "process", **options}
    splitter = {"blocks_threshold": 2} if windows else {}
    launch(mapped(folder, function, seen, options.pop("readers", 2), **splitter), **options)
    return list(seen.records)


def lives(process: int) -> bool:
    """Return whether a process is there, and not only its number."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def processes_below(process: int) -> list[int]:
    """Return the processes below one: its children, theirs, and so on."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
    found: list[int] = []
    todo = [process]
    while todo:
        above = todo.pop()
        todo += (below := [each for each, parent in parents.items() if parent == above])
        found += below
    return found


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for something that is true, and return it."""
    for _ in _times(seconds):
        if found := condition():
            return found
    raise AssertionError("it never happened")


def _times(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)
