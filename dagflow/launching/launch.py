"""Launching: run folder, lock, events, runner, window loop, and the report at the end."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Any

import attrs

from dagflow.launching.build import LoadedApplication, build
from dagflow.launching.record import launch_record
from dagflow.launching.run import Run
from dagflow.launching.timings import Timings
from dagflow.local.boot import ServerProcess
from dagflow.local.runner import LocalRunner
from dagflow.model.operator.base import InputOperator
from dagflow.model.operator.context import Clock, OperatorContext, SystemClock
from dagflow.plan.plan import Plan
from dagflow.runtime.events import EventStream, RunEnded, RunStarted, Subscriber, Warned
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.run_folder.events_file import EventsFile
from dagflow.runtime.run_folder.folders import Folders, refuse_local_paths, refuse_outputs_in_inputs
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.runner import Runner
from dagflow.runtime.windows.datasets import Datasets
from dagflow.runtime.windows.errors import Interrupted
from dagflow.runtime.windows.loop import WindowLoop, run_through
from dagflow.storage import FolderLock, local_path, probe


def launch(
    populate_dag: Any,
    settings: object = None,
    *,
    runner: str | Runner | None = None,
    once: bool = True,
    subscribers: Iterable[Subscriber] = (),
    clock: Clock | None = None,
    **options: Any,
) -> Run:
    r"""Run an application.

    Args:
        populate_dag: the function, an object that has it, or what the command line would name (`apps/line_filter`).
        settings: an object of the application's Settings class, or a mapping of keys as for `-D`
            (`{"input": "logs", "operator.reader.max_readers": 8}`).
        runner: `spark` (default) or `local`: in this process, where breakpoints and the test's own objects work; with `slots=8`
            in eight processes.
        once: True: runs here until all input is read, and returns the ended run. False: keeps waiting for new input in the
            background until `run.stop()`.
        subscribers: are called with every event. An exception in one ends the run; at the run's end it is only a warning.
        clock: the source of time for the window loop.
        options: settings of the run: `window`, `max_windows`, `master`, `durability`, `fresh`…

    Raises:
        DagError, ConfigError: before anything has run.
        RunError, InfrastructureError: what ended the run (with `once=False`: from `run.wait()`).

    >>> import pathlib, tempfile
    >>> from dagflow import launch
    >>> from operators import BlockReader, Console, FileSplitterInput
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    ...     lines = dag.add_operator("lines", BlockReader())
    ...     show = dag.add_operator("show", Console(prefix="> "))
    ...     dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    ...     dag.add_stream("text", lines.messages, show.input)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("one\ntwo\n")
    ...     report = launch(populate_dag, {"input": folder}, runner="local").report
    > one
    > two
    >>> report.status, report.windows
    ('done', 1)
    """
    name = runner if isinstance(runner, str) else None
    run_options = {**options, **({"continuous": True} if not once else {}), **({"runner": name} if name else {})}
    built = build(populate_dag, code=settings, environment=os.environ, run=run_options)
    run = start(built, runner if not isinstance(runner, str) else None, subscribers, clock)
    if once:
        run.run_here()
    else:
        run.run_in_background()
    return run


def start(
    built: LoadedApplication,
    runner: Runner | None = None,
    subscribers: Iterable[Subscriber] = (),
    clock: Clock | None = None,
) -> Run:
    """Return a run of a built application, not yet running. Raises DagError."""
    plan = built.plan()
    report = RunReport(application=built.dag.name, operators={})
    return Run(report, lambda run: _Launch(built, plan, runner, tuple(subscribers), clock or SystemClock(), run).go())


@attrs.define
class _Launch:
    built: LoadedApplication
    plan: Plan
    runner: Runner | None
    subscribers: tuple[Subscriber, ...]
    clock: Clock
    run: Run

    def go(self) -> None:
        """The whole launch."""
        began = self.clock.monotonic()
        report = self.run.report
        events = EventStream(self.clock.now)
        timings = Timings(self.clock.now())
        report.timings = timings.seconds
        events.subscribe(timings)
        events.subscribe(report.note)
        for subscriber in self.subscribers:
            events.subscribe(subscriber)
        with ExitStack() as stack:
            try:
                self._within(stack, events)
                report.status = "done"
            except BaseException as error:
                report.status = "interrupted" if isinstance(error, Interrupted | KeyboardInterrupt) else "failed"
                report.error = str(error) or type(error).__name__
                raise
            finally:
                report.seconds = self.clock.monotonic() - began
                end = RunEnded(status=report.status, windows=report.windows, seconds=round(report.seconds, 3), error=report.error)
                for text in events.end(end):
                    with suppress(Exception):
                        events.send(Warned(text=text))

    def _within(self, stack: ExitStack, events: EventStream) -> None:
        settings, report = self.built.run, self.run.report
        runner = self.runner or make_runner(self.built, self.plan)
        if not settings.shared_paths:
            refuse_local_paths(self.plan, runner.address)
        folders = Folders.of(self.plan, settings.run_folder)
        refuse_outputs_in_inputs(self.plan, folders)
        if not folders.has_undone():  # else what was decided is published first
            self._check_inputs()
        if folders.run_folder is None:
            folders = attrs.evolve(folders, run_folder=stack.enter_context(tempfile.TemporaryDirectory(prefix="dagflow-")))
        run_folder = folders.run_folder
        assert run_folder is not None
        report.run_folder, report.outputs = run_folder, list(folders.outputs)
        folders.make()
        lock = stack.enter_context(FolderLock(run_folder, who=f"dagflow launch of {self.built.dag.name}"))
        if lock.abandoned_by is not None:
            folders.sweep_temporaries()
        folders.claim(settings.fresh)
        unreadable = folders.start_over() if settings.fresh or folders.is_starting_over() else []
        launch_id = f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:6]}"
        log = folders.log(settings.durability == "machine")
        if local_path(run_folder) is None:
            probe(log.store)
        events.subscribe(stack.enter_context(EventsFile(run_folder, launch_id, events)))
        if unreadable:
            text = f"starting over: {', '.join(unreadable)} cannot be read: files that only they name stay"
            events.send(Warned(text=text))
        if isinstance(runner, LocalRunner):
            runner.stopping = lambda: self.run.stopping is not None
        stack.callback(runner.close)
        report.runner = runner.name
        runner.open(self.built.dag.name, run_folder)
        report.ui = runner.ui
        datasets = Datasets(self.plan, folders.app_id(self.built.dag.name), settings.durability == "machine", self.clock.now)

        def make(before: WindowLoop | None) -> WindowLoop:
            loop = WindowLoop(
                plan=self.plan,
                datasets=datasets,
                runner=runner,
                log=log,
                settings=settings,
                launch=launch_id,
                run_folder=run_folder,
                base=os.getcwd(),
                launched=launch_record(self.built),
                events=events,
                clock=self.clock,
                report=report,
                stopping=lambda: self.run.stopping,
                before=before,
            )
            self.run.publish_operators(loop.operator)
            return loop

        loop = make(None)
        events.send(
            RunStarted(
                application=self.built.dag.name,
                runner=runner.name,
                run_folder=run_folder,
                launch=launch_id,
                slots=runner.slots,
                first_window=loop.first_undecided(),
                ui=runner.ui,
            )
        )
        try:
            run_through(make, loop)
        finally:
            report.ledgers = datasets.heads()

    def _check_inputs(self) -> None:
        for name, node in self.plan.dag.nodes.items():
            if isinstance(node.operator, InputOperator):
                node.operator.check_inputs(OperatorContext(name=name, continuous=self.built.run.continuous, clock=self.clock))


def make_runner(built: LoadedApplication, plan: Plan) -> Runner:
    """Make the runner that the settings name. Spark is imported only here."""
    run = built.run
    if run.runner == "local":
        return local_runner(run.slots or 1)
    import importlib

    # by name: this package does not import the layers above it, they are plugged in
    spark: Any = importlib.import_module("dagflow.spark.runner")
    runner: Runner = spark.SparkRunner(
        master=run.master, remote=run.remote, conf=built.spark, slots_timeout=run.slots_timeout, jvm=driver_jvm(built, plan)
    )
    return runner


def driver_jvm(built: LoadedApplication, plan: Plan) -> Any:
    """Return the `DriverJvm` for a plan: what a JVM that is started for it has to do."""
    import importlib

    modules = {type(node.operator).__module__ for node in plan.dag.nodes.values()}
    return importlib.import_module("dagflow.spark.jvm.options").DriverJvm(
        runs_dataframes=has_transforms(plan),
        use_archive=built.run.class_archive != "off",
        # of the library only: an application's own modules may start threads or open connections when they are imported
        preload=tuple(sorted(name for name in modules if name.startswith("operators."))),
    )


def local_runner(slots: int, server: ServerProcess | None = None) -> Runner:
    """Make the local runner: in this process for one slot, else in processes, which are forks of `server`."""
    if slots == 1:
        if server is not None:
            server.close()
        return LocalRunner()
    from dagflow.local.processes import ProcessRunner

    return ProcessRunner(slots, server)
