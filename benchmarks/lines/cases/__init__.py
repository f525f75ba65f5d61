"""The cases by name: each makes its `Case`s for a `Place`, just before they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.lines.cases.commands import commands
from benchmarks.lines.cases.filters import by_function, small_files, vectorised
from benchmarks.lines.cases.memory import memory
from benchmarks.lines.cases.scanner import scanner
from benchmarks.lines.cases.slices import slices
from benchmarks.lines.cases.windows import windows
from benchmarks.lines.place import Place
from benchmarks.rounds import Case

CASES: dict[str, Callable[[Place], Iterator[Case]]] = {
    "vectorised": vectorised,
    "function": by_function,
    "small": small_files,
    "slices": slices,
    "windows": windows,
    "memory": memory,
    "scanner": scanner,
    "commands": commands,
}
