"""Errors of the page of a run."""

from __future__ import annotations

import shlex
from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error
class NoRun(ConfigError, LookupError):
    """The path is not the output of a run, nor a run folder. `near`: the path that may have been meant."""

    place: str
    reason: str = ""
    near: str | None = None
    code: ClassVar[str] = "DF298"
    example = {"place": "outt", "reason": "there is no such file or folder", "near": "out"}
    general_remedy = "name the output folder of an application, or its run folder"

    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        advice = f"help: {self.general_remedy}" if self.near is None else f"did you mean {self.near}?"
        return f"no run has written to {self.place}{why}\n  {advice}"


@error(kw_only=True)
class RunWithoutDataset(ConfigError, LookupError):
    """A run folder was named where a command needs a dataset.

    `outputs`: the datasets of the run; `stores`: the tables, databases and logs that it writes to, with their operators.
    """

    place: str
    outputs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    code: ClassVar[str] = "DF289"
    example = {"place": "run", "stores": ("sales: the table 'sales' of localhost:5432/shop",)}
    general_remedy = "name an output folder of the run, or look at the run with `dagflow report`"

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


@error
class PortInUse(InfrastructureError, OSError):
    """`dagflow ui` cannot listen on a port."""

    port: int
    reason: str
    host: str = "127.0.0.1"
    code: ClassVar[str] = "DF488"
    example = {"port": 8321, "reason": "Address already in use"}

    def message(self) -> str:
        return f"cannot listen on port {self.port} of {self.host}: {self.reason}\n  help: --port 0 takes any free port"
