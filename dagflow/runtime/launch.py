"""Launching: run folder, lock, events, runner, window loop, and the report at the end."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import Any

import attrs

from dagflow.errors.run import Interrupted
from dagflow.model.context import Clock, OperatorContext, SystemClock
from dagflow.model.operator import InputOperator
from dagflow.plan.plan import Plan
from dagflow.runtime.build import Built, build
from dagflow.runtime.events import Event, EventStream, RunEnded, RunStarted, Subscriber, Warned, line_of
from dagflow.runtime.folders import Folders, refuse_local_paths, refuse_outputs_in_inputs
from dagflow.runtime.local import LocalRunner
from dagflow.runtime.loop import WindowLoop
from dagflow.runtime.report import RunReport
from dagflow.runtime.run import Run
from dagflow.runtime.runner import Runner
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
    r"""Runs an application.

    Args:
        populate_dag: the function, an object that has it, or what the command line would name (`apps/line_filter`).
        settings: an object of the application's Settings class, or a mapping of keys as for `-D`
            (`{"input": "logs", "operator.reader.max_readers": 8}`).
        runner: `spark` (default) or `local`.
        once: True: runs here until all input is read, and returns the ended run. False: goes on waiting for new input in the
            background until `run.stop()`.
        subscribers: are called with every event.
        clock: where the window loop takes time from.
        options: settings of the run: `window`, `max_windows`, `master`, `durability`, `fresh`…

    Raises:
        DagError, ConfigError: before anything has run.
        RunError, SurroundingsError: what ended the run (with `once=False`: from `run.wait()`).

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
    given = {**options, **({"continuous": True} if not once else {}), **({"runner": name} if name else {})}
    built = build(populate_dag, code=settings, environment=os.environ, run=given)
    run = start(built, runner if not isinstance(runner, str) else None, subscribers, clock)
    if once:
        run.run_here()
    else:
        run.run_in_background()
    return run


def start(built: Built, runner: Runner | None = None, subscribers: Iterable[Subscriber] = (), clock: Clock | None = None) -> Run:
    """A run of a built application, not yet running. Raises DagError."""
    plan = built.plan()
    report = RunReport(application=built.dag.name, operators={})
    return Run(report, lambda run: _Launch(built, plan, runner, tuple(subscribers), clock or SystemClock(), run).go())


@attrs.define
class _Launch:
    built: Built
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
        events.subscribe(lambda event: report.warnings.append(event.text) if isinstance(event, Warned) else None)
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
                events.send(end)

    def _within(self, stack: ExitStack, events: EventStream) -> None:
        settings, report = self.built.run, self.run.report
        if settings.runner == "spark" and not settings.shared_paths:
            refuse_local_paths(self.plan, settings.master or settings.remote or self.built.spark.get("spark.master"))
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
        stack.enter_context(FolderLock(run_folder, who=f"dagflow launch of {self.built.dag.name}"))
        folders.claim(settings.fresh)
        unreadable = folders.start_over() if settings.fresh or folders.is_starting_over() else []
        launch_id = f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:6]}"
        log = folders.log(settings.durability == "machine")
        if local_path(run_folder) is None:
            probe(log.store)
        events.subscribe(stack.enter_context(_EventsFile(run_folder, launch_id, events)))
        if unreadable:
            windows = ", ".join(map(str, unreadable))
            events.send(Warned(text=f"starting over: the decisions of windows {windows} cannot be read, their files stay"))
        runner = self.runner or make_runner(self.built)
        if isinstance(runner, LocalRunner):
            runner.stopping = lambda: self.run.stopping is not None
        stack.callback(runner.close)
        report.runner = runner.name
        runner.open(self.built.dag.name, run_folder)
        report.ui = runner.ui
        loop = WindowLoop(
            plan=self.plan,
            runner=runner,
            log=log,
            settings=settings,
            launch=launch_id,
            run_folder=run_folder,
            base=os.getcwd(),
            events=events,
            clock=self.clock,
            report=report,
            stopping=lambda: self.run.stopping,
        )
        self.run.publish_operators(loop.operator)
        events.send(
            RunStarted(
                application=self.built.dag.name,
                runner=runner.name,
                run_folder=run_folder,
                launch=launch_id,
                slots=runner.slots,
                first_window=loop.first_window(),
                ui=runner.ui,
            )
        )
        loop.run()

    def _check_inputs(self) -> None:
        for name, node in self.plan.dag.nodes.items():
            if isinstance(node.operator, InputOperator):
                node.operator.check_inputs(OperatorContext(name=name, continuous=self.built.run.continuous, clock=self.clock))


class _EventsFile:
    """Writes every event as a line of JSON to `events/LAUNCH.jsonl` of the run folder, where that is a local folder.

    As long as it can: a full disk ends the file, not the run. The other readers of the stream are told.
    """

    def __init__(self, run_folder: str, launch_id: str, events: EventStream) -> None:
        self._events = events
        folder = local_path(run_folder)
        self._path = None if folder is None else os.path.join(folder, "events", f"{launch_id}.jsonl")
        self._file: Any = None

    def __enter__(self) -> Subscriber:
        if self._path is None:
            return lambda event: None
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = open(self._path, "ab", buffering=0)  # closed in __exit__
        except OSError as error:
            self._give_up(error)
        return self._write

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _write(self, event: Event) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line_of(event).encode())
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None
        self._events.send(Warned(text=f"{self._path}: no further events are written: {error.strerror or error}"))


def make_runner(built: Built) -> Runner:
    """The runner that the settings name. Only here does Spark get loaded."""
    if built.run.runner == "local":
        return LocalRunner()
    import importlib

    # by name: the rooms above this one are not imported by it, they are plugged in
    make: Callable[..., Runner] = importlib.import_module("dagflow.spark.runner").SparkRunner
    return make(master=built.run.master, remote=built.run.remote, conf=built.spark)
