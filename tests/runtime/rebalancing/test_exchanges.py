"""Work that is shared before an exchange: a task whose output is lost after it has reported sends the same rows again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, ReaderRecord, launch
from dagflow.local.spool import Spool
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.exchange.rows import Row
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.runtime.task.execute import execute
from dagflow.testing import Collector
from operators import BlockReader, FileSplitterInput, Map
from tests.conformance.keys.exchanges import Counted, Tally, as_counter, split_and_tally
from tests.runtime.rebalancing.threads import ATTEMPTS, Killed, ThreadRunner

pytestmark = pytest.mark.full  # real threads and real time

Rows = list[tuple[int, int, int, int, bytes]]


class ForgetfulRunner(ThreadRunner):
    """Loses what all tasks of level 0 have sent, after they have reported, and lets them run again."""

    def __init__(self) -> None:
        super().__init__(2)
        self.first: dict[str, Rows] = {}
        self.again: dict[str, Rows] = {}

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        log = WindowLog.open(job.run_folder, job.durable)
        below = [spec for spec in job.tasks if spec.layout.level == 0]
        running = [self._pool.submit(self._sent, job, spec, log, self.first) for spec in below]
        outcomes = [each.result() for each in running]
        with Spool() as spool:
            for spec in below:
                self._sent(job, spec, log, self.again)
                for row in self.again[spec.name]:
                    spool.put(1, Row(*row))
            outcomes += [
                execute(job.programs[spec.stage], spec, log, "1", channels=spool.channels(spec, job.levels))
                for spec in job.tasks[len(below) :]
            ]
        future: Future[list[TaskOutcome]] = Future()
        future.set_result(outcomes)
        return future

    def _sent(self, job: Job, spec: TaskSpec, log: WindowLog, sent: dict[str, Rows]) -> TaskOutcome:
        for attempt in range(ATTEMPTS):
            rows: list[Row] = []
            try:
                channels = TaskChannels((), rows.append)
                outcome = execute(job.programs[spec.stage], spec, log, str(next(self._names)), attempt > 0, channels)
            except Killed:
                self.deaths += 1
                continue
            sent[spec.name] = sorted((*row[:4], bytes(row.encoded().blob)) for row in rows)
            return outcome
        raise RuntimeError(f"{spec.name} died {ATTEMPTS} times")


STOLEN: Path | None = None
"""A file: until it is there, lines are slow, so that the machine may be as slow as it likes."""


def slowly(line: ReaderRecord[str]) -> ReaderRecord[str]:
    if line.record.startswith("slow") and STOLEN is not None and not STOLEN.exists():
        time.sleep(0.25)
    return line


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    failpoints.hook = failpoints.nothing


@pytest.mark.parametrize("step", [None, "after grant", "after report"])
def test_what_is_sent_again_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str | None) -> None:
    stolen = tmp_path / "stolen"
    monkeypatch.setattr("tests.runtime.rebalancing.test_exchanges.STOLEN", stolen)
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_text("".join(f"slow {n} slow{n % 9}\n" for n in range(60)) + "".join(f"fast {n}\n" for n in range(3000)))
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=20_000))
        lines = dag.add_operator("lines", BlockReader[str](min_readers=2, max_readers=2))
        slow = dag.add_operator("slow", Map(slowly))
        split, tally = split_and_tally(dag, Tally())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, slow.input)
        dag.add_stream("slowly", slow.output, split.input)
        dag.add_stream("ones", split.output, tally.input)
        dag.add_stream("totals", tally.output, dag.add_operator("seen", seen).input)

    killed = threading.Event()

    def kill(at: str) -> None:
        if at == "stolen":
            stolen.touch()
        if at == step and not killed.is_set():
            killed.set()
            raise Killed

    failpoints.hook = kill
    runner = ForgetfulRunner()
    report = launch(populate_dag, runner=runner, durability="process", rebalance="auto").report
    assert report.rebalanced > 0, report.rebalancing
    assert runner.again == runner.first
    assert sum(map(len, runner.first.values())) > 0
    assert runner.deaths == (step is not None)
    assert as_counter(seen.records) == Counter((source / "a").read_text().split())
