"""What is wrong with the Spark that a run is to work on.

SurroundingsError
├── ClusterUnreachable       DF441   no session could be made
├── ConnectMissing           DF442   the packages of Spark Connect are not installed
├── RunFolderUnseen          DF443   driver and tasks do not see the same run folder
├── SparkLost                DF444   Spark has ended in the middle of the run
└── WorkerUnfit              DF445   the Python of the tasks cannot run them
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
