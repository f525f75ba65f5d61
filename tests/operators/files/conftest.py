"""Splitters at work, with a clock that stands still until it is told otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import FileBlockMetadata, FileMetadata
from dagflow.testing import FakeClock, OperatorTask


@attrs.define
class Planned:
    """The files and blocks of one window."""

    files: list[FileMetadata]
    blocks: list[FileBlockMetadata]
    errors: list[Any]

    @property
    def names(self) -> list[str]:
        return [f.file_name for f in self.files]

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.files), len(self.blocks)

    @property
    def spans(self) -> list[tuple[str, int, int]]:
        return [(os.path.basename(b.file_path), b.start, b.stop) for b in self.blocks]


class SplitterTask(OperatorTask):
    """One launch of an application with one splitter."""

    def __init__(self, operator: Any, **options: Any) -> None:
        super().__init__(operator, name="splitter", **{"clock": clock_of_tests(), "slots": 1, **options})

    def end(self) -> Planned:
        """End the window."""
        emitted = self.end_window()
        return Planned(emitted["files_metadata_output"], emitted["blocks_metadata_output"], emitted["errors"])

    def window(self) -> Planned:
        """One window: until it is closed, or the scanner has nothing more for now."""
        self.begin_window()
        while not self.context.signals.window_closed:
            if not self.emit_tuples() and self._is_idle():
                break
        return self.end()

    def _is_idle(self) -> bool:
        operator: Any = self.operator
        scanner = getattr(operator, "scanner", None)
        return operator.is_exhausted() or (scanner is not None and scanner.is_idle())

    def all_windows(self) -> list[Planned]:
        """Windows until the operator is exhausted."""
        planned = [self.window()]
        while not self.operator.is_exhausted():  # type: ignore[attr-defined]
            planned.append(self.window())
        return planned


def clock_of_tests() -> FakeClock:
    return FakeClock(now=2_000_000_000.0)


@pytest.fixture
def drive() -> Iterator[Callable[..., SplitterTask]]:
    """Sets up splitters, and stops their scanners when the test ends."""
    with ExitStack() as stack:

        def make(operator: Any, **options: Any) -> SplitterTask:
            task = SplitterTask(operator, **options)
            stack.enter_context(task)
            return task

        yield make


@pytest.fixture
def clock() -> FakeClock:
    return clock_of_tests()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The test data of Apache Apex Malhar's splitter: 12 files of two lines, 11 bytes each."""
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(12):
        (folder / f"file{n}.txt").write_bytes(f"f{n:02d}l0\nf{n:02d}l1".encode())
    return folder
