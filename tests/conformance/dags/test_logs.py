"""Log records of operators have run, window, operator and task, wherever the operator runs."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import InputPort, LogFields, Operator, OutputPort, ReaderRecord
from dagflow.runtime.events import Event, RunStarted
from dagflow.testing import Collector, run_dag
from operators import Filter, Map
from tests.conformance.apps import chain


@contextlib.contextmanager
def log_file(path: str) -> Iterator[logging.Logger]:
    """A logger that writes to a file, with the fields."""
    handler = logging.FileHandler(path)
    handler.addFilter(LogFields())
    handler.setFormatter(logging.Formatter("%(run)s %(window)s %(operator)s %(task)s %(message)s"))
    logger = logging.getLogger("user")
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        logger.removeHandler(handler)
        handler.close()


@attrs.define
class Logs(Operator):
    """Logs wherever its code is called."""

    scope = "window"

    path: str
    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()

    def setup(self, context: Any) -> None:
        self._log("setup")

    def begin_window(self, window: int) -> None:
        self._log("begin")

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self._log(line.record)
        self.output.emit(line.record)
        self._log("after emit")

    def end_window(self) -> None:
        self._log("end")

    def committed(self, window: int) -> None:
        self._log("committed")

    def _log(self, text: str) -> None:
        with log_file(self.path) as log:
            log.warning(text)


def test_lines_say_where_they_come_from(runner: str, tmp_path: Path) -> None:
    source, path, events = tmp_path / "a.txt", str(tmp_path / "log"), list[Event]()
    source.write_text("a\n")

    def keep(text: str) -> bool:
        with log_file(path) as log:
            log.warning("kept %s", text)
        return True

    run_dag(chain(source, Logs(path), Filter(keep), sink=Collector[str]()), runner=runner, subscribers=[events.append])
    run = next(event.launch for event in events if isinstance(event, RunStarted))
    assert Path(path).read_text().splitlines() == [
        f"{run} 0 m0 s0-0000 setup",
        f"{run} 0 m0 s0-0000 begin",
        f"{run} 0 m0 s0-0000 a",
        f"{run} 0 m0 s0-0000 after emit",
        f"{run} 0 m1 s0-0000 kept a",
        f"{run} 0 m0 s0-0000 end",
        f"{run} 0 m0 None committed",
    ]


def test_workers_print_and_log_to_one_place(worker_runner: str, tmp_path: Path) -> None:
    """Two pipes would be read by two threads, which pass on parts of lines between each other."""
    (tmp_path / "a.txt").write_text("a\n")
    seen = Collector[bool]()
    one_place = Map(lambda line: os.path.sameopenfile(1, 2))
    run_dag(chain(tmp_path / "a.txt", one_place, sink=seen), runner=worker_runner)
    assert seen.records == [True]
