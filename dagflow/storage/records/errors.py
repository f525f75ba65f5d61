"""Errors of stored records that are not as they were left."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.storage.records.bounded import max_bytes


@error("DF263")
class PlanMismatch(ConfigError):
    """The run folder was written by another application or another version of dagflow."""

    folder: str
    reason: str
    template = (
        "{folder} cannot be continued: {reason}\n"
        "  help: launch with --fresh to start over, or name another output; where the folder is an older copy, bring the newest back"
    )
    example = {"folder": "out/_dagflow", "reason": "it was written by an application with other operators"}


@error("DF770", is_fatal=True)
class RecordTooLarge(RunError):
    """A record would be so large that no reader takes it."""

    folder: str
    name: str
    size: int
    limit: int
    template = (
        "{folder}/{name} would have {size:,} bytes, and readers refuse more than {limit:,}\n"
        "  help: let windows be smaller (fewer blocks or items in each), or keep less state; nothing was written"
    )
    example = {"folder": "out/_dagflow", "name": "plan/0000000003", "size": 1_500_000_000, "limit": 1 << 30}


def check_size(folder: str, name: str, size: int) -> None:
    """Raise RecordTooLarge for a record that would be refused when it is read."""
    if size > (limit := max_bytes(name)):
        raise RecordTooLarge(folder, name, size, limit)


_OF_ONE_ROUND = ("reports/", "claims/")


@error("DF366", is_fatal=True)
class RecordRefused(RunError):
    """A record of the run folder cannot be used. `folder`: the run folder."""

    fault: ClassVar[str] = "cannot be used"
    folder: str
    name: str
    reason: str
    example = {"folder": "out/_dagflow", "name": "plan/0000000003", "reason": "it is not JSON"}

    def message(self) -> str:
        if self.name.startswith(_OF_ONE_ROUND):
            way_out = "launch again: the window runs again from its plan, without records of earlier attempts"
        else:
            way_out = "restore it from a copy of the run folder, or launch with --fresh to start over"
        return f"{self.folder}/{self.name} {self.fault} ({self.reason})\n  help: {way_out}"


@error("DF317")
class RecordDamaged(RecordRefused):
    """The bytes of a record differ from those that were published."""

    fault: ClassVar[str] = "is damaged"
    example = {"folder": "out/_dagflow", "name": "plan/0000000003", "reason": "its hash differs"}


@error("DF318")
class RecordMisplaced(RecordRefused):
    """A record is whole but does not belong there: it is a copy of another one, or does not fit the record that it builds on."""

    fault: ClassVar[str] = "is out of place"
    example = {"folder": "out/_dagflow", "name": "plan/0000000003", "reason": "it is plan/0000000002"}
