"""Launching: run folder, lock, events, runner, window loop, and the report at the end."""

from __future__ import annotations

import functools
import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.config.errors import ConflictingSettings
from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication, build
from dagflow.launching.event_log import log_event
from dagflow.launching.record import launch_record
from dagflow.launching.run import Run
from dagflow.launching.sinks import check_late_columns, check_sinks, destinations, sweep_replaced
from dagflow.local.boot import ServerProcess
from dagflow.local.runner import LocalRunner
from dagflow.logs import within
from dagflow.model.operator.base import InputOperator
from dagflow.model.operator.context import Clock, OperatorContext, SystemClock
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import unbounded
from dagflow.runtime.events import EventStream, LeaseAwaited, RunEnded, RunStarted, Subscriber, Warned
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.run_folder.events_file import event_writer
from dagflow.runtime.run_folder.folders import Folders, on_other_machines, refuse_local_paths, refuse_outputs_in_inputs
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_report import RunReport, SinkFigures
from dagflow.runtime.run_view import RunView
from dagflow.runtime.runner import Runner
from dagflow.runtime.stage.node import operator_at_work
from dagflow.runtime.windows.datasets import Datasets
from dagflow.runtime.windows.errors import Interrupted
from dagflow.runtime.windows.loop import WindowLoop, run_through
from dagflow.runtime.windows.retry import POLL
from dagflow.storage import FolderLock, Holder, local_path, open_store, probe
from dagflow.telemetry.wanted import is_wanted

if TYPE_CHECKING:
    from dagflow.packaging.package import Package

_PYTHONS = ("spark.pyspark.python", "spark.sql.execution.pyspark.python")


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
    watchers: Iterable[Subscriber] = (),
) -> Run:
    """Return a run of a built application, not yet running. Raises DagError.

    `watchers`: subscribers of our own. One that raises gets no more events, and the run continues with a warning.
    """
    plan = built.plan()
    report = RunReport(application=built.dag.name, operators={name: OperatorFigures() for name in plan.dag.nodes})
    return Run(
        RunView(report),
        lambda run: _Launch(built, plan, runner, tuple(subscribers), tuple(watchers), clock or SystemClock(), run).go(),
    )


@attrs.define
class _Launch:
    built: LoadedApplication
    plan: Plan
    runner: Runner | None
    subscribers: tuple[Subscriber, ...]
    watchers: tuple[Subscriber, ...]
    clock: Clock
    run: Run

    def go(self) -> None:
        """The whole launch."""
        began = self.clock.monotonic()
        view, report = self.run.view, self.run.report
        view.began = self.clock.now()
        events = EventStream(self.clock.now)
        events.subscribe(view)
        for subscriber in self.subscribers:
            events.subscribe(subscriber)
        for watcher in (log_event, *self.watchers):
            events.subscribe(watcher, on_error="warn")
        status, message = "done", None
        cause: DagflowError | None = None
        with ExitStack() as stack:
            try:
                self._within(stack, events)
            except BaseException as error:
                is_stopped = isinstance(error, Interrupted | KeyboardInterrupt) or self.run.stopping is not None
                status, message = "interrupted" if is_stopped else "failed", str(error) or type(error).__name__
                cause = error if isinstance(error, DagflowError) else None
                raise
            finally:
                end = RunEnded(
                    status=status,
                    windows=report.windows,
                    seconds=round(self.clock.monotonic() - began, 3),
                    error=message,
                    error_code=cause.code if cause is not None else None,
                    error_operator=cause.where_in_run.get("operator") if cause is not None else None,
                    error_window=cause.where_in_run.get("window") if cause is not None else None,
                    rebalancing=report.rebalancing,
                )
                for text in events.end(end):
                    with suppress(Exception):
                        events.send(Warned(text=text))

    def _within(self, stack: ExitStack, events: EventStream) -> None:
        settings, report = self.built.run, self.run.report
        telemetry = self._telemetry(stack, events)
        runner = self.runner or make_runner(self.built, self.plan)
        if not settings.shared_paths:
            refuse_local_paths(self.plan, runner.address)
        folders = Folders.of(self.plan, settings.run_folder)
        refuse_outputs_in_inputs(self.plan, folders)
        has_undone = folders.has_undone()
        if not has_undone:  # else what was decided is published first
            self._check_inputs()
        sinks = destinations(self.plan)
        forgetful = [] if folders.run_folder is not None else list(sinks)
        if folders.run_folder is None:
            folders = attrs.evolve(folders, run_folder=stack.enter_context(tempfile.TemporaryDirectory(prefix="dagflow-")))
        run_folder = folders.run_folder
        assert run_folder is not None
        report.run_folder, report.outputs = run_folder, list(folders.outputs)
        report.sinks = {name: SinkFigures(destination) for name, destination in sinks.items()}
        folders.make()
        lock = stack.enter_context(self._lock(run_folder, events))
        try:
            self._locked(stack, events, folders, runner, lock, forgetful, telemetry, has_undone)
        except Interrupted:
            raise
        except Exception:
            with suppress(DagflowError, OSError):
                lock.confirm()
            lock.raise_if_lost()  # the cause of all that another launch was in the way of
            raise

    def _lock(self, run_folder: str, events: EventStream) -> FolderLock:
        def waiting(holder: Holder) -> None:
            events.send(
                LeaseAwaited(
                    run_folder=run_folder,
                    pid=holder.pid,
                    host=holder.host,
                    since=holder.since,
                    who=holder.who,
                    seconds=holder.lease,
                )
            )

        return FolderLock(
            run_folder,
            who=f"dagflow launch of {self.built.dag.name}",
            lease=self.built.run.lock_lease,
            durable=self.built.run.durability == "machine",
            now=self.clock.now,
            clock=self.clock.monotonic,
            sleep=self._sleep,
            waiting=waiting,
        )

    def _sleep(self, seconds: float) -> None:
        """Wait. Raises Interrupted as soon as the run is to be stopped."""
        until = self.clock.monotonic() + seconds
        while (left := until - self.clock.monotonic()) > 1e-6:
            if self.run.stopping is not None:
                raise Interrupted(self.run.stopping)
            self.clock.sleep(min(left, POLL))

    def _locked(
        self,
        stack: ExitStack,
        events: EventStream,
        folders: Folders,
        runner: Runner,
        lock: FolderLock,
        forgetful: list[str],
        telemetry: list[str],
        has_undone: bool,
    ) -> None:
        """The part of the launch that holds the run folder."""
        settings, report, run_folder = self.built.run, self.run.report, lock.folder
        is_after_crash = lock.abandoned_by is not None or lock.is_before_boot
        if is_after_crash:
            folders.sweep_temporaries()
        application = folders.known_app_id() if report.sinks else None
        warnings = check_sinks(self.plan, application, fresh=settings.fresh, has_undone=has_undone)
        folders.claim(settings.fresh)
        is_starting_over = settings.fresh or folders.is_starting_over()
        unreadable = folders.start_over(lock.check, lambda: sweep_replaced(self.plan, application)) if is_starting_over else []
        now = time.time()  # to the microsecond: names of launches are in the order in which they began
        launch_id = f"{time.strftime('%Y%m%dT%H%M%S', time.localtime(now))}-{int(now % 1 * 1e6):05x}{uuid.uuid4().hex[:6]}"
        stack.enter_context(within(run=launch_id, at_work=operator_at_work))
        log = folders.log(settings.durability == "machine")
        if is_after_crash:
            log.repair_marks()
        tried: set[str] = set()
        if local_path(run_folder) is None:
            probe(log.store)
            tried.add(log.store.url)
        events.subscribe(stack.enter_context(event_writer(run_folder, launch_id, events)), on_error="warn")
        if lock.abandoned_by is not None and not lock.abandoned_by.is_dead():
            events.send(Warned(text=_taken_over(lock.abandoned_by)))
        if unreadable:
            text = f"starting over: {', '.join(unreadable)} cannot be read: files that only they name stay"
            events.send(Warned(text=text))
        for text in warnings:
            events.send(Warned(text=text))
        if settings.every is not None and not settings.continuous:
            events.send(Warned(text="every is for --continuous: without it, a launch emits once, when its input is exhausted"))
        if settings.continuous and (growing := unbounded(self.plan.written)):
            text = ", ".join(f"{name} ({kept})" for name, kept in growing.items())
            events.send(Warned(text=f"nothing bounds what these operators keep: {text}. It grows as long as input comes"))
        if forgetful:
            text = f"{', '.join(forgetful)}: without a run folder, the next launch publishes everything again: set run_folder"
            events.send(Warned(text=text))
        if isinstance(runner, LocalRunner):
            runner.stopping = lambda: self.run.stopping is not None
        stack.callback(runner.close)
        report.runner = runner.name
        runner.open(self.built.dag.name, run_folder)
        for text in runner.warnings:
            events.send(Warned(text=text))
        if log.live is None and (runner.address is None or not on_other_machines(runner.address)):
            folder = tempfile.TemporaryDirectory(prefix="dagflow-live-", ignore_cleanup_errors=True)
            log.live = open_store(stack.enter_context(folder), durable=False)
        app_id, is_durable = folders.app_id(self.built.dag.name), settings.durability == "machine"
        datasets = Datasets(self.plan, app_id, is_durable, self.clock.now, tried)

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
                launched=launch_record(self.built, self.plan),
                lock=lock,
                events=events,
                clock=self.clock,
                report=report,
                stopping=lambda: self.run.stopping,
                before=before,
                check_columns=functools.partial(check_late_columns, self.plan, datasets.app_id),
            )
            self.run.publish_operators(loop.operator)
            if isinstance(runner, LocalRunner):
                runner.looking = loop.look_beside
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
                telemetry=telemetry,
                sinks=destinations(self.plan),
            )
        )
        try:
            run_through(make, loop)
            if report.windows:
                lock.confirm()
        finally:
            report.ledgers = datasets.heads()

    def _telemetry(self, stack: ExitStack, events: EventStream) -> list[str]:
        """Open the telemetry that is asked for. Return where it goes, a line for each part."""
        if not is_wanted(self.built.run, os.environ):
            return []
        from dagflow.telemetry.telemetry import Telemetry

        telemetry = Telemetry(self.built.run, self.built.dag.name, self.plan, events, os.environ, self.clock.now())
        return stack.enter_context(telemetry).lines

    def _check_inputs(self) -> None:
        for name, node in self.plan.dag.nodes.items():
            if isinstance(node.operator, InputOperator):
                node.operator.check_inputs(OperatorContext(name=name, continuous=self.built.run.continuous, clock=self.clock))


def _taken_over(holder: Holder) -> str:
    who = f" ({holder.who})" if holder.who else ""
    return (
        f"took over from process {holder.pid} on {holder.host}{who}, which did not renew its lease of {holder.lease:g} s. "
        "If that launch is still there, it ends with DF439 at its next step"
    )


def make_runner(built: LoadedApplication, plan: Plan, ahead: Any = None, package: Package | None = None) -> Runner:
    """Make the runner that the settings name. Spark is imported only here.

    `ahead`: a JVM that is starting already. `package`: what `packaged` returns, where that has been called.
    """
    run = built.run
    if run.runner == "local":
        return local_runner(run.slots or 1)
    import importlib

    # by name: this package does not import the layers above it, they are plugged in
    spark: Any = importlib.import_module("dagflow.spark.runner")
    package = package or packaged(built, plan)
    runner: Runner = spark.SparkRunner(
        master=run.master,
        remote=run.remote,
        conf=built.spark,
        slots_timeout=run.slots_timeout,
        jvm=driver_jvm(built, plan),
        ahead=ahead,
        needs=functools.partial(executor_needs, built, plan),
        archive=None if package is None else spark.PythonArchive(str(package.archive), package.folder, package.launcher),
    )
    return runner


def executor_needs(built: LoadedApplication, plan: Plan) -> Any:
    """Return the `Needs` of an application: what its tasks need of executors."""
    import importlib

    return importlib.import_module("dagflow.spark.executors.probe").needs_of(plan, built.run.run_folder, built.run.lock_lease)


def packaged(built: LoadedApplication, plan: Plan) -> Package | None:
    """Return the package for a launch; None if none is wanted, or if tasks run in this machine's own Python.

    Raises what `make_package` does.
    """
    run = built.run
    if not run.package or run.runner != "spark":
        return None
    import importlib

    session: Any = importlib.import_module("dagflow.spark.connection.session")
    links: Any = importlib.import_module("dagflow.spark.connection.links")
    if links.is_local(session.address_of(run.master, run.remote, built.spark).value):
        return None
    return make_package(built, plan)


def make_package(built: LoadedApplication, plan: Plan) -> Package:
    """Return the package of an application.

    Raises ConflictingSettings, LockUnusable, LibraryUnknown, InstallerMissing, PackageNotMade.
    """
    from dagflow.packaging.package import package_of  # only here: other launches need not load it

    if given := [f"{key} = {built.spark[key]}" for key in _PYTHONS if key in built.spark]:
        raise ConflictingSettings(reason="a package brings its own Python", given=("package = true", *given))
    folders = Folders.of(plan, built.run.run_folder)
    return package_of(
        built.application.name,
        built.application.populate_dag,
        [node.operator for node in plan.dag.nodes.values()],
        lock=built.run.package_lock,
        extra=built.run.package_with,
        shared=built.run.package_folder,
        texts=[*folders.outputs, *filter(None, [folders.run_folder])],
    )


def driver_jvm(built: LoadedApplication, plan: Plan) -> Any:
    """Return the `DriverJvm` for a plan: what a JVM that is started for it has to do."""
    import importlib

    modules = {type(node.operator).__module__ for node in plan.dag.nodes.values()}
    return importlib.import_module("dagflow.spark.jvm.options").DriverJvm(
        runs_dataframes=has_transforms(plan),
        runs_queries=bool(plan.exchanges),
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
