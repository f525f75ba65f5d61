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
from dagflow.cli.exit_codes import DONE, INTERRUPTED
from dagflow.cli.group import ErrorOutput
from dagflow.cli.prepare import planned, spark_address
from dagflow.cli.progress import Progress, make_progress
from dagflow.cli.report_error import report_error, style_of
from dagflow.cli.stopping import Stopping
from dagflow.launching.build import LoadedApplication
from dagflow.launching.launch import local_runner, start
from dagflow.launching.run import Run
from dagflow.local.boot import ServerProcess, boot
from dagflow.local.cores import available_cores
from dagflow.model.operator.call_sites import shown
from dagflow.plan.plan import Plan
from dagflow.render.report import report_json, report_text, timings_text
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.run_folder.folders import Folders
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.windows.errors import Interrupted
from dagflow.spark.connection.address import DEFAULT
from dagflow.spark.connection.links import is_local
from dagflow.spark.jvm.making import make_later


@app_command(
    "launch",
    help="Run an application. A launch with the same output resumes where the last one ended.\n\n"
    "Progress goes to standard error, the closing report to standard output.",
)
@click.pass_obj
def command(state: ErrorOutput, arguments: AppArguments) -> int:
    """Run the application and return the exit code."""
    gc.enable()  # `main` turned it off; a run makes garbage
    if not is_for_processes(arguments):
        return _launched(state, arguments, None)
    with contextlib.closing(boot()) as server:
        return _launched(state, arguments, server)


def is_for_processes(arguments: AppArguments) -> bool:
    """Return whether the command line or the environment ask for worker processes, as far as can be told without loading APP."""
    given = {name: arguments.options.get(name, os.environ.get(f"DAGFLOW_{name.upper()}")) for name in ("runner", "slots")}
    return given["runner"] == "local" and (given["slots"] or str(available_cores())) != "1"


def _launched(state: ErrorOutput, arguments: AppArguments, server: ServerProcess | None) -> int:
    built, plan = planned(arguments)
    progress = make_progress(built.run.progress, sys.stderr)
    local = built.run.runner == "local"
    slots = built.run.slots or available_cores()
    stopping = Stopping(interrupts=local, quiet=state.json_progress)
    runner = local_runner(slots, server) if local else None
    loaded = time.monotonic() - state.began
    run = stopping.run = start(built, runner, subscribers=(stopping, progress))
    with stopping:
        error = _run(run, progress, what_runs_where(built, plan, slots), here=local)
    phases = {"application": round(loaded, 3), **run.report.timings}
    run.report.timings = {**phases, "end": round(max(0.0, time.monotonic() - state.began - sum(phases.values())), 3)}
    _print_report(run.report, arguments.json, error, built.run.timings)
    if error is None:
        _prepare_next(built, plan)
        return DONE
    if stopping.by is not None or isinstance(error, (Interrupted, KeyboardInterrupt)):
        if not state.json_progress:
            print(interrupted(run.report, stopping.by or "Ctrl-C"), file=sys.stderr)
        return INTERRUPTED
    return report_error(error, ErrorOutput(debug=state.debug, json_progress=state.json_progress))


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
    output = ", ".join(shown(folder) for folder in folders.outputs)
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
    with contextlib.suppress(BrokenPipeError):  # a closed pipe does not change how the run ended
        if as_json:
            print(json.dumps(report_json(report, error), indent=2, ensure_ascii=False), flush=True)
        elif report.operators or report.status == "done":
            print(report_text(report, style_of(sys.stdout)), flush=True)
            if with_timings:
                print(f"\n{timings_text(report.timings)}", flush=True)
