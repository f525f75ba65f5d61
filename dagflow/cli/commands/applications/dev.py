"""`dagflow dev APP`: runs an application, and again from the start whenever its code changes; Spark stays warm in between."""

from __future__ import annotations

import functools
import gc
import sys
import time
from typing import Any, cast

import attrs
import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.commands.applications.launch import what_runs_where
from dagflow.cli.exit_codes import INTERRUPTED
from dagflow.cli.group import ErrorOutput
from dagflow.cli.prepare import planned, progress_and_logs, settings_ahead
from dagflow.cli.relay import OutputRelay, relayed_output
from dagflow.cli.report_error import report_error
from dagflow.cli.stopping import Stopping
from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.launching.development import UserCode, refuse_committed
from dagflow.launching.errors import ApplicationMissing, DevelopmentWouldReplace
from dagflow.launching.launch import driver_jvm, executor_needs, start
from dagflow.model.operator.call_sites import shown
from dagflow.planning.plan import Plan
from dagflow.runtime.runner import Runner
from dagflow.spark.errors import SparkLost

LOOK_EVERY = 0.2  # seconds between looks at the files of the code


@app_command(
    "dev",
    help="Run an application while you write it. It waits for new input, and after each change of the code or of a --conf file "
    "it starts over: what it has written is replaced. So give it an output of its own. Spark is started once.",
)
@click.pass_obj
def command(state: ErrorOutput, arguments: AppArguments) -> int:
    """Run the application until Ctrl-C, and return the exit code."""
    gc.enable()  # `main` turned it off
    sys.dont_write_bytecode = True  # a compiled file hides a change within its second
    session = _Session()
    try:
        with relayed_output(settings_ahead(arguments)[0]) as relay:
            if relay is not None:
                relay.start()
            return _Development(state, arguments, session, relay).go()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        session.close()


class _Session:
    """The Spark that all runs share; started for the first one that needs it."""

    def __init__(self) -> None:
        self._link: Any = None
        self._is_ours = False

    def runner(self, built: LoadedApplication, plan: Plan) -> Runner | None:
        """Return a runner on the session, None for the runner that the settings name."""
        if built.run.runner == "local":
            return None
        from dagflow.spark.connection.session import connect
        from dagflow.spark.runner import SparkRunner

        if self._link is None:
            run, jvm = built.run, driver_jvm(built, plan)
            self._link, self._is_ours = connect(built.dag.name, master=run.master, remote=run.remote, conf=built.spark, jvm=jvm)
        runner: Any = SparkRunner(
            session=self._link, slots_timeout=built.run.slots_timeout, needs=functools.partial(executor_needs, built, plan)
        )
        return cast("Runner", runner)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        if self._link is not None and self._is_ours:
            from dagflow.spark.connection.session import forget

            forget(self._link)
        self._link = None


@attrs.define
class _Development:
    state: ErrorOutput
    arguments: AppArguments
    session: _Session
    relay: OutputRelay | None = None

    def go(self) -> int:
        """Run, wait for a change, run again. Return when a signal stops it, or when there is nothing to wait for."""
        code = UserCode(self.arguments.application, self.arguments.conf_files)
        fresh: dict[str, Any] = {}
        has_run = False
        while True:
            code.remember()
            try:
                built, plan = planned(
                    attrs.evolve(self.arguments, options={"continuous": True, **self.arguments.options, **fresh})
                )
                refuse_committed(built, plan)
            except DagflowError as error:
                exit_code = report_error(error, self.state)
                is_typo = isinstance(error, ApplicationMissing) and not has_run
                if is_typo or isinstance(error, DevelopmentWouldReplace):
                    return exit_code
            except SystemExit as end:
                print(f"error: the application called sys.exit({end.code!r})", file=sys.stderr)
            else:
                has_run = True
                if self._run(built, plan, code):
                    return INTERRUPTED
                fresh = {"fresh": True}
            self._wait(code)
            code.forget()

    def _run(self, built: LoadedApplication, plan: Plan, code: UserCode) -> bool:
        """Run until the code changes or the run ends. Return whether a signal ended it."""
        progress = progress_and_logs(built.run, self.relay)
        stopping = Stopping(interrupts=False, quiet=self.state.json_progress)
        try:
            run = stopping.run = start(built, self.session.runner(built, plan), watchers=(progress,))
            with stopping, progress:
                progress.say(what_runs_where(built, plan))
                run.run_in_background()
                while not run.ended:
                    if run.stopping is None and code.changed():
                        run.stop()
                    time.sleep(LOOK_EVERY)
            run.wait()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # reported, and the next change may fix it
            if stopping.by is None and not isinstance(error, KeyboardInterrupt):
                report_error(error, self.state)
            if isinstance(error, SparkLost):
                self.session.close()
        return stopping.by is not None

    def _wait(self, code: UserCode) -> None:
        if (changed := code.changed()) is None:
            print("waiting for a change of the code; Ctrl-C ends", file=sys.stderr)
        while changed is None:
            time.sleep(LOOK_EVERY)
            changed = code.changed()
        print(f"{shown(changed)} has changed: starting over", file=sys.stderr)
