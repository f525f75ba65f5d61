"""What can be wrong with the files that a splitter is given.

ConfigError
├── InputMissing    DF320   a file or folder of `files` is not there
└── InputNotFile    DF321   a pipe, socket or device among `files`
RunError
├── ScanFailed      DF322   the scanner's thread ended with an exception
├── FileModified    DF323   a file that was split before has changed, and `on_modified` is "fail"
└── FileGone        DF324   a file vanished before all of its blocks were planned
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import ConfigError, RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class InputMissing(ConfigError):
    """A file or folder that a splitter should read is not there.

    `parent` is the deepest folder on the way that exists, `nearest` the path there that is most like the missing one.
    """

    operator: str
    path: str
    parent: str | None = None
    nearest: str | None = None
    waits: bool = False
    code: ClassVar[str] = "DF320"

    def message(self) -> str:
        """What is missing, what is there instead, and how to wait for it."""
        lines = [f"operator {self.operator!r}: there is no file or folder {self.path}"]
        if self.nearest:
            lines.append(f"  did you mean {self.nearest}?")
        elif self.parent:
            lines.append(f"  {self.parent} exists, what follows does not")
        if any(c in self.path for c in "*?["):
            lines.append("  help: `files` takes no patterns: name the folder, and give the scanner a file_pattern_regular_exp")
        elif self.waits:
            lines.append("  help: `wait` waits in continuous runs only, a run with --once would never end")
        else:
            lines.append("  help: a continuous run waits for it with the scanner's property wait=true")
        return "\n".join(lines)


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class InputNotFile(ConfigError):
    """A pipe, a socket or a device stands among the files of a splitter."""

    operator: str
    path: str
    code: ClassVar[str] = "DF321"

    def message(self) -> str:
        """Why it cannot be split."""
        return (
            f"operator {self.operator!r}: {self.path} is neither a file nor a folder, and cannot be split at positions\n"
            "  help: copy what comes out of it to a file first"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class ScanFailed(RunError):
    """The scanner's thread ended with an exception, which is this one's cause.

    `path` is what was being scanned, `at` the innermost line (`FILE:LINE in FUNCTION`) where it happened.
    """

    operator: str
    path: str
    error: str
    at: str = ""
    code: ClassVar[str] = "DF322"

    def message(self) -> str:
        """Where, and the exception's own words."""
        return f"operator {self.operator!r}: scanning {self.path} failed: {self.error}" + (f"\n  at {self.at}" if self.at else "")


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileModified(RunError):
    """A file has changed since it was split, and `on_modified` is "fail". `before` and `after`: modification time and length."""

    operator: str
    path: str
    before: str
    after: str
    code: ClassVar[str] = "DF323"

    def message(self) -> str:
        """The file, both of its states, and the other values of `on_modified`."""
        return (
            f"operator {self.operator!r}: {self.path} has changed since it was split\n"
            f"  before  {self.before}\n  now     {self.after}\n"
            '  help: the scanner\'s on_modified="reread" reads such a file again, whole; "ignore" leaves it\n'
            "        for files that are still being written when they are found, give the scanner a min_age"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileGone(RunError):
    """A file vanished when `planned` of its `blocks` blocks had been planned."""

    operator: str
    path: str
    planned: int
    blocks: int
    code: ClassVar[str] = "DF324"

    def message(self) -> str:
        """The file, and how far it had got."""
        return (
            f"operator {self.operator!r}: {self.path} is gone; {self.planned:,} of its {self.blocks:,} blocks had been planned\n"
            '  help: put it back and launch again; or set the splitter\'s on_error="skip" to go on without the rest'
        )
