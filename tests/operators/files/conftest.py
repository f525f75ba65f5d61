"""A driver that calls splitters as the window loop does, with a clock that stands still until it is told otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import FileBlockMetadata, FileMetadata, OperatorContext
from dagflow.model.operator.state import freeze, renew, thaw
from dagflow.model.types.plain_data import dumps
from dagflow.state.task_states import encoded_states, restore_states


class FakeClock:
    def __init__(self, now: float = 2_000_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@attrs.define
class Emitted:
    """What a window held."""

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


class Driver:
    """One launch of an application with one splitter."""

    def __init__(self, operator: Any, *, state: Any = None, check: bool = True, **context: Any) -> None:
        self.operator = operator
        self.context = OperatorContext(name="splitter", **{"clock": FakeClock(), **context})
        self.files: list[Any] = []
        self.blocks: list[Any] = []
        self.errors: list[Any] = []
        self.windows = 0
        ports = (("files_metadata_output", self.files), ("blocks_metadata_output", self.blocks), ("errors", self.errors))
        for name, into in ports:
            port = getattr(operator, name)
            port.emit, port.emit_all, port.is_connected = into.append, into.extend, True
        if check:
            operator.check()
        restore_states(operator, state or {})
        try:
            operator.setup(self.context)
        except BaseException:
            operator.teardown()
            raise
        freeze(operator)

    @property
    def counters(self) -> dict[str, int]:
        return self.context.counters

    def begin(self) -> None:
        self.context.window = self.windows
        self.context.window_closed = False
        self.windows += 1
        for emitted in (self.files, self.blocks, self.errors):
            emitted.clear()
        renew(self.operator)
        self.operator.begin_window(self.context.window)

    def end(self) -> Emitted:
        self.operator.end_window()
        return Emitted(list(self.files), list(self.blocks), list(self.errors))

    def window(self) -> Emitted:
        """One window: until it is closed, or there is nothing more for now."""
        self.begin()
        while not self.context.window_closed:
            before = len(self.files) + len(self.blocks)
            self.operator.emit_tuples()
            if len(self.files) + len(self.blocks) == before and self._nothing_comes():
                break
        return self.end()

    def _nothing_comes(self) -> bool:
        scanner = getattr(self.operator, "scanner", None)
        return self.operator.is_exhausted() or (scanner is not None and scanner.is_idle())

    def all_windows(self) -> list[Emitted]:
        """Windows until the operator is exhausted."""
        found = [self.window()]
        while not self.operator.is_exhausted():
            found.append(self.window())
        return found

    def state(self) -> dict[str, Any]:
        """What would be saved with the window's plan, after a journey through its file."""
        found: dict[str, Any] = json.loads(dumps(encoded_states(self.operator, "splitter")))
        return found

    def close(self) -> None:
        thaw(self.operator)
        self.operator.teardown()


@pytest.fixture
def drive() -> Iterator[Callable[..., Driver]]:
    """Makes drivers, and stops their scanners when the test ends."""
    made: list[Driver] = []

    def make(operator: Any, **context: Any) -> Driver:
        driver = Driver(operator, **context)
        made.append(driver)
        return driver

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The original's test data: 12 files of two lines, 11 bytes each."""
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(12):
        (folder / f"file{n}.txt").write_bytes(f"f{n:02d}l0\nf{n:02d}l1".encode())
    return folder
