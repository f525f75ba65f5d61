"""Errors of input operators: files and datasets that are missing, changed or replaced."""

from __future__ import annotations

from dagflow.errors import ConfigError, RunError, definition, error


@error("DF264", kw_only=True)
class InputMissing(ConfigError):
    """An input file or folder does not exist.

    `parent`: the deepest folder of the path that exists; `nearest`: the most similar path in it; `with_commas`: an existing
    path with commas, if the setting was split at these.
    """

    operator: str
    path: str
    parent: str | None = None
    nearest: str | None = None
    waits: bool = False
    with_commas: str | None = None
    example = {"operator": "files", "path": "logs/b", "parent": "logs"}

    def message(self) -> str:
        lines = [f"operator {self.operator!r}: there is no file or folder {self.path}"]
        if self.with_commas:
            lines.append(f"  {self.with_commas} exists: commas separate paths")
            toml = f"""-D 'KEY=["{self.with_commas}"]'"""
            lines.append(rf"  help: write \, for a comma that is part of a path, or a list: {toml}")
            return "\n".join(lines)
        if self.nearest:
            lines.append(f"  did you mean {self.nearest}?")
        elif self.parent:
            lines.append(f"  {self.parent} exists, but the rest of the path does not")
        if any(c in self.path for c in "*?["):
            pattern = definition(self.operator, "scanner.file_pattern_regular_exp", ".*[.]txt")
            lines.append(f"  help: `files` takes no patterns: name the folder, and a regular expression: {pattern}")
        elif "," in self.path:
            parts = [part.strip() for part in self.path.split(",")]
            several = "[" + ", ".join(f'"{part}"' for part in parts if part) + "]"
            lines.append(f"  help: this is one path, with a comma in it; several paths are a list: {several}")
            lines.append(f"        on the command line: {definition(self.operator, 'files', several)}")
        elif self.waits:
            lines.append("  help: `wait` applies to continuous runs only; with --once, the run would never end")
        else:
            lines.append(f"  help: a continuous run waits for it with {definition(self.operator, 'scanner.wait', 'true')}")
        return "\n".join(lines)


@error("DF265", kw_only=True)
class InputNotFile(ConfigError):
    """An input path is a pipe, a socket or a device."""

    operator: str
    path: str
    template = (
        "operator {operator!r}: {path} is neither a file nor a folder, and cannot be split at positions\n"
        "  help: copy what comes out of it to a file first"
    )
    example = {"operator": "files", "path": "logs/pipe"}


@error("DF322", kw_only=True)
class ScanFailed(RunError):
    """The thread of the scanner raised an exception, which is the cause of this one.

    `path`: the path that was scanned; `at`: the innermost line, as `FILE:LINE in FUNCTION`.
    """

    operator: str
    path: str
    error: str
    at: str = ""
    template = "operator {operator!r}: scanning {path} failed: {error}{at:?\n  at {at}}"
    example = {"operator": "files", "path": "logs", "error": "ValueError: bad date", "at": "app.py:12 in accepts"}
    general_remedy = "fix the line that is named"


@error("DF323", kw_only=True)
class FileModified(RunError):
    """A file has changed since it was split, and `modified` is "error". `before`, `after`: its modification time and length."""

    operator: str
    path: str
    before: str
    after: str
    template = (
        "operator {operator!r}: {path} has changed since it was split\n"
        "  before  {before}\n"
        "  now     {after}\n"
        "  help: {operator:-D scanner.modified=reread} reads such a file again, whole; "
        "append reads what was appended; ignore leaves it\n"
        "        for files that are still being written when they are found: {operator:-D scanner.min_age=1min}"
    )
    example = {
        "operator": "files",
        "path": "logs/a.txt",
        "before": "2026-01-01 12:00, 4096 bytes",
        "after": "2026-01-01 12:05, 100 bytes",
    }


@error("DF614", kw_only=True)
class FileNotAppended(RunError):
    """A file was changed other than by appending, and `modified` is "append".

    `read`: the number of bytes that had been planned; `length`: its length now; `why`: the difference.
    """

    operator: str
    path: str
    read: int
    length: int
    why: str
    template = (
        "operator {operator!r}: {path} has changed, but not by appending: {why}\n"
        "  before  {read:,} bytes had been read\n"
        "  now     {length:,} bytes\n"
        "  help: put it back as it was; or read such files again, whole: {operator:-D scanner.modified=reread}\n"
        "        or ignore the change, and keep what was read before: {operator:-D on_error=skip}\n"
        "        (give rotated logs names of their own, such as the date)"
    )
    example = {"operator": "files", "path": "logs/a.txt", "read": 4096, "length": 100, "why": "it is shorter"}


@error("DF324", kw_only=True)
class PlannedFileGone(RunError):
    """A file disappeared after some of its blocks had been planned. `planned`, `blocks`: the number of planned blocks, and of all."""

    operator: str
    path: str
    planned: int
    blocks: int
    template = (
        "operator {operator!r}: {path} is gone; {planned:,} of its {blocks:,} blocks had been planned\n"
        "  help: put it back and launch again; or continue without the rest: {operator:-D on_error=skip}"
    )
    example = {"operator": "files", "path": "logs/a.txt", "planned": 2, "blocks": 5}


@error("DF266", kw_only=True)
class DatasetMissing(ConfigError):
    """The path of a dataset input has no dataset."""

    operator: str
    path: str
    reason: str
    parent: str | None = None
    nearest: str | None = None
    waits: bool = False
    template = (
        "operator {operator!r}: there is no dataset in {path}: {reason}"
        "{nearest:?\n  did you mean {nearest}?|{parent:?\n  {parent} exists, but the rest of the path does not}}\n"
        "  help: name the output folder of an application that was launched\n"
        "        {waits:?`wait` applies to continuous runs only; with --once, the run would never end"
        "|a continuous run waits for it with {operator:-D wait=true}}"
    )
    example = {"operator": "orders", "path": "out", "reason": "it has no ledger"}


@error("DF326", kw_only=True)
class DatasetReplaced(RunError):
    """The path has another dataset than before."""

    operator: str
    path: str
    before: str
    after: str
    template = (
        "operator {operator!r}: {path} holds another dataset than the one that was read so far\n"
        "  before  {before}\n"
        "  now     {after}\n"
        "  help: put the former one back; or launch with --fresh, which rebuilds the outputs from this one"
    )
    example = {"operator": "orders", "path": "out", "before": "did:odf:a", "after": "did:odf:b"}


@error("DF616", kw_only=True, is_fatal=True)
class RowsReplaced(RunError):
    """A window replaced all rows of a dataset, of which some were read before. `rows`: their number; `entry`: of its ledger."""

    operator: str
    path: str
    entry: int
    rows: int
    example = {"operator": "totals", "path": "out", "entry": 5, "rows": 120}

    def message(self) -> str:
        reread = definition(self.operator, "on_replace", "reread")
        return (
            f"operator {self.operator!r}: entry {self.entry} of {self.path} replaced all of its rows, up to row {self.rows - 1:,} of "
            "which were read before\n"
            f"  help: read each new state of the dataset whole: {reread}. What follows then gets its rows once more, so let it\n"
            "        replace its results too, and keep no totals over windows; or launch with --fresh"
        )


@error("DF327", kw_only=True)
class DatasetRewritten(RunError):
    """The ledger of a dataset no longer has the entries that were read before: it was cut, rewritten or restored.

    `before`: the last entry that was read, as number and hash; `after`: the entry there now.
    """

    operator: str
    path: str
    before: str
    after: str
    template = (
        "operator {operator!r}: the ledger of {path} does not hold what was read of it before\n"
        "  before  entry {before}\n"
        "  now     {after}\n"
        "  help: `dagflow verify` lists the damage; restore the dataset from a copy, or launch with --fresh,\n"
        "        which rebuilds the outputs from the dataset as it is now"
    )
    example = {"operator": "orders", "path": "out", "before": "5 (sha256:ab…)", "after": "entry 5 (sha256:cd…)"}
