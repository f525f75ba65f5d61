"""Windows with DataFrame transforms: none begins before the one before it is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.launching.launch import launch
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
from dagflow.runtime.events import Event, WindowDecided, WindowStarted
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.windows import loop
from operators import BlockReader, Count, FileSplitterInput, Map, RecordWriter, SparkOperator
from tests.conformance.apps import chain
from tests.runtime.rebalancing.skewed import slowly
from tests.runtime.rebalancing.threads import ThreadRunner


def planned(operator: Any) -> Plan:
    dag = DAG("planned")
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader[str]())
    made = dag.add_operator("made", Map(str))
    last = dag.add_operator("last", operator)
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, made.input)
    dag.add_stream("made", made.output, last.input)
    return make_plan(dag)


def test_which_windows_have_bodies() -> None:
    assert has_transforms(planned(SparkOperator[str, str](lambda frame: frame)))
    assert not has_transforms(planned(Count()))


@pytest.mark.parametrize("has", [True, False])
def test_windows_with_bodies_wait_for_the_one_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has: bool) -> None:
    """A transform may leave a temporary view, say, which one that runs meanwhile would read."""
    monkeypatch.setattr(loop, "has_transforms", lambda plan: has)
    (tmp_path / "a.txt").write_text("slow line\n" * 30)
    events: list[Event] = []
    application = chain(
        tmp_path / "a.txt", Map(slowly), sink=RecordWriter(str(tmp_path / "out")), block_size=100, blocks_threshold=1
    )
    launch(application, runner=ThreadRunner(), durability="process", subscribers=[events.append], windows_in_flight=2)
    told = [type(each) for each in events if isinstance(each, WindowStarted | WindowDecided)]
    assert (told == [WindowStarted, WindowDecided] * 3) == has
