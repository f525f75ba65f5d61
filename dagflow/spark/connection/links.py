"""The differences between classic Spark and Spark Connect: slots, labels of jobs, cancelling, telling whether they live."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from dagflow.runtime.run_folder.folders import on_other_machines
from dagflow.spark.connection.answers import PYTHON_OF_QUERIES, Answers, queried

PATIENCE = 3.0  # seconds to wait for further executors once the first one is there
STEADY = 0.4  # seconds without another executor after which all are taken to be there
RELEASE = 10.0  # seconds that letting go of a Connect session may take: it is tried again and again when the server is gone
SILENCE = 20.0  # seconds without an answer after which a Connect server is taken to be gone


class Link(Protocol):
    """The connection to a Spark, as the runner uses it."""

    address: str
    in_one_process: bool
    """True if tasks run on this machine, below this process: what it sees, they see."""

    @property
    def spark(self) -> Any:
        """The session."""
        ...

    @property
    def ui(self) -> str | None:
        """Spark's own UI, where it tells."""
        ...

    def setting(self, key: str, default: str) -> str:
        """Return a setting of the session."""
        ...

    def run(self, answers: Answers, count: int) -> list[bytes]:
        """Run a job of `count` tasks without exchanges. Return their answers in order."""
        ...

    def slots(self) -> int:
        """Return how many tasks can work at once. May wait for executors."""
        ...

    def slots_now(self) -> int | None:
        """The same of the executors that are there at this moment, at once; None: only a job would tell."""
        ...

    def labelled(self, group: str, name: str) -> contextlib.AbstractContextManager[None]:
        """While this lasts, jobs that the calling thread starts belong to `group` and show `name` in Spark's UI."""
        ...

    def cancel(self, group: str) -> None:
        """Cancels what runs of a group."""
        ...

    def is_lost(self) -> bool:
        """Return whether no job will run in this session any more."""
        ...

    def stop(self) -> None:
        """Ends the session."""
        ...


class ClassicLink:
    """Spark in this process's own JVM: its context, and its session, which is made when it is asked for.

    A local Spark runs windows without exchanges as jobs of RDDs. They need no session, and so none of the classes of Spark SQL
    (see docs/decisions).
    """

    def __init__(self, context: Any, session: Any = None) -> None:
        self.context = context
        self._session = session
        self._making = threading.Lock()
        self.address: str = context.master
        self.in_one_process = is_local(self.address)

    @property
    def spark(self) -> Any:
        """The session."""
        with self._making:
            if self._session is None:
                from pyspark.sql import SparkSession

                # not by the builder, which would go by SPARK_REMOTE
                self._session = self._made_elsewhere() or SparkSession(self.context)
            return self._session

    def _made_elsewhere(self) -> Any:
        """The session of this context that user code or another run has made, None without one."""
        from pyspark.sql import SparkSession

        made = SparkSession._instantiatedSession
        return made if made is not None and made.sparkContext is self.context else None

    @property
    def ui(self) -> str | None:
        """The address of the UI; None when it is switched off."""
        address: str | None = self.context.uiWebUrl
        return address

    def setting(self, key: str, default: str) -> str:
        """Return a setting of the session, else of the context."""
        conf = self.context._conf if self._session is None else self._session.conf  # getConf() would copy all settings
        return str(conf.get(key, default))

    def run(self, answers: Answers, count: int) -> list[bytes]:
        """Run an RDD job with a local master, else a query: some platforms refuse RDDs.

        A query, too, where a setting gives queries a Python of their own.
        """
        if not self.in_one_process or self.setting(PYTHON_OF_QUERIES, ""):
            return queried(self.spark, answers, count)
        answered: list[bytes] = self.context.parallelize(range(count), count).mapPartitions(answers).collect()
        return answered

    def slots(self) -> int:
        """Spark's default parallelism, which is that of the executors that are there: so waits for them on a cluster."""
        context = self.context
        if not self.in_one_process:
            self.spark.range(0, 1, 1, 1).collect()  # waits for the first
            deadline = time.monotonic() + PATIENCE
            slots, since = context.defaultParallelism, time.monotonic()
            while time.monotonic() < min(deadline, since + STEADY):
                time.sleep(0.05)
                if context.defaultParallelism != slots:
                    slots, since = context.defaultParallelism, time.monotonic()
        return self.slots_now()

    def slots_now(self) -> int:
        """Spark's default parallelism."""
        return max(1, int(self.context.defaultParallelism))

    @contextlib.contextmanager
    def labelled(self, group: str, name: str) -> Iterator[None]:
        """Sets the job group of the calling thread."""
        self.context.setJobGroup(group, name, interruptOnCancel=True)
        yield

    def cancel(self, group: str) -> None:
        """Cancels the group's jobs."""
        self.context.cancelJobGroup(group)

    def is_lost(self) -> bool:
        """Return whether the JVM is gone, or its SparkContext stopped: both refuse this question."""
        try:
            _ = self.context.defaultParallelism
        except Exception:  # noqa: BLE001  # py4j raises anything from AttributeError to ConnectionRefusedError
            return True
        return False

    def stop(self) -> None:
        """Stops Spark, without a second of waiting: pyspark's server of accumulators looks once a second whether it is to end."""
        server = getattr(self.context, "_accumulatorServer", None)
        if server is not None:
            self.context._accumulatorServer = None
            threading.Thread(target=server.shutdown, name="dagflow-accumulators", daemon=True).start()
        # a session that outlived its context would be taken for a living one
        (self._session or self._made_elsewhere() or self.context).stop()


class ConnectLink:
    """A session on a Spark Connect server."""

    ui = None

    def __init__(self, spark: Any, address: str) -> None:
        self.spark = spark
        self.address = address
        self.in_one_process = "SPARK_LOCAL_REMOTE" in os.environ  # pyspark has started the server itself, in this process
        self._is_lost = False

    def setting(self, key: str, default: str) -> str:
        """Return a setting of the session."""
        return str(self.spark.conf.get(key, default))

    def run(self, answers: Answers, count: int) -> list[bytes]:
        """Run a query: Connect has no RDDs."""
        return queried(self.spark, answers, count)

    def slots(self) -> int:
        """The server's default parallelism: as many partitions as it gives a range by default."""
        self.spark.range(0, 1, 1, 1).collect()  # waits for the first executor
        partitions = self.spark.range(0, 1 << 14).selectExpr("spark_partition_id() AS p").selectExpr("max(p)").collect()
        return int(partitions[0][0]) + 1

    def slots_now(self) -> None:
        """Nothing tells it but a job."""

    @contextlib.contextmanager
    def labelled(self, group: str, name: str) -> Iterator[None]:
        """Tags what the calling thread starts; Spark's UI shows tags."""
        tags = (group, name.replace(",", ";"))
        for tag in tags:
            self.spark.addTag(tag)
        try:
            yield
        finally:
            for tag in tags:
                self.spark.removeTag(tag)

    def cancel(self, group: str) -> None:
        """Interrupts what has the group's tag; does not wait longer than a while for a server that does not answer."""
        within(RELEASE, lambda: self.spark.interruptTag(group))

    def is_lost(self) -> bool:
        """Return whether the server does not know the session any more, or does not answer."""
        answers: list[bool] = []

        def ask() -> None:
            self.spark.conf.get("spark.sql.session.timeZone")
            answers.append(True)

        within(SILENCE, ask)
        self._is_lost = not answers
        return self._is_lost

    def stop(self) -> None:
        """Lets go of the session on the server; not on one that is gone, where that would take its time."""
        if not self._is_lost:
            within(RELEASE, self.spark.stop)


def within(seconds: float, call: Callable[[], object]) -> None:
    """Calls something that may take minutes, and waits for it at most so long. What it raises is dropped."""

    def body() -> None:
        with contextlib.suppress(Exception):
            call()

    thread = threading.Thread(target=body, name="dagflow-spark", daemon=True)
    thread.start()
    thread.join(seconds)


def is_of_connect(thing: Any) -> bool:
    """Return whether a session or a DataFrame is one of Spark Connect; loads nothing to find out."""
    return ".connect." in type(thing).__module__


def is_local(master: str) -> bool:
    """Return whether a master runs driver and executors in one JVM: `local`, `local[2]`, `local[*,4]`."""
    return master == "local" or master.startswith("local[")


def on_this_machine(address: str) -> bool:
    """Return whether a master runs its executors here, so that loopback addresses do.

    >>> [on_this_machine(a) for a in ("local[2]", "local-cluster[2,1,1024]", "spark://127.0.0.1:7077", "spark://boss:7077")]
    [True, True, True, False]
    """
    return not on_other_machines(address)
