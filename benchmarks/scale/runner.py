"""A runner whose tasks answer at once: each reports that it has read all its items, and has staged a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext

import attrs

from dagflow.model.types.plain_data import encode
from dagflow.runtime.rebalancing.ownership_log import REPORT as LAST
from dagflow.runtime.rebalancing.ownership_log import Entry, TaskLog
from dagflow.runtime.run_folder.layout import STAGED, task_name
from dagflow.runtime.run_folder.reports import OperatorFigures, StagedFile, TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.storage import OWN_FOLDER, hash_bytes, join

BODY = b"a line\n"
DIGEST = hash_bytes(BODY)


@attrs.define
class AnsweringRunner:
    """Answers instead of Spark.

    Attributes:
        slots: as many as it says that it has.
        output: the folder of the sink `out`.
        stage: puts an object where a task would have staged its file.
        apart: the context in which tasks work, whose requests are not the driver's.
        seconds: how long the tasks' answers took to make, which is not the driver's time either.
        inspect: called with each job.
    """

    slots: int
    output: str
    stage: Callable[[str, bytes], None]
    apart: Callable[[], AbstractContextManager[None]] = nullcontext
    rebalancing_obstacle: str | None = None
    inspect: Callable[[Job], None] = lambda job: None
    seconds: float = attrs.field(init=False, default=0.0)
    name: str = attrs.field(init=False, default="answering")
    in_process: bool = attrs.field(init=False, default=True)
    grows: bool = attrs.field(init=False, default=False)
    warnings: tuple[str, ...] = attrs.field(init=False, default=())
    ui: str | None = attrs.field(init=False, default=None)
    address: str | None = attrs.field(init=False, default=None)

    def open(self, application: str, run_folder: str) -> None:
        """Nothing to prepare."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Return the outcomes of all tasks."""
        began = time.process_time()
        future: Future[list[TaskOutcome]] = Future()
        with self.apart():
            self.inspect(job)
            log = WindowLog.open(job.run_folder, False)
            future.set_result([self._answer(spec, log) for spec in job.tasks])
        self.seconds += time.process_time() - began
        return future

    def _answer(self, spec: TaskSpec, log: WindowLog) -> TaskOutcome:
        items = len(spec.work.items)
        place = STAGED.name(window=spec.window, attempt=f"{spec.epoch}.{spec.name}-1.out")
        attempt = join(self.output, OWN_FOLDER, place)
        self.stage(attempt, BODY)
        name = f"part-{spec.window:06d}-{spec.partition:05d}.txt"
        report = TaskReport(
            spec.name,
            items,
            operators={
                "lines": OperatorFigures(items, 1, counters={"bytes": items << 20, "records": 1}),
                "out": OperatorFigures(1),
            },
            files=[StagedFile("out", self.output, name, attempt, len(BODY), 1, DIGEST)],
            parts=[[number, None, None] for number in spec.work.numbers] if spec.work.moves else [],
        )
        if spec.work.form == "steal":
            logged = TaskLog(log.unsynced, task_name(spec.claims_area, spec.partition))
            logged.append(Entry(kind=LAST, attempt="1", report=encode(report, spec.name)))
        else:
            log.report(spec.report_name, report)
        return TaskOutcome(
            task=spec.name,
            attempt="1",
            started=float(spec.partition),
            ended=spec.partition + 1.0,
            records=1,
            records_in=items,
            parts=len(report.parts),
            counters={"bytes": items << 20},
            stage=spec.stage,
            partition=spec.partition,
            operators={"lines": {"records_in": items, "records_out": 1, "errors": 0, "seconds": 0.1}},
        )

    def cancel(self) -> None:
        """Nothing is running."""

    def close(self) -> None:
        """Nothing is open."""
