"""Records of the run folder, and files of decided windows, that are not as they were left.

RecordRefused            DF366
├── RecordDamaged        DF317
├── RecordMisplaced      DF318
└── RecordMissing        DF319
FileInTheWay             DF328
FileLost                 DF329
StagedFileDamaged        DF348
"""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import RunError, error

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


@error
class RecordMissing(RecordRefused):
    """A record is gone on which another one builds."""

    code: ClassVar[str] = "DF319"
    fault: ClassVar[str] = "is missing"


@error
class FileInTheWay(RunError):
    """A decided file cannot get its final name: another file has it."""

    window: int
    path: str
    reason: str
    code: ClassVar[str] = "DF328"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.path} is not the file that was decided ({self.reason})\n"
            "  help: move that file elsewhere, and launch again; nothing was replaced"
        )


@error
class FileLost(RunError):
    """A decided file is neither where it was written nor where it belongs, and no ledger entry says that it was published."""

    window: int
    path: str
    attempt: str
    code: ClassVar[str] = "DF329"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.path} is not there, nor is it where it was written, {self.attempt}\n"
            "  help: bring the file back to one of the two places, and launch again; or launch with --fresh to start over"
        )


@error
class StagedFileDamaged(RunError):
    """A file that waits for its final name has other bytes than its task has written."""

    window: int
    path: str
    attempt: str
    reason: str
    code: ClassVar[str] = "DF348"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.attempt}, which is to become {self.path}, is damaged ({self.reason})\n"
            "  help: bring the file back from a copy, and launch again; or launch with --fresh to start over"
        )
