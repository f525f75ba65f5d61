"""The base of sinks that write files: the folder, the names of files, and when a file is full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from dagflow import Operator, OperatorContext, WindowState
from dagflow.config import Bytes, one_of, size_of
from operators.problems import all_problems
from operators.sinks.tables.modes import FILE_MODES, FileMode, behind_current

KEPT_SNAPSHOTS = 2
"""The number of replaced snapshots that are kept, unless a sink says otherwise."""


@attrs.define
class FileSink(Operator):
    """A sink that writes files in the folder `path` (a path or URL), each of which appears whole when its window is decided.

    Each partition that has records writes a file per window, `part-WINDOW-PARTITION` and `suffix`; when it is full, the next one
    is `…_1`. A name that is in use, by an earlier window or another partition, gets the window and a number behind it.

    Attributes:
        path: the folder, by path or URL.
        mode: `append` adds the files of each window. `replace` makes them the whole content: readers of `PATH/current` see the
            files of the newest window or those of the one before, never both. A window without rows changes nothing. `changelog`
            adds the changes of each window, with their kind in the column `_change_type`: `insert`, `delete`, or
            `update_preimage` and `update_postimage`. None: append where rows stay; where they may be taken back, keep the
            current result as `replace` does.
        keep_replaced: with `replace`, how many earlier snapshots stay for readers that have opened them; None: 2.
        suffix: the end of the files' names.
        max_file_rows: a file with so many rows is full; None: never.
        max_file_bytes: a file is full as soon as it has so many bytes; None: never. What is counted, each sink says.
        max_open_files: how many files a task keeps open at once.
        compression, compression_level: how files are packed, one of `compressions`; None: the level that the codec takes by
            itself.
    """

    compressions: ClassVar[Mapping[str, range]] = {"none": range(0)}  # with their levels
    may_write_changes: ClassVar[bool] = False

    path: str = attrs.field(converter=str)
    mode: FileMode | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(one_of(FILE_MODES)))
    keep_replaced: int | None = attrs.field(default=None, kw_only=True)
    suffix: str = attrs.field(default="", kw_only=True, validator=attrs.validators.instance_of(str))
    max_file_rows: int | None = attrs.field(default=None, kw_only=True)
    max_file_bytes: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    max_open_files: int = attrs.field(default=100, kw_only=True, validator=attrs.validators.ge(1))
    compression: str = attrs.field(default="none", kw_only=True)
    compression_level: int | None = attrs.field(default=None, kw_only=True)

    part_name = WindowState("")

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if not self.path:
                problems.append("path is empty: name the output folder")
            problems.extend(self._snapshot_problems())
            if self.mode == "changelog" and not self.may_write_changes:
                problems.append("mode 'changelog' is for sinks of columns, such as JsonLinesWriter: a line has no place for it")
            if "/" in self.suffix:
                problems.append(f"suffix is {self.suffix!r}: it cannot name a folder")
            for name in ("max_file_rows", "max_file_bytes"):
                value = getattr(self, name)
                if value is not None and value < 1:
                    problems.append(f"{name} is {value}, and must be at least 1 (leave it out for no limit)")
            levels = self.compressions.get(self.compression)
            if levels is None:
                problems.append(f"compression is {self.compression!r}, and must be one of {', '.join(self.compressions)}")
            elif self.compression_level is not None and self.compression_level not in levels:
                have = f"levels {levels.start} to {levels.stop - 1}" if levels else "no levels"
                problems.append(f"compression_level is {self.compression_level}, but {self.compression} has {have}")

    def output_folders(self) -> list[str]:
        """Return the folder `path`."""
        return [self.path]

    def behind_current(self) -> tuple[Operator, Operator] | None:
        """Return the operator that has all rows that stand, and this sink replacing its content by them."""
        return behind_current(self, self.mode)

    def replaces_rows(self) -> bool:
        """Return True for mode `replace`."""
        return self.mode == "replace"

    def content_properties(self) -> tuple[str, ...]:
        """Return the mode."""
        return ("mode",)

    def kept_snapshots(self) -> int | None:
        """Return how many replaced snapshots are kept; None where files are added, or a table says which of them count."""
        if self.mode != "replace" or not self.output_folders():
            return None
        return KEPT_SNAPSHOTS if self.keep_replaced is None else self.keep_replaced

    def _snapshot_problems(self) -> list[str]:
        if self.keep_replaced is None:
            return []
        if self.kept_snapshots() is None:
            return ["keep_replaced is of no use here: it is for sinks of files with mode 'replace'"]
        return [] if self.keep_replaced >= 1 else [f"keep_replaced is {self.keep_replaced}, and must be at least 1"]

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which opens files."""
        self._context = context

    def begin_window(self, window: int) -> None:
        """Name the window's file."""
        self.part_name = f"part-{window:06d}-{self._context.partition:04d}{self.suffix}"


DIGITS = 6
"""Of the numbers of part files of tables: read in the order of their names, they are in that in which they were written."""


def numbered(name: str, number: int, suffix: str, digits: int = 1) -> str:
    """Return the name of the file that follows when `name`, and `number - 1` more, are full. `suffix` stays behind the number.

    With `digits`, names are in the order of their numbers.

    >>> numbered("part-000000-0000.v1.csv", 1, ".v1.csv", 6), numbered("2026/errors.txt", 2, ""), numbered("a.b/all", 1, "")
    ('part-000000-0000_000001.v1.csv', '2026/errors_2.txt', 'a.b/all_1')
    """
    if not number:
        return name
    if suffix and name.endswith(suffix):
        return f"{name[: -len(suffix)]}_{number:0{digits}d}{suffix}"
    folder, slash, last = name.rpartition("/")
    stem, dot, extension = last.rpartition(".") if "." in last else (last, "", "")
    return f"{folder}{slash}{stem}_{number:0{digits}d}{dot}{extension}"
