"""Errors of the folders of a run: what they hold, and who owns them."""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.storage.records.errors import RecordRefused


@attrs.frozen(kw_only=True)
class ExpectationResult:
    """The verdict on the records that an operator has rejected in a window, over all tasks.

    `name`: of the limit; `records`: their number, rejected ones included; `status`: `ok`, `warned` or `failed`. One of
    `max_share` and `max_count` is None.
    """

    operator: str
    name: str
    records: int
    rejected: int
    max_share: float | None = None
    max_count: int | None = None
    status: str = "ok"

    @property
    def limit(self) -> str:
        """The limit in words: `1%` or `100`."""
        return f"{self.max_count:,}" if self.max_share is None else f"{self.max_share * 100:.12g}%"

    def text(self) -> str:
        """Return the figures in words.

        >>> ExpectationResult(operator="clean", name="max_rejects", records=400, rejected=5, max_share=0.01).text()
        "'clean' rejected 5 of 400 records (1.25%); limit 1% (max_rejects)"
        """
        share = f" ({100 * self.rejected / self.records:.3g}%)" if self.records else ""
        figures = f"{self.rejected:,} of {self.records:,} records{share}"
        return f"{self.operator!r} rejected {figures}; limit {self.limit} ({self.name})"


@error("DF254")
class ForeignFiles(ConfigError):
    """An output folder holds files that dagflow did not write."""

    folder: str
    files: tuple[str, ...]
    example = {"folder": "out", "files": ("notes.txt",)}

    def message(self) -> str:
        shown = ", ".join(self.files[:3]) + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")
        return f"output folder {self.folder} holds files that no run wrote: {shown}\n  help: name an empty or new folder, or move them away"


@error("DF255")
class OutputOwned(ConfigError):
    """An output folder belongs to another run folder."""

    folder: str
    owner: str
    mine: str
    template = (
        "output folder {folder} belongs to the run in {owner}, this one is {mine}\n"
        "  help: name another output, or the same first output (or --run-folder) as before"
    )
    example = {"folder": "out", "owner": "first/_dagflow", "mine": "second/_dagflow"}


@error("DF256")
class LocalPathRemoteMaster(ConfigError):
    """An operator uses a path of this machine, and the executors run on other machines."""

    operator: str
    path: str
    master: str
    template = (
        "operator {operator!r} works on {path}, a path of this machine, but {master} runs on others\n"
        "  help: use a path or URL that all of them see, and say so with --shared-paths if this one is"
    )
    example = {"operator": "files", "path": "/data/logs", "master": "spark://head:7077"}


@error("DF258")
class OutputOrphaned(ConfigError):
    """An output folder belongs to this run, but the run's log is gone, so its files cannot be distinguished from others."""

    folder: str
    run_folder: str
    template = (
        "output folder {folder} belongs to the run in {run_folder}, whose log is gone: everything would be written twice\n"
        "  help: restore the run folder, name another output, or move the files in the output away and launch with --fresh"
    )
    example = {"folder": "out", "run_folder": "out/_dagflow"}


@error("DF259")
class OutputInInput(ConfigError):
    """An output folder lies in a folder that the run reads."""

    operator: str
    path: str
    output: str
    what: str = "output folder"
    template = (
        "{what} {output} lies in {path}, which operator {operator!r} reads: "
        "each launch would read what the one before has written\n"
        "  help: name a folder beside the input"
    )
    example = {"operator": "files", "path": "logs", "output": "logs/out"}


@error("DF379", is_fatal=True)
class FolderNotOwned(RunError, ValueError):
    """A stored record names a folder that is not an output of this run."""

    folder: str
    record: str
    run_folder: str
    template = (
        "{run_folder}: {record} names files of {folder}, which is not an output of this run\n"
        "  help: dagflow has moved and removed nothing there; restore the run folder from a copy. If the outputs have moved, "
        "launch with their present paths in the same order"
    )
    example = {"folder": "/data/other", "record": "decision/0000000003", "run_folder": "out/_dagflow"}


@error("DF319")
class RecordMissing(RecordRefused):
    """A record is missing that another one builds on."""

    fault: ClassVar[str] = "is missing"
    example = {"folder": "out/_dagflow", "name": "plan/0000000003", "reason": "decision/0000000003 builds on it"}
