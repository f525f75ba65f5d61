"""Errors of stored records that are not as they were left."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error


@error
class PlanMismatch(ConfigError):
    """What the run folder holds does not fit this application."""

    folder: str
    reason: str
    code: ClassVar[str] = "DF263"

    def message(self) -> str:
        return (
            f"{self.folder} cannot be continued: {self.reason}\n  help: launch with --fresh to start over, or name another output"
        )


_OF_ONE_ROUND = ("reports/", "claims/")


@error
class RecordRefused(RunError):
    """A record of the run folder is not used, since it is not what a run has left there. `folder`: the run folder."""

    folder: str
    name: str
    reason: str
    code: ClassVar[str] = "DF366"
    is_fatal: ClassVar[bool] = True
    fault: ClassVar[str] = "cannot be used"

    def message(self) -> str:
        if self.name.startswith(_OF_ONE_ROUND):
            way_out = "launch again: the window runs anew from its plan, and needs no records of earlier attempts"
        else:
            way_out = "bring it back from a copy of the run folder; or launch with --fresh to start over"
        return f"{self.folder}/{self.name} {self.fault} ({self.reason})\n  help: {way_out}"


@error
class RecordDamaged(RecordRefused):
    """A record has other bytes than were published."""

    code: ClassVar[str] = "DF317"
    fault: ClassVar[str] = "is damaged"


@error
class RecordMisplaced(RecordRefused):
    """A record is whole, and belongs elsewhere: it is another one's copy, or does not fit the one that it builds on."""

    code: ClassVar[str] = "DF318"
    fault: ClassVar[str] = "is out of place"
