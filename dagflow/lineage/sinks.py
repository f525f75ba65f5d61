"""The tables, databases and logs of a run, compared with its run folder: do they have its newest windows? Changes nothing."""

from __future__ import annotations

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import without_secrets
from dagflow.launching.sinks import sinks_of
from dagflow.lineage.errors import RunFolderMissing
from dagflow.lineage.history import PastWindow, standing_in
from dagflow.lineage.trace import ApplicationLocator
from dagflow.model.operator.sink import Sink
from dagflow.runtime.run_folder.folders import read_app_id
from dagflow.runtime.run_folder.progress import progress_of
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.windows.marks import checked_mark
from dagflow.runtime.windows.sinks import once
from dagflow.storage import open_store


@attrs.frozen(kw_only=True)
class SinkCheck:
    """The windows of a run that the store of a sink has.

    Attributes:
        sink: the operator.
        store: the name of the store.
        window: the newest window that it has; -1 for none, None where it keeps no marks, or was not read.
        problem: why it does not fit the run folder, or could not be read.
    """

    sink: str
    store: str
    window: int | None = None
    problem: DagflowError | None = None


def verify_sinks(run_folder: str, locator: ApplicationLocator) -> list[SinkCheck]:
    """Compare the store of each sink with a run folder, as a launch does.

    `locator`: how to find the application, which knows where the stores are. Nothing is loaded or contacted unless it names the
    application, or trusts the run folder.

    Raises RunFolderMissing, NotTraceable (CodeNotNamed: nothing was loaded), ApplicationChanged, RecordRefused, ConfigError,
    DagError.
    """
    store = open_store(run_folder, durable=False)
    log, application = WindowLog(store), read_app_id(store)
    progress = progress_of(log)
    if application is None or progress.last_decision is None or progress.newest not in progress.planned:
        raise RunFolderMissing(run_folder, run_folder, "no window is decided there")
    plan = progress.last_plan if progress.last_plan is not None and progress.last_plan.window == progress.newest else None
    plan = plan or log.read_plan(progress.newest)
    assert plan is not None
    past = PastWindow(log=log, run_folder=run_folder, plan=plan, decision=progress.last_decision)
    built, base, _ = locator.built(past)
    with standing_in(base):
        planned = built.plan()
        past.check_application(built, planned)
        return [_check(name, sink, log, application) for name, sink in sinks_of(planned)]


def _check(name: str, sink: Sink, log: WindowLog, application: str) -> SinkCheck:
    check = SinkCheck(sink=name, store=without_secrets(sink.destination()))
    newest = None
    while True:
        progress = progress_of(log)
        try:
            mark = checked_mark(log, progress, name, sink, application, once)
            return attrs.evolve(check, window=None if mark is None else mark.number)
        except Abort as failed:
            problem = failed.error
        except DagflowError as error:
            problem = error
        if newest == progress.newest:  # else a launch has gone on meanwhile
            return attrs.evolve(check, problem=problem)
        newest = progress.newest
