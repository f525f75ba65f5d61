"""The Spark runner: one window is one action, `range(n) → mapInArrow`; only DataFrame calls carry data."""

from __future__ import annotations

import contextlib
import pickle
import threading
import uuid
from concurrent.futures import Future
from typing import Any

from dagflow.errors.cluster import RunFolderUnseen
from dagflow.runtime.program import Job, TaskOutcome
from dagflow.spark.session import DEFAULT_MASTER, is_local, open_session
from dagflow.spark.task import SCHEMA, Probe, SparkTasks
from dagflow.storage import open_store


class SparkRunner:
    """Runs the tasks of windows on Spark: embedded, on a cluster's master, or through Spark Connect.

    Args:
        master: `local[*,4]` by default; remote: `sc://host:port` of a Spark Connect server.
        conf: further `spark.*` settings.
    """

    name = "spark"
    in_process = False

    def __init__(self, *, master: str | None = None, remote: str | None = None, conf: dict[str, str] | None = None) -> None:
        self._master = master
        self._remote = remote
        self._conf = conf or {}
        self._session: Any = None
        self._ours = False
        self._slots = 1
        self._group = f"dagflow-{uuid.uuid4().hex[:8]}"
        self._generation = 0
        self.jobs = 0

    @property
    def slots(self) -> int:
        """How many tasks can work at once."""
        return self._slots

    @property
    def ui(self) -> str | None:
        """The address of Spark's own UI."""
        return None if self._remote is not None else self._session.sparkContext.uiWebUrl

    def open(self, application: str, run_folder: str) -> None:
        """Starts or finds the session, and checks that tasks see the run folder."""
        self._session, self._ours = open_session(application, self._master, self._remote, self._conf)
        if self._remote is None:
            context = self._session.sparkContext
            self._slots = max(1, context.defaultParallelism)
            if is_local(context.master):
                return
            self._session.range(0, 1, 1, 1).collect()  # waits for the first executor: only then is the parallelism known
            self._slots = max(1, context.defaultParallelism)
        else:
            self._slots = _connect_slots(self._session)
        self._probe(run_folder)

    def _probe(self, run_folder: str) -> None:
        store = open_store(run_folder)
        name, content = f"probe/{uuid.uuid4().hex}", uuid.uuid4().hex.encode()
        store.create(name, content)
        try:
            rows = self._session.range(0, 1, 1, 1).mapInArrow(Probe(run_folder, name, content).__call__, SCHEMA).collect()
        finally:
            store.discard(name)
        if rows[0][0] != "same":
            raise RunFolderUnseen(run_folder, self._master or self._remote or DEFAULT_MASTER, rows[0][0])

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Runs a window as one Spark action in a thread of its own."""
        future: Future[list[TaskOutcome]] = Future()
        generation = self._generation
        self.jobs += 1

        def body() -> None:
            try:
                future.set_result(self._collect(job, generation))
            except BaseException as error:  # noqa: BLE001  # handed to whoever waits
                future.set_exception(error)

        threading.Thread(target=body, name=f"dagflow-window-{job.window}", daemon=True).start()
        return future

    def _collect(self, job: Job, generation: int) -> list[TaskOutcome]:
        specs = tuple(pickle.dumps(spec) for spec in job.tasks)
        tasks = SparkTasks(specs, job.programs, job.run_folder, job.durable)
        session, tag = self._session, f"{self._group}-{generation}"
        if self._remote is not None:
            session.addTag(tag)
        else:
            session.sparkContext.setJobGroup(tag, job.name, interruptOnCancel=True)
        count = len(specs)
        rows = session.range(0, count, 1, count).mapInArrow(tasks.__call__, SCHEMA).collect()
        return [pickle.loads(row[1]) for row in rows]  # made by our own tasks, handed over by Spark

    def cancel(self) -> None:
        """Cancels all jobs that run."""
        generation, self._generation = self._generation, self._generation + 1
        tag = f"{self._group}-{generation}"
        with contextlib.suppress(Exception):
            if self._session is None:
                return
            if self._remote is not None:
                self._session.interruptTag(tag)
            else:
                self._session.sparkContext.cancelJobGroup(tag)

    def close(self) -> None:
        """Stops the session if it is ours."""
        session, self._session = self._session, None
        if session is not None and self._ours:
            with contextlib.suppress(Exception):
                session.stop()


def _connect_slots(session: Any) -> int:
    try:
        return int(session.conf.get("spark.default.parallelism"))
    except Exception:  # noqa: BLE001  # not set: the server does not tell
        return 2
