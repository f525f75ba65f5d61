"""What is wrong with the cluster that a run is to work on."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import SurroundingsError, error


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
            "  help: put the output on storage that all machines share, or name a run folder there: -D run_folder=…"
        )
