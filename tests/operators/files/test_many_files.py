"""A splitter that knows many files: what it costs a window is what is new."""

from __future__ import annotations

import os
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, FileBlockMetadata, InputPort, Operator
from dagflow.model.operator.map_state import TrackedDict
from dagflow.model.types.plain_data import dumps, encode
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.program import RunOptions
from dagflow.runtime.windows.plan_window import Driver
from dagflow.scaling import Partition, PartitioningContext
from dagflow.state import MapLog
from dagflow.testing import FakeClock
from dagflow.testing.stores import CountingStore
from operators import FileSplitterInput

SEEN = ("files", "seen")
NEW = 10  # files a window


class Sink(Operator):
    partitioner = "self"
    input = InputPort[FileBlockMetadata]()

    @input.process
    def each(self, block: FileBlockMetadata) -> None: ...

    def define_partitions(self, partitions: list[Partition], context: PartitioningContext) -> list[Partition]:
        return partitions


def known(store: CountingStore, plan: WindowPlan, found: dict[str, str], count: int) -> WindowPlan:
    """The plan of a window after which so many files more were known."""
    log = MapLog(store)
    seen: TrackedDict[str, str] = TrackedDict()
    seen.update(found)
    seen.update({f"/logs/2026/{n:09d}.log": "1700000000000000000:1234567" for n in range(count)})
    ref: Any = log.save(plan.window, {SEEN: seen})
    plan.states["files"]["seen"] = {"$segments": {"name": ref.name, "hash": ref.hash, "size": ref.size}}
    return plan


@pytest.mark.full
def test_what_a_window_writes_does_not_grow_with_the_files_that_are_known(tmp_path: Path) -> None:
    written = []
    for count in (100, 10_000, 100_000):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        dag = DAG()
        files = dag.add_operator("files", FileSplitterInput([folder]))
        dag.add_stream("blocks", files.blocks_metadata_output, dag.add_operator("sink", Sink()).input)
        options = RunOptions(slots=2, base="/", durable=False)
        store, last, writing = CountingStore(), None, 0
        for window in range(12):
            for n in range(NEW):
                (folder / f"{window:06d}-{n:06d}.log").write_text("x")
            with Driver(make_plan(dag), options, "r", FakeClock(), last, MapLog(store)) as driver:
                live: Any = driver.operator("files")
                assert len(live.seen) == (count + NEW * window if window else 0)
                store.reset()
                last = driver.plan_window(window, None, lambda: False)
            assert last is not None
            assert len(last.items["sink"]) == NEW
            if window == 0:
                last = known(store, last, live.seen, count)
            else:
                assert store.counts["create"] == 1
                writing += store.bytes_created + len(dumps(encode(last, "plan")))
        written.append(writing)
    # a small state is merged more often, so the first may be larger
    assert all(more < 1.02 * fewer for fewer, more in pairwise(written)), f"bytes of states and plans: {written}"


def linked(folder: Path, count: int) -> Path:
    """A tree of so many names of a few files."""
    for first in range(0, count, 1000):
        below = folder / f"folder-{first // 1000:04d}"
        below.mkdir(parents=True)
        (below / "file-0000.txt").write_text("x")
        for number in range(1, 1000):
            os.link(below / "file-0000.txt", below / f"file-{number:04d}.txt")
    return folder


def traced(folder: Path, store: CountingStore) -> tuple[int, int, int]:
    """Plan all files of a folder, window by window. Return their number, and the bytes at the end and at most."""
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput([folder]))
    dag.add_stream("blocks", files.blocks_metadata_output, dag.add_operator("sink", Sink()).input)
    options, planned, window = RunOptions(slots=1, base="/", durable=False), 0, 0
    plan = make_plan(dag)
    tracemalloc.start()
    try:
        with Driver(plan, options, "r", FakeClock(), None, MapLog(store)) as driver:
            while (last := driver.plan_window(window, None, lambda: False)) is not None:
                planned, window = planned + len(last.items["sink"]), window + 1
                del last
            return planned, *tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


@pytest.mark.nightly
def test_what_the_driver_keeps_of_a_file_is_its_path_and_its_stamp(tmp_path: Path) -> None:
    """And what it holds at most is the files that are found and not planned, and one window."""
    few, many = (traced(linked(tmp_path / f"{count}", count), CountingStore()) for count in (10_000, 100_000))
    assert (few[0], many[0]) == (10_000, 100_000)
    name = len(f"{tmp_path}/100000/folder-0000/file-0000.txt")
    assert (many[1] - few[1]) / 90_000 < name + 350
    assert (many[2] - few[2]) / 90_000 < name + 1500
