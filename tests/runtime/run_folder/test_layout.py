"""The table of the run folder: every name has one kind, runs leave nothing else, and the documentation shows it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, launch
from dagflow.runtime.events import Event
from dagflow.runtime.rebalancing import yielding
from dagflow.runtime.run_folder import layout
from dagflow.runtime.run_folder.layout import KINDS, Kind, Removed, as_table, kind_of
from dagflow.state import task_states
from dagflow.storage import OWN_FOLDER, MemoryStore
from operators import BlockReader, Count, FileSplitterInput, FlatMap, Map, RecordWriter
from tests.launching.numbers_app import application as numbers
from tests.runtime.rebalancing import skewed
from tests.runtime.rebalancing.threads import ThreadRunner
from tests.runtime.windows.test_loop import Troubled

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "file_formats.md"
EXAMPLE: dict[str, Any] = {
    "window": 3,
    "epoch": "20260101T000000-00000abcdef.after1+",
    "stage": "s0",
    "partition": 1,
    "task": "s0-0001",
    "number": 7,
    "item": 12,
    "hash": "0123abcd",
    "hash_name": "sha256-0123abcd",
    "launch": "20260101T000000-00000abcdef",
    "stream": "20260101T000000-00000abcdef.0001",
    "token": "abc",
    "attempt": "s0-0001-1",
    "shard": 0,
    "sink": "sales",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.form)
def test_a_name_is_of_its_kind_only(kind: Kind) -> None:
    assert kind_of(kind.name(**EXAMPLE)) is kind


@pytest.mark.parametrize("name", ["reports/notes.txt", "plan/3", "plan/0000000003.bak", "launches/mine", "events/README", "data"])
def test_names_of_others_have_no_kind(name: str) -> None:
    assert kind_of(name) is None


def test_names_made_of_an_area_are_those_of_the_kinds() -> None:
    claims = layout.stage_area(layout.CLAIM, 3, "r", "s0")
    log, item = layout.task_name(claims, 1), layout.item_name(claims, 12)
    made = [layout.entry_name(log, 7), layout.entry_name(item, 7), layout.gauge_name(claims, 1)]
    assert [kind_of(name) for name in made] == [layout.CLAIM, layout.ITEM_CLAIM, layout.GAUGE]
    report = layout.task_name(layout.stage_area(layout.REPORT, 3, "r", "s0"), 1)
    assert report == layout.REPORT.name(window=3, epoch="r", stage="s0", partition=1)


def test_a_plan_is_removed_before_its_decision() -> None:
    order = [kind for kind in KINDS if kind.fresh]
    assert order.index(layout.PLAN) < order.index(layout.DECISION) < order.index(layout.DONE)


def test_the_mark_of_a_window_is_the_last_of_its_records_that_age() -> None:
    """A launch finds windows to remove by their marks: what comes behind the mark would stay after a kill in between."""
    aged = [kind for kind in KINDS if kind.removed is Removed.AGED]
    assert aged[-1] is layout.DONE, "in KINDS, kinds that age stand before DONE"


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.removed in (Removed.SWEPT, Removed.AGED)], ids=lambda kind: kind.form
)
def test_what_is_removed_by_window_has_the_window_in_its_name(kind: Kind) -> None:
    number = kind.form.rpartition("/")[2].removeprefix("{window:010d}")
    assert number == "" if kind.removed is Removed.AGED else number == "" or number.startswith("."), "WindowLog.forget, drop"


def test_stored_lists_what_is_of_the_kinds_asked_for() -> None:
    store = MemoryStore()
    report = layout.REPORT.name(**EXAMPLE)
    for name in (report, layout.CRASH_MARKER.name(**EXAMPLE), "reports/notes.txt", layout.PLAN.name(window=3)):
        store.create(name, b"")
    assert list(layout.stored(store, (layout.REPORT,))) == [report]
    assert list(layout.stored(store, (layout.REPORT, layout.PLAN), window=3)) == [report, "plan/0000000003"]
    assert list(layout.stored(store, (layout.REPORT,), window=4)) == []


def test_the_documentation_shows_the_table() -> None:
    shown = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.count("|") == 8]
    missing = [row for row in as_table().splitlines() if row not in shown]
    assert missing == [], "rows to paste into docs/reference/file_formats.md:\n" + "\n".join(missing)
    assert shown == as_table().splitlines(), "docs/reference/file_formats.md: other rows, or another order, than KINDS"


class Seen:
    """All names that were in some folders whenever something happened."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self.names: set[str] = set()

    def __call__(self, event: Event | None = None) -> None:
        for folder in self._folders:
            for path, _, files in os.walk(folder):
                self.names |= {
                    os.path.relpath(os.path.join(path, name), folder) for name in files if not name.startswith(".tmp-")
                }

    def kinds(self) -> set[Kind | None]:
        self()
        unknown = sorted(name for name in self.names if kind_of(name) is None)
        assert not unknown, "add a Kind for these to dagflow/runtime/run_folder/layout.py, and to its KINDS"
        return {kind_of(name) for name in self.names}


def words(source: Path, output: Path) -> Callable[[DAG, Any], None]:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(source), block_size=1 << 10, blocks_threshold=2))
        reader: Any = dag.add_operator("reader", BlockReader(min_readers=2, max_readers=2))
        split: Any = dag.add_operator("split", FlatMap(lambda line: line.record.split()))
        count: Any = dag.add_operator("count", Count(by="value"))
        text: Any = dag.add_operator("text", Map(str))
        write = dag.add_operator("write", RecordWriter(str(output)))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, split.input)
        dag.add_stream("words", split.output, count.input)
        dag.add_stream("counts", count.output, text.input)
        dag.add_stream("texts", text.output, write.input)

    return populate_dag


def test_a_run_with_exchanges_and_a_failed_attempt_leaves_nothing_else(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.txt").write_text("".join(f"word{n % 7} word{n % 3}\n" for n in range(600)))
    seen = Seen(output / OWN_FOLDER)
    runner = Troubled(lambda job, n: RuntimeError("lost") if n == 2 else None)
    launch(words(source, output), runner=runner, durability="process", subscribers=[seen], retry_delay=0.0)
    of_windows = {layout.PLAN, layout.DECISION, layout.DONE, layout.REPORT, layout.STAGED, layout.LEDGER}
    assert {*of_windows, layout.STATE, layout.KEYED_STATE} <= seen.kinds()
    launch(words(source, output), runner="local", durability="process", subscribers=[seen], fresh=True)
    seen.kinds()


def test_a_run_with_states_of_tasks_leaves_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_states, "INLINE", 0)
    seen = Seen(tmp_path)
    launch(numbers([[1, 2, -3], [4]], (2,)), run_folder=str(tmp_path), durability="process", runner="local", subscribers=[seen])
    assert {layout.TASK_STATE, layout.LAUNCH, layout.EVENTS, layout.APP_ID, layout.LOCK} <= seen.kinds()


@pytest.mark.full  # real threads and real time
@pytest.mark.parametrize(
    ("form", "kinds"),
    [("auto", {layout.CLAIM, layout.GAUGE, layout.ITEM_CLAIM}), ("yield", {layout.REPORT, layout.FREE_SLOT})],
)
def test_a_run_that_rebalances_leaves_nothing_else(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, kinds: set[Kind]
) -> None:
    monkeypatch.setattr(yielding, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(yielding, "YIELD_COST", 0.02)
    output = tmp_path / "out"
    seen = Seen(output / OWN_FOLDER)
    watch, over = threading.Thread(target=lambda: [seen() or over.wait(0.02) for _ in iter(over.is_set, True)]), threading.Event()
    watch.start()
    try:
        skewed.run(source, output, ThreadRunner(), rebalance=form, told=tmp_path / "told" if form == "auto" else None)
    finally:
        over.set()
        watch.join()
    assert kinds <= seen.kinds()
