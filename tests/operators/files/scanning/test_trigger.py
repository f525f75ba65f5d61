"""`trigger`: a property, a setting and a call, which reach a running launch."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from dagflow import launch
from dagflow.runtime.events import Event, RunEnded, WindowDone
from operators import BlockReader, FileSplitterInput, Map, RecordWriter
from operators.files.scanner import TimeBasedDirectoryScanner

FOREVER = 10**9


@pytest.mark.parametrize("settings", [{}, {"operator.files.scanner.min_age": 0}])
@pytest.mark.parametrize("how", ["call", "set", "run"])
def test_it_reaches_a_running_launch(tmp_path: Path, how: str, settings: dict[str, Any]) -> None:
    source, out, done = tmp_path / "in", tmp_path / "out", threading.Semaphore(0)
    source.mkdir()
    (source / "a").write_text("a\n")
    added: list[FileSplitterInput] = []

    def populate_dag(dag, conf):
        scanner = TimeBasedDirectoryScanner(source, scan_interval_millis=FOREVER)
        added.append(dag.add_operator("files", FileSplitterInput(scanner=scanner)))
        reader = dag.add_operator("reader", BlockReader())
        writer = dag.add_operator("writer", RecordWriter(path=str(out)))
        dag.add_stream("blocks", added[0].blocks_metadata_output, reader.blocks_metadata_input)
        text = dag.add_operator("text", Map(lambda line: line.record))
        dag.add_stream("lines", reader.messages, text.input)
        dag.add_stream("texts", text.output, writer.input)

    def subscriber(event: Event) -> None:
        if isinstance(event, WindowDone | RunEnded):
            done.release()

    run = launch(populate_dag, settings, runner="local", once=False, subscribers=[subscriber])
    try:
        assert done.acquire(timeout=60)
        if run.ended:
            run.wait(0)  # raises what ended it
        (source / "b").write_text("b\n")
        if how == "call":
            added[0].scanner.trigger()
        elif how == "set":
            added[0].scanner.trigger = True
        else:
            run.operator("files").scanner.trigger()  # type: ignore[attr-defined]
        assert done.acquire(timeout=60)
        if run.ended:
            run.wait(0)  # raises what ended it
    finally:
        run.stop()
        run.wait(60)
    assert len(list(out.glob("part*"))) == 2
    added[0].scanner.trigger()  # it has ended: there is nothing to ask


def test_it_is_a_property_and_a_setting(tmp_path: Path) -> None:
    scanner = TimeBasedDirectoryScanner(tmp_path, trigger=True)
    assert scanner.trigger
    assert pickle.loads(pickle.dumps(scanner)).trigger
    scanner.trigger = False
    assert not scanner.trigger
    with pytest.raises(TypeError, match="must be true or false"):
        scanner.trigger = "yes"  # type: ignore[assignment]
    (tmp_path / "a").touch()

    def populate_dag(dag, conf):
        dag.add_operator("files", FileSplitterInput(tmp_path))

    assert launch(populate_dag, {"operator.files.scanner.trigger": True}, runner="local").report.status == "done"
