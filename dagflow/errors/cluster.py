"""What is wrong with the Spark that a run is to work on.

SurroundingsError
├── ClusterUnreachable       DF441   no session could be made
├── ConnectMissing           DF442   the packages of Spark Connect are not installed
├── RunFolderUnseen          DF443   driver and tasks do not see the same run folder
├── SparkLost                DF444   Spark has ended in the middle of the run
├── WorkerUnfit              DF445   the Python of the tasks cannot run them
├── AddressUnknown           DF448   what should be a master or the address of a Connect server is neither
├── SparkNotStarted          DF449   the JVM of a session has ended before it was there
└── NoFreeSlots              DF450   no executor took a task in time
ConfigError
├── SessionElsewhere         DF446   a session is active, and it is another one than was asked for
└── SettingFixed             DF447   a setting of Spark's that cannot be changed any more
"""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import ConfigError, SurroundingsError, error


@error
class ClusterUnreachable(SurroundingsError):
    """No Spark session could be made."""

    master: str
    reason: str
    code: ClassVar[str] = "DF441"

    def message(self) -> str:
        return f"Spark at {self.master} does not answer: {self.reason}\n  help: check the address, and that the cluster runs"


@error
class ConnectMissing(SurroundingsError):
    """The packages of Spark Connect are not installed."""

    remote: str
    reason: str
    code: ClassVar[str] = "DF442"

    def message(self) -> str:
        return f"{self.remote} needs the packages of Spark Connect ({self.reason})\n  help: pip install 'dagflow[connect]'"


@error
class RunFolderUnseen(SurroundingsError):
    """Driver and tasks do not see the same run folder."""

    run_folder: str
    master: str
    found: str
    code: ClassVar[str] = "DF443"

    def message(self) -> str:
        return (
            f"the tasks at {self.master} do not see the run folder {self.run_folder} as the driver does ({self.found})\n"
            "  help: put the output on storage that all machines share, or name a run folder there: --run-folder …"
        )


@error
class SparkLost(SurroundingsError):
    """Spark has ended in the middle of a run: its JVM, its SparkContext, or the server's session. `doing` names the job."""

    address: str
    doing: str
    reason: str
    code: ClassVar[str] = "DF444"

    def message(self) -> str:
        return (
            f"Spark at {self.address} has ended while it worked on {self.doing!r}: {self.reason}\n"
            "  help: launch again to go on from there (from a new Python process, or a restarted notebook kernel)"
        )


@error
class WorkerUnfit(SurroundingsError):
    """The Python that Spark starts for tasks cannot run them."""

    address: str
    reason: str
    code: ClassVar[str] = "DF445"

    def message(self) -> str:
        return (
            f"the Python that Spark at {self.address} starts for tasks is not fit for them: {self.reason}\n"
            "  help: have the same Python version there as here, with the same dagflow installed, and name it: PYSPARK_PYTHON=/path/to/python"
        )


@error
class AddressUnknown(SurroundingsError):
    """A master, or the address of a Spark Connect server, that has no form of one."""

    address: str
    origin: str
    reason: str
    code: ClassVar[str] = "DF448"

    def message(self) -> str:
        return (
            f"Spark cannot run at {self.address!r}{'' if self.origin == 'run' else f' ({self.origin})'}: {self.reason}\n"
            "  help: a master is local[N], local[N,TRIES], spark://HOST:PORT, yarn or k8s://…; a Connect server is sc://HOST:PORT"
        )


@error
class SparkNotStarted(SurroundingsError):
    """The JVM of a session has ended before the session was there. `remedy` names what to look at."""

    address: str
    reason: str
    remedy: str
    code: ClassVar[str] = "DF449"

    def message(self) -> str:
        return f"Spark could not be started at {self.address}: {self.reason}\n  help: {self.remedy}"


@error
class NoFreeSlots(SurroundingsError):
    """No executor took a task in time: the cluster has none, or others use them all."""

    address: str
    seconds: float
    code: ClassVar[str] = "DF450"

    def message(self) -> str:
        return (
            f"Spark at {self.address} had no free slot for {self.seconds:g} s\n"
            "  help: see in the cluster's UI whether workers are registered, others use them, or have less memory or fewer cores than "
            "spark.executor.memory and spark.executor.cores ask for; to wait longer: --slots-timeout 1h"
        )


@error
class SessionElsewhere(ConfigError):
    """A Spark session is active in this process, and a run asks for another one."""

    active: str
    wanted: str
    code: ClassVar[str] = "DF446"

    def message(self) -> str:
        return (
            f"a Spark session is active at {self.active}, but this run asks for {self.wanted}, and a process can have only one\n"
            "  help: leave out the master to use the active session, or stop that one first: spark.stop()"
        )


@error
class SettingFixed(ConfigError):
    """A setting of Spark's that this session has already, with another value."""

    key: str
    value: str
    has: str | None
    address: str
    code: ClassVar[str] = "DF447"

    def message(self) -> str:
        has = "not set" if self.has is None else self.has
        return (
            f"{self.key} cannot become {self.value!r}: the session at {self.address} has started already, and there it is {has}\n"
            "  help: set it where that session is started, or leave it out here"
        )
