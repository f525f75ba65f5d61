"""Errors of the page of a run."""

from __future__ import annotations

import shlex

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error("DF298")
class NoRun(ConfigError, LookupError):
    """The path is not the output of a run, nor a run folder. `near`: the path that may have been meant."""

    place: str
    reason: str = ""
    near: str | None = None
    template = "no run has written to {place}{reason:?: {reason}}\n  {near:?did you mean {near}?|help: {general_remedy}}"
    example = {"place": "outt", "reason": "there is no such file or folder", "near": "out"}
    general_remedy = "name the output folder of an application, or its run folder"


@error("DF289", kw_only=True)
class RunWithoutDataset(ConfigError, LookupError):
    """A run folder was named where a command needs a dataset.

    `outputs`: the datasets of the run; `stores`: the tables, databases and logs that it writes to, with their operators.
    """

    place: str
    outputs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    example = {"place": "run", "stores": ("sales: the table 'sales' of localhost:5432/shop",)}

    def message(self) -> str:
        place = shlex.quote(self.place)
        if self.outputs:
            named = " or ".join(f"`{shlex.quote(each)}`" for each in self.outputs)
            return (
                f"{self.place} is a run folder, and has no ledger of its own\n  help: name an output folder of the run: {named}"
            )
        rows = "".join(f"\n    {each}" for each in self.stores)
        where = f". Its rows are in{rows}" if rows else ""
        return (
            f"{self.place} is a run folder, whose application writes no files, so there is no ledger{where}\n"
            f"  help: `dagflow report {place}` shows its windows; `dagflow verify {place} --trust` loads the application, and looks\n"
            "        whether its tables, databases and logs have them"
        )


@error("DF488")
class PortInUse(InfrastructureError, OSError):
    """`dagflow ui` cannot listen on a port."""

    port: int
    reason: str
    host: str = "127.0.0.1"
    template = "cannot listen on port {port} of {host}: {reason}\n  help: --port 0 takes any free port"
    example = {"port": 8321, "reason": "Address already in use"}
