"""Sinks of one's own at launch: their store is tried, their warnings are shown, and their place is named without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Sink, SinkLaunch, StagedWindow
from dagflow.errors import OperatorFailed
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput

launches: list[SinkLaunch] = []


@attrs.define
class Store(Sink):
    """Publishes nothing."""

    problem: str = ""

    input = InputPort[Any]()

    @input.process
    def each(self, record: Any) -> None:
        pass

    def destination(self) -> str:
        return "the queue amqp://ada:geheim@host/orders"

    def check_store(self, launch: SinkLaunch) -> list[str]:
        launches.append(launch)
        if self.problem:
            raise ValueError(self.problem)
        return ["the queue is long"]

    def publish(self, window: StagedWindow) -> None:
        pass

    def is_published(self, window: StagedWindow) -> bool:
        return False

    def sweep(self, window: StagedWindow) -> None:
        launches.append(SinkLaunch(application=f"sweep {window.application}"))


def run(tmp_path: Path, problem: str = "", **options: Any) -> Any:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "in")]))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, dag.add_operator("store", Store(problem)).input)

    launches.clear()
    return run_dag(populate_dag, {"run_folder": str(tmp_path / "run")}, **options)


def test_a_store_is_tried_and_its_warnings_are_shown(tmp_path: Path) -> None:
    report = run(tmp_path)
    assert report.warnings == ["store: the queue is long"]
    assert report.sinks["store"].destination == "the queue amqp://ada:***@host/orders"
    assert report.sinks["store"].rows == 2
    first, swept = launches
    assert (first.application, first.name, first.sink, first.replaces) == ("", "populate_dag", "store", "")
    run(tmp_path)
    assert launches[0].application == swept.application.removeprefix("sweep ")


def test_fresh_names_the_application_that_it_replaces(tmp_path: Path) -> None:
    run(tmp_path)
    application = launches[1].application.removeprefix("sweep ")
    run(tmp_path, fresh=True)
    checked, swept, *_ = launches
    assert (checked.application, checked.replaces, checked.fresh) == ("", application, True)
    assert swept.application == f"sweep {application}"
    assert checked.is_earlier_run(application)


def test_a_launch_that_was_killed_while_it_started_over_has_swept_or_the_next_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    application = launches[1].application.removeprefix("sweep ")

    def killed(self: Store, window: StagedWindow) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "sweep", killed)
        with pytest.raises(OperatorFailed, match="killed"):
            run(tmp_path, fresh=True)
    run(tmp_path)  # completes what was begun
    assert launches[1].application == f"sweep {application}"
    assert launches[2].application not in ("", f"sweep {application}")


def test_an_exception_names_the_operator_and_nothing_is_planned(tmp_path: Path) -> None:
    with pytest.raises(OperatorFailed, match="the queue is closed") as failed:
        run(tmp_path, "the queue is closed")
    assert failed.value.where_in_run["operator"] == "store"
    assert not (tmp_path / "run" / "plan").exists()
