"""A splitter that knows many files: what it costs a window is what is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, FileBlockMetadata, InputPort, Operator
from dagflow.model.operator.map_state import TrackedDict
from dagflow.model.types.plain_data import dumps, encode
from dagflow.plan.steps import make_plan
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
    assert max(written) < 1.02 * min(written), "bytes of states and plans"
