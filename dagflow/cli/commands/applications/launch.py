"""`dagflow launch APP`: run an application; progress on standard error, the closing report on standard output."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time

import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.errors import OutputLost
from dagflow.cli.exit_codes import DONE, INTERRUPTED
from dagflow.cli.group import ErrorOutput
from dagflow.cli.prepare import planned, progress_and_logs, settings_ahead, spark_address, start_jvm_ahead
from dagflow.cli.progress import Progress
from dagflow.cli.relay import OutputRelay, relayed_output
from dagflow.cli.report_error import report_error, style_of
from dagflow.cli.stopping import Stopping
from dagflow.cli.streams import OutputClosed, discard_output
from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.launching.launch import local_runner, make_runner, packaged, start
from dagflow.launching.run import Run
from dagflow.launching.sinks import destinations
from dagflow.local.boot import ServerProcess, boot, boot_as_fork
from dagflow.local.cores import available_cores
from dagflow.model.operator.call_sites import shown
from dagflow.planning.plan import Plan
from dagflow.render.errors import each
from dagflow.render.report import report_json, report_text, timings_text
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.run_folder.folders import Folders
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.windows.errors import Interrupted
from dagflow.spark.connection.address import DEFAULT
from dagflow.spark.connection.ahead import JvmAhead
from dagflow.spark.connection.links import is_local


@app_command(
    "launch",
    help="Run an application. A launch with the same output resumes where the last one ended.\n\n"
    "Progress goes to standard error, the closing report to standard output.",
)
@click.pass_obj
def command(state: ErrorOutput, arguments: AppArguments) -> int:
    """Run the application and return the exit code."""
    gc.enable()  # `main` turned it off; a run makes garbage
    with contextlib.ExitStack() as stack:
        settings, conf = settings_ahead(arguments)
        relay = stack.enter_context(relayed_output(settings))
        server = ahead = None
        if is_for_processes(arguments):
            server = stack.enter_context(contextlib.closing(boot_as_fork() if state.is_process else boot()))
        if relay is not None:
            relay.start()
        if server is None and (ahead := start_jvm_ahead(arguments, settings, conf)) is not None:
            stack.callback(ahead.close)  # where an error ends the launch, or the plan needs another JVM
        return _launched(state, arguments, server, ahead, relay)


def is_for_processes(arguments: AppArguments) -> bool:
    """Return whether the command line or the environment ask for worker processes, as far as can be told without loading APP."""
    given = {name: arguments.options.get(name, os.environ.get(f"DAGFLOW_{name.upper()}")) for name in ("runner", "slots")}
    return given["runner"] == "local" and (given["slots"] or str(available_cores())) != "1"


def _launched(
    state: ErrorOutput,
    arguments: AppArguments,
    server: ServerProcess | None = None,
    ahead: JvmAhead | None = None,
    relay: OutputRelay | None = None,
) -> int:
    built, plan = planned(arguments)
    progress = progress_and_logs(built.run, relay)
    state.json_progress = state.json_progress or built.run.log_format == "json"
    local = built.run.runner == "local"
    slots = built.run.slots or available_cores()
    stopping = Stopping(interrupts=local, quiet=state.json_progress)
    package = None if local else packaged(built, plan)
    runner = local_runner(slots, server) if local else make_runner(built, plan, ahead, package)
    loaded = time.monotonic() - state.began
    run = stopping.run = start(built, runner, watchers=(progress,))
    with stopping:
        first_line = what_runs_where(built, plan, slots)
        if package is not None:
            from dagflow.cli.commands.applications.package import summary  # other launches need not load it

            first_line += f"; package {summary(package)}"
        error = _run(run, progress, first_line, here=local)
    phases = {"application": round(loaded, 3), **run.report.timings}
    run.report.timings = {**phases, "end": round(max(0.0, time.monotonic() - state.began - sum(phases.values())), 3)}
    if isinstance(error, (OutputClosed, OutputLost)):  # an operator prints records
        raise error
    if error is not None and not arguments.json:
        run.view.show_uncommitted()
    _print_report(run.report, arguments.json, error, built.run.timings)
    if error is None:
        _prepare_next(built, plan)
        return DONE
    if stopping.by is not None or isinstance(error, (Interrupted, KeyboardInterrupt)):
        if not state.json_progress:
            print(interrupted(run.report, stopping.by or "Ctrl-C"), file=sys.stderr)
        return INTERRUPTED
    add_remedies(error)
    events = None if relay is None else relay.events
    return report_error(error, ErrorOutput(debug=state.debug, json_progress=state.json_progress), events)


def add_remedies(error: BaseException) -> None:
    """Add the remedy, as the page of the run has it, to exceptions of operators at a record. Other messages say it themselves."""
    from dagflow.runtime.stage.errors import OperatorFailed

    for single in each(error) if isinstance(error, DagflowError) else ():
        if isinstance(single, OperatorFailed) and single.record is not None and not single.help:
            single.add_note(f"  help: {single.remedy_at(single.operator)}")


def _run(run: Run, progress: Progress, first_line: str, here: bool) -> BaseException | None:
    """Run to the end. Return the error that ended the run, or None.

    `here`: in this thread, so that a breakpoint works. On Spark another thread runs it, and this one stays free for signals:
    in the main thread, pyspark would take SIGINT for itself.
    """
    try:
        with progress:
            progress.say(first_line)
            if here:
                run.run_here()
            else:
                run.run_in_background()
                run.wait()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # reported at the end, after the report
        return error
    except SystemExit as end:
        return RuntimeError(f"the application called sys.exit({end.code!r})")
    return None


def _prepare_next(built: LoadedApplication, plan: Plan) -> None:
    """Let the class archive be made in the background, when this launch would have started faster with one."""
    if built.run.class_archive != "auto" or has_transforms(plan) or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    address = spark_address(built)
    if address is not None and address.kind == "master" and is_local(address.value):
        from dagflow.spark.jvm.making import make_later  # no launch waits for this import at its start

        make_later(os.environ)


def what_runs_where(built: LoadedApplication, plan: Plan, slots: int | None = None) -> str:
    """Return the first line of a launch: the application, its runner, its output and its run folder."""
    settings = built.run
    slots = slots or built.run.slots or 1
    runner = "in this process" if slots == 1 else f"in up to {slots} processes"
    if (address := spark_address(built)) is not None:
        runner = "on Spark" if address.origin == DEFAULT else f"on Spark at {address.value}"
        if address.is_given:
            runner += f" ({address.origin})"
    folders = Folders.of(plan, settings.run_folder)
    output = ", ".join([*map(shown, folders.outputs), *destinations(plan).values()])
    parts = [f"{built.dag.name} {runner}", f"output {output}" if output else "no output folder"]
    parts.append(f"run folder {shown(folders.run_folder)}" if folders.run_folder else "no run folder: this run cannot be resumed")
    if settings.fresh:
        parts.append("starting over")
    return "; ".join(parts)


def interrupted(report: RunReport, by: str) -> str:
    """Return the line that says how to resume a run that was stopped."""
    if not report.outputs:
        return f"stopped by {by}"
    return f"stopped by {by}: committed windows are kept; launch again with the same settings to resume"


def _print_report(report: RunReport, as_json: bool, error: BaseException | None, with_timings: bool) -> None:
    """Print the report. Where it cannot be printed, the exit code still says how the run ended."""
    if as_json:
        text = json.dumps(report_json(report, error), indent=2, ensure_ascii=False)
    else:
        text = report_text(report, style_of(sys.stdout))
        if with_timings:
            text += f"\n\n{timings_text(report.timings)}"
    try:
        print(text, flush=True)
    except OutputClosed:
        discard_output()
    except OutputLost as lost:
        discard_output()
        report_error(lost, ErrorOutput())
