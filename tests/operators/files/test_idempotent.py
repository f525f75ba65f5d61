"""A window that is run again reads the same blocks of the same files, or says which file has changed; or is told not to mind."""

from __future__ import annotations

import datetime
import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import WindowFailed
from dagflow.launching.launch import launch
from dagflow.ledger import Ledger
from dagflow.local.runner import LocalRunner
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job
from dagflow.testing import run_dag
from operators import BlockReader, RecordWriter
from operators.contexts import FixedBytesReaderContext
from operators.readers.errors import FileChanged, FileGone
from tests.conformance.apps import chain, lines_in

LINES = "".join(f"line {n}\n" for n in range(8))  # 56 bytes


class Dying(LocalRunner):
    """Every job dies: what was planned stays planned."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        future = Future[list[TaskOutcome]]()
        future.set_exception(TasksDied("killed"))
        return future


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text(LINES)
    (folder / "b.txt").write_text("b\n")
    return folder


def application(source: Path, output: Path, **splitter: Any) -> Any:
    return chain(source, sink=RecordWriter(str(output)), block_size=10, **splitter)


def planned(source: Path, output: Path, **splitter: Any) -> Any:
    """An application of which a window has been planned, and not run."""
    made = application(source, output, **splitter)
    with pytest.raises(WindowFailed):
        launch(made, runner=Dying(), window_attempts=1)
    return made


def told_time(ns: int) -> str:
    return f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC):%Y-%m-%d %H:%M:%S}.{ns % 10**9:09d} UTC"


def change(path: Path, text: str) -> os.stat_result:
    """Writes a file anew; what it was before."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_mtime_ns + 10**9, before.st_mtime_ns + 10**9))
    return before


class TestIdempotent:
    def test_a_file_that_has_changed_is_named_by_every_launch_until_it_is_back(self, source: Path, tmp_path: Path) -> None:
        out, file = tmp_path / "out", source / "a.txt"
        made = planned(source, out)
        before = change(file, LINES.replace("line 3", "LINE 3"))
        for _ in range(2):
            with pytest.raises(FileChanged) as caught:
                run_dag(made)
            assert str(caught.value) == (
                f"{file}: the file has changed since its blocks were planned\n"
                f"  planned  56 bytes, modified {told_time(before.st_mtime_ns)}\n"
                f"  found    56 bytes, modified {told_time(before.st_mtime_ns + 10**9)}\n"
                "  help: put the planned file back, or launch with --fresh to plan again; "
                "files must not change while they are read:\n"
                "        write a new file and rename it\n"
                "        (if this one is only ever appended to: -D operator.lines.allow_growth=true)"
            )
            assert lines_in(out).total() == 0
        file.write_text(LINES)
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns))
        run_dag(made)
        assert lines_in(out) == {**{f"line {n}".encode(): 1 for n in range(8)}, b"b": 1}
        assert Ledger.open(str(out)).verify().is_clean

    def test_fresh_goes_on_with_the_file_as_it_is(self, source: Path, tmp_path: Path) -> None:
        made = planned(source, tmp_path / "out")
        change(source / "a.txt", "new\n")
        with pytest.raises(FileChanged):
            run_dag(made)
        run_dag(made, fresh=True)
        assert lines_in(tmp_path / "out") == {b"new": 1, b"b": 1}

    def test_a_file_that_is_gone(self, source: Path, tmp_path: Path) -> None:
        made = planned(source, tmp_path / "out")
        (source / "b.txt").unlink()
        for _ in range(2):
            with pytest.raises(FileGone, match=r"b\.txt: the file is gone"):
                run_dag(made)


class TestNotIdempotent:
    def run(self, source: Path, tmp_path: Path, text: str | None, **reader: Any) -> tuple[dict[bytes, int], dict[str, int]]:
        """Plans, changes the file, runs: the lines and what the reader counted. The planned window only."""
        made = chain(
            source,
            sink=RecordWriter(str(tmp_path / "out")),
            reader=BlockReader(**reader),
            block_size=10,
            idempotent=False,
        )
        with pytest.raises(WindowFailed):
            launch(made, runner=Dying(), window_attempts=1)
        if text is None:
            (source / "a.txt").unlink()
        else:
            change(source / "a.txt", text)
        report = run_dag(made, max_windows=1) if text is None else launch(made, runner="local", max_windows=1).report
        return dict(lines_in(tmp_path / "out")), report.operators["lines"].counters

    @pytest.fixture(autouse=True)
    def planned_window_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the next window from reading the changed file again."""
        monkeypatch.setattr("operators.files.splitter_input.FileSplitterInput._wants_modified", lambda *_: False)

    def test_other_bytes_of_the_same_length(self, source: Path, tmp_path: Path) -> None:
        lines, counters = self.run(source, tmp_path, LINES.replace("line 3", "LINE 3"))
        assert lines == {**{f"line {n}".encode(): 1 for n in range(8) if n != 3}, b"LINE 3": 1, b"b": 1}
        assert "blocks_beyond_end" not in counters

    @pytest.mark.parametrize("kept", [0, 1, 9, 10, 11, 21, 35, 55])
    def test_a_file_that_has_become_shorter(self, source: Path, tmp_path: Path, kept: int) -> None:
        lines, counters = self.run(source, tmp_path, LINES[:kept])
        expected = [line.encode() for line in LINES[:kept].split("\n") if line]
        assert lines == {**dict.fromkeys(expected, 1), b"b": 1}
        assert counters.get("blocks_beyond_end", 0) == sum(start >= kept for start in range(0, 56, 10))

    def test_a_file_that_has_grown_is_read_as_far_as_it_was_planned(self, source: Path, tmp_path: Path) -> None:
        lines, _ = self.run(source, tmp_path, LINES + "more\n" * 10)
        assert lines == {**{f"line {n}".encode(): 1 for n in range(8)}, b"b": 1}

    def test_a_file_that_is_gone_is_empty(self, source: Path, tmp_path: Path) -> None:
        lines, counters = self.run(source, tmp_path, None)
        assert lines == {b"b": 1}
        assert counters["blocks_beyond_end"] == 6

    def test_a_file_that_shrinks_while_it_is_read(self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from operators.contexts.source import Source

        read = Source.read

        def cut(self: Source, size: int) -> bytes:
            os.truncate(source / "a.txt", 30)
            return read(self, size)

        monkeypatch.setattr(Source, "read", cut)
        lines, counters = self.run(source, tmp_path, LINES)
        assert counters["blocks_cut_short"] == 1
        assert set(lines) <= {*(f"line {n}".encode() for n in range(8)), b"b", b"li"}

    def test_records_of_fixed_length(self, source: Path, tmp_path: Path) -> None:
        _, counters = self.run(source, tmp_path, LINES[:21], reader_context=FixedBytesReaderContext(length=7))
        assert counters["blocks_beyond_end"] == 3


def test_of_a_window_that_runs_at_once_nothing_is_different(source: Path, tmp_path: Path) -> None:
    for idempotent in (True, False):
        run_dag(application(source, tmp_path / str(idempotent), idempotent=idempotent))
    assert lines_in(tmp_path / "True") == lines_in(tmp_path / "False")
