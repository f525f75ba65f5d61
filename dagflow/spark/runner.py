"""The Spark runner: one window is one job. With exchanges, it is a query, `range(n) → mapInArrow → …`."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any

from dagflow.errors import DagflowError
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job
from dagflow.spark.connection.ahead import JvmAhead
from dagflow.spark.connection.answers import PYTHON_OF_QUERIES, queried
from dagflow.spark.connection.archives import PythonArchive
from dagflow.spark.connection.failures import dead_partition, failure
from dagflow.spark.connection.links import ClassicLink, Link, is_local
from dagflow.spark.connection.pins import PinnedSettings
from dagflow.spark.connection.session import address_of, connect, forget
from dagflow.spark.dataframes.levels import ADDED_TO, CHOSEN_FOR_TRANSFORMS, PINNED, PINNED_FOR_TRANSFORMS, chained, outcomes
from dagflow.spark.dataframes.transforms import failed_within
from dagflow.spark.errors import ClusterUnreachable, ExecutorsUnfit, NoFreeSlots, SparkLost
from dagflow.spark.executors.check import Guard, Needs, Problem, other_versions, table, told_problems
from dagflow.spark.executors.probe import Found, probe, unfit_problem
from dagflow.spark.jvm.options import DriverJvm
from dagflow.spark.task import SparkTasks, warm_up
from dagflow.spark.threads import JobThreads

CANCELLED_WITHIN = 10.0  # seconds that cancelled jobs get to return; Spark needs some hundredths


class SparkRunner:
    """Runs the tasks of windows on Spark: embedded, on a cluster's master, or through Spark Connect.

    Without `session`, `master` and `remote` an active session is used, and left running. Without one, Spark starts where
    spark-submit, the environment or spark-defaults.conf say, else at `local[*,4]`.

    Args:
        master: Spark's master.
        remote: `sc://host:port` of a Spark Connect server.
        conf: further `spark.*` settings.
        session: the session to use, or its link, whatever else is active.
        slots_timeout: how many seconds to wait for the first free slot of a cluster.
        jvm: what a JVM that this runner starts for a local master is needed for.
        ahead: a JVM that is starting already, and that the first session may take.
        needs: returns what the application needs of executors.
        archive: the Python of tasks, for executors that do not have one with dagflow.
    """

    name = "spark"
    in_process = False

    def __init__(
        self,
        *,
        master: str | None = None,
        remote: str | None = None,
        conf: dict[str, str] | None = None,
        session: Any = None,
        slots_timeout: float = 300.0,
        jvm: DriverJvm | None = None,
        ahead: JvmAhead | None = None,
        needs: Callable[[], Needs] = Needs,
        archive: PythonArchive | None = None,
    ) -> None:
        self._wanted = {"master": master, "remote": remote, "conf": conf or {}, "session": session}
        self._slots_timeout = slots_timeout
        self._jvm = jvm
        self._ahead = ahead
        self._needs = needs
        self._needed: Needs | None = None
        self._archive = archive
        self.warnings: tuple[str, ...] = ()
        self._link: Link | None = None
        self._ours = False
        self._slots = 1
        self._guard: Guard | None = None
        self._comes_and_goes = False
        self._threads = JobThreads("dagflow-window")
        self._group = f"dagflow-{uuid.uuid4().hex[:8]}"
        self._generation = 0
        self._running: set[Future[list[TaskOutcome]]] = set()
        self._opened = ("", "")
        self._lost: Link | None = None
        self._pins = PinnedSettings(ADDED_TO)

    @property
    def slots(self) -> int:
        """Return how many tasks can work at once; where executors come and go, of those that are there now."""
        if self._link is not None and self._comes_and_goes:
            with contextlib.suppress(Exception):  # a session that has ended: the next job reports it
                self._slots = self._link.slots_now() or self._slots
        return self._slots

    @property
    def grows(self) -> bool:
        """Return whether Spark adds executors while tasks wait: dynamic allocation. It never does so within one process."""
        return self._is_on("spark.dynamicAllocation.enabled") and not is_local(self._setting("spark.master", ""))

    @property
    def rebalancing_obstacle(self) -> str | None:
        """Speculation makes copies of tasks, which would take each other's place."""
        if self._link is None:
            return "there is no session"
        return "spark.speculation is on" if self._is_on("spark.speculation") else None

    def _is_on(self, key: str) -> bool:
        """Return whether a setting of the session is true, as Spark reads it."""
        return self._setting(key, "false").strip().lower() == "true"

    def _setting(self, key: str, default: str) -> str:
        """Return a setting of the session. Raises SparkLost if the session has ended, which may be between any two calls."""
        if self._link is None:
            return default
        try:
            return self._link.setting(key, default)
        except Exception as error:
            raise self._told(error, "looking at its settings") from error

    @property
    def ui(self) -> str | None:
        """The address of Spark's own UI."""
        try:
            return None if self._link is None else self._link.ui
        except Exception as error:
            raise self._told(error, "looking for its UI") from error

    @property
    def address(self) -> str:
        """The master, or the address of the Connect server. Raises SparkLost."""
        return self._link.address if self._link is not None else address_of(**self._wanted).value

    def open(self, application: str, run_folder: str) -> None:
        """Starts or finds the session, and checks that its executors can run tasks.

        Raises JavaMissing, ConnectMissing, ClusterUnreachable, SessionElsewhere, SettingFixed, NoFreeSlots, ExecutorsUnfit.
        """
        self._opened = application, run_folder
        self._link, self._ours = connect(application, jvm=self._jvm, ahead=self._ahead, archive=self._archive, **self._wanted)
        self._pins.unpin()
        if self._archive is not None:
            self._pins.pin(self._link.spark, {PYTHON_OF_QUERIES: self._archive.python})
        doing = f"{application}: looking for executors"
        try:
            with self._link.labelled(self._group, doing):
                self._slots = self._free_slots(self._link)
                self._comes_and_goes = self.grows
            if self._ours and isinstance(self._link, ClassicLink) and self._link.in_one_process:
                self._warm_up(self._link, self._slots)
            if not self._link.in_one_process:
                self._remove_mark()
                self._needed = self._needs().marked(run_folder)
                self._probe(self._link, self._needed, f"{application}: looking at executors")
                self._guard = Guard.of(self._needed)
        except Exception as error:
            explained = self._told(error, doing)
            if isinstance(explained, TasksDied):
                explained = ClusterUnreachable(master=self._link.address, reason=str(explained))
            raise explained from error

    def _free_slots(self, link: Link) -> int:
        """Return how many tasks can work at once. Raises NoFreeSlots when no executor takes the first one in time."""
        with self._in_time(link, self._slots_timeout):
            return link.slots()

    @contextlib.contextmanager
    def _in_time(self, link: Link, seconds: float) -> Iterator[None]:
        """Cancel the jobs of the group after a while. Raises NoFreeSlots in the place of what they raise then."""
        is_late = threading.Event()

        def give_up() -> None:
            is_late.set()
            link.cancel(self._group)

        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if is_late.is_set():
                raise NoFreeSlots(link.address, seconds) from error
            raise
        finally:
            timer.cancel()

    def _warm_up(self, link: Link, slots: int) -> None:
        """Run a job that does nothing, while the first window is planned: Spark loads its classes, and starts its workers."""
        group, name = self._group_of(self._generation), "loading classes, starting workers"

        def body() -> None:
            with link.labelled(group, name):
                if self._jvm is None or self._jvm.runs_queries:
                    queried(link.spark, warm_up, slots)
                else:
                    link.run(warm_up, slots)

        self._threads.submit(body)  # a session that cannot do this says so with the first window

    def look(self, application: str, needs: Needs) -> Found | None:
        """Start or find the session, and look at its executors, for no run. None if they are in one process with the driver.

        Raises what `open` does, but not ExecutorsUnfit.
        """
        self._link, self._ours = connect(application, jvm=self._jvm, **self._wanted)
        link, doing = self._link, "looking at executors"
        if link.in_one_process:
            return None
        try:
            with link.labelled(self._group, f"{application}: {doing}"):
                self._slots = self._free_slots(link)
                with self._in_time(link, self._slots_timeout):
                    return probe(link, self._slots, needs)
        except Exception as error:
            explained = self._told(error, doing)
            raise (
                ClusterUnreachable(master=link.address, reason=str(explained)) if isinstance(explained, TasksDied) else explained
            ) from error

    def _probe(self, link: Link, needs: Needs, name: str) -> None:
        """Look at all executors that are there now. Raises ExecutorsUnfit, NoFreeSlots."""
        with link.labelled(self._group, name), self._in_time(link, self._slots_timeout):
            facts = probe(link, self._slots, needs)
        if facts.problems:
            raise ExecutorsUnfit(link.address, tuple(table(facts.problems)))
        self.warnings = tuple(other_versions(facts.facts, needs))

    def _remove_mark(self) -> None:
        needed, self._needed, self._guard = self._needed, None, None
        if needed is not None:
            needed.remove_marks()

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Runs a window as one Spark action in a thread of its own.

        Where the JVM of a session of ours has died, in a new session: raises what `open` does.
        """
        if self._link is not None and self._lost is self._link:
            forget(self._link)
            self.open(*self._opened)
        generation = self._generation
        future = self._threads.submit(lambda: self._collect(job, generation))
        self._running = {f for f in self._running if not f.done()} | {future}
        return future

    def _collect(self, job: Job, generation: int) -> list[TaskOutcome]:
        link = self._link
        if link is None:
            raise TasksDied("the session has been closed")
        try:
            with link.labelled(self._group_of(generation), job.name):
                if generation != self._generation:
                    raise TasksDied("cancelled")
                return self._ran(link, job)
        except TasksDied:
            raise
        except Exception as error:
            if generation != self._generation:
                raise TasksDied("cancelled") from error
            explained = self._told(error, job.name)
            if isinstance(explained, SparkLost) and self._ours and isinstance(link, ClassicLink):
                self._lost = link
                explained = TasksDied(f"Spark at {link.address} has ended ({explained.reason}); a new session takes its place")
            number = dead_partition(str(error))
            if isinstance(explained, TasksDied) and number is not None and not job.levels:  # else it may be of any level
                explained.tasks = (job.tasks[number].name,)
            raise explained from error

    def _ran(self, link: Link, job: Job) -> list[TaskOutcome]:
        if job.levels:
            spark = link.spark
            self._pins.pin(spark, PINNED | (self._for_transforms() if job.transforms else {}))
            try:
                rows = chained(spark, job, self._guard).collect()
            except Exception as error:
                results = outcomes(job, ())
                if any(outcome.error is not None for outcome in results):
                    return results  # a task has failed before
                if not link.is_lost() and (failed := failed_within(error, job.transforms)) is not None:
                    raise failed from error
                raise
            return outcomes(job, rows)
        specs = tuple(pickle.dumps(spec) for spec in job.tasks)
        tasks = SparkTasks(specs, job.programs, job.run_folder, job.durable, self._guard)
        return [pickle.loads(answer) for answer in link.run(tasks.__call__, len(specs))]  # made by our own tasks

    def _for_transforms(self) -> dict[str, str]:
        chosen = (
            {key: value for key, value in CHOSEN_FOR_TRANSFORMS.items() if key not in self._wanted["conf"]} if self._ours else {}
        )
        return PINNED_FOR_TRANSFORMS | chosen

    def _group_of(self, generation: int) -> str:
        return f"{self._group}-{generation}"

    def _told(self, error: Exception, doing: str) -> Exception:
        if self._link is None or isinstance(error, DagflowError):
            return error
        if problems := told_problems(str(error)):  # before the module that is missing: a task has looked
            return ExecutorsUnfit(self._link.address, tuple(table(problems)))
        if problem := unfit_problem(str(error), self._needed or Needs()):
            return self._unfit(self._link, problem)
        return failure(error, self._link, doing)

    def _unfit(self, link: Link, problem: Problem) -> Exception:
        """Return the error for a task that could not even be unpacked: with all that is wrong on executors, if a look tells."""
        if self._needed is not None:
            try:
                self._probe(link, self._needed, "looking at executors again")
            except ExecutorsUnfit as unfit:
                return unfit
            except Exception:  # noqa: BLE001  # then the problem that is known is told alone
                pass
        return ExecutorsUnfit(link.address, tuple(table([problem])))

    def cancel(self) -> None:
        """Cancels all jobs that run, or are just about to; returns when their calls have, or after a while."""
        group = self._group_of(self._generation)
        self._generation += 1
        link, running = self._link, self._running
        deadline = time.monotonic() + CANCELLED_WITHIN
        while link is not None and running and time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # the reason for cancelling is the better one to tell
                link.cancel(group)
            # again and again: a call may be on its way to Spark, which forgets what was cancelled before it came
            running = wait(running, timeout=0.2).not_done

    def close(self) -> None:
        """Stops the session if it is ours."""
        self._pins.unpin()
        self._remove_mark()
        link, self._link = self._link, None
        self._threads.close()
        if link is not None and self._ours:
            with contextlib.suppress(Exception):
                link.stop()
