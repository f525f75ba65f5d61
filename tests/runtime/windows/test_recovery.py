"""Launches that find something unexpected: outputs copied, moved or half gone, logs lost or damaged, a full disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, ReaderRecord, State
from dagflow.errors import FileInTheWay, FileLost, OutputInInput, OutputOrphaned, RecordDamaged, StagedFileDamaged
from dagflow.launching.launch import launch
from dagflow.runtime.run_folder import layout
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.windows.commit import decide, roll_forward
from dagflow.storage import MemoryStore
from dagflow.testing import run_dag
from operators import RecordWriter, TimeBasedDirectoryScanner
from operators.files.errors import InputMissing
from tests.conformance.apps import chain, left_over, lines_in, written
from tests.runtime.run_folder.test_window_log import staged

LINES = {b"a": 1, b"b": 1}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "x").write_text("a\nb\n")
    return folder


def run(source: Path, output: Path, **options: Any) -> Any:
    return run_dag(chain(source, sink=RecordWriter(str(output))), **options)


def undo(output: Path, log: Path | None = None) -> None:
    """Makes a window look as if its launch had died right after the decision."""
    (file,) = written(output)
    decided = ((log or output / "_dagflow") / "decision" / "0000000000").read_text()
    attempt = decided.split('"attempt":"')[1].split('"')[0]
    (output / "_dagflow" / "staging").mkdir(exist_ok=True)
    file.rename(output / "_dagflow" / "staging" / os.path.basename(attempt))
    ((log or output / "_dagflow") / "done" / "0000000000").unlink()


class TestStartingOver:
    def test_removes_nothing_of_the_users_from_a_run_folder_that_the_user_named(self, source: Path, tmp_path: Path) -> None:
        project = tmp_path / "project"
        for name in ("notes.txt", "plan/mine.txt", "events/party.txt", "src/app.py", ".git/config", "reports/2026.txt"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("precious")
        before = sorted(str(p.relative_to(project)) for p in project.rglob("*.*") if p.is_file() and p.name != ".lock")
        for fresh in (True, False, True):
            run(source, tmp_path / "out", run_folder=str(project), fresh=fresh)
        after = {str(p.relative_to(project)) for p in project.rglob("*.*") if p.is_file() and p.suffix != ".jsonl"}
        assert after - {".lock"} == set(before)
        assert lines_in(tmp_path / "out") == LINES

    def test_on_a_copy_leaves_the_original_alone(self, source: Path, tmp_path: Path) -> None:
        out, copy = tmp_path / "out", tmp_path / "copy"
        run(source, out)
        shutil.copytree(out, copy)
        (source / "x").write_text("c\n")
        run(source, copy, fresh=True)
        assert lines_in(out) == LINES
        assert lines_in(copy) == {b"c": 1}
        (source / "x").write_text("d\n")
        shutil.move(copy, tmp_path / "moved")
        run(source, tmp_path / "moved", fresh=True)
        assert lines_in(tmp_path / "moved") == {b"d": 1}

    def test_works_on_a_damaged_log(self, source: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(source, out)
        (out / "_dagflow" / "decision" / "0000000000").write_text('{"format": 1, "win')
        (out / "_dagflow" / "plan" / "0000000001").write_text("{")
        with pytest.raises(RecordDamaged, match="--fresh"):
            run(source, out)
        report = run(source, out, fresh=True)
        assert report.windows == 1
        assert len(report.warnings) == 1
        assert "window 0 cannot be read: files that only they name stay" in report.warnings[0]

    def test_with_the_run_folder_elsewhere_cleans_the_copy(self, source: Path, tmp_path: Path) -> None:
        out, copy, log = tmp_path / "out", tmp_path / "copy", str(tmp_path / "log")
        run(source, out, run_folder=log)
        shutil.copytree(out, copy)
        run(source, copy, run_folder=log, fresh=True)
        assert lines_in(out) == lines_in(copy) == LINES


class TestDecidedAndNotDone:
    def test_files_appear(self, source: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(source, out)
        undo(out)
        report = run(source, out)
        assert (report.windows, report.warnings) == (0, [])
        assert lines_in(out) == LINES
        assert left_over(out) == []

    @pytest.mark.parametrize("copied", [False, True])
    def test_in_an_output_that_was_moved_or_copied(self, source: Path, tmp_path: Path, copied: bool) -> None:
        out, there = tmp_path / "out", tmp_path / "there"
        run(source, out)
        undo(out)
        if copied:
            shutil.copytree(out, there)
        else:
            out.rename(there)
        report = run(source, there)
        assert (report.windows, report.warnings) == (0, [])
        assert lines_in(there) == LINES
        assert not copied or len(left_over(out)) == 1, "the original's attempt file is the original's"

    def test_in_an_output_that_the_application_has_left(self, source: Path, tmp_path: Path) -> None:
        out, log = tmp_path / "out", tmp_path / "log"
        run(source, out, run_folder=str(log))
        undo(out, log)
        run(source, tmp_path / "other", run_folder=str(log))
        assert lines_in(out) == LINES, "it still belongs to the run"

    def test_a_file_that_a_consumer_took_away_is_no_obstacle(self, source: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(source, out)
        written(out)[0].unlink()
        (out / "_dagflow" / "done" / "0000000000").unlink()
        report = run(source, out)
        assert report.windows == 0
        assert len(report.warnings) == 1
        assert report.warnings[0].startswith("window 0: part-000000-0000 is no longer in")
        assert run(source, out).warnings == []

    def test_files_appear_although_the_input_is_gone(self, source: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(source, out)
        undo(out)
        shutil.rmtree(source)
        with pytest.raises(InputMissing):
            run(source, out)
        assert lines_in(out) == LINES


HEARD: list[object] = []


@attrs.define
class Numbers(InputOperator):
    """Acknowledges what is committed."""

    next = State(0)
    output = OutputPort[int]()

    def setup(self, context: Any) -> None:
        self.link = "open"
        self.context = context

    def emit_tuples(self) -> None:
        if self.next == 0:
            self.context.note("noted")
            self.output.emit(self.next)
            self.next += 1

    def committed(self, window: int) -> None:
        HEARD.append((window, self.link))

    def show(self, lines: list[str], window: int) -> None:
        HEARD.append(lines)


@attrs.define
class Texts(Operator):
    input = InputPort[int]()
    output = OutputPort[str]()

    @input.process
    def each(self, number: int) -> None:
        self.output.emit(str(number))


def test_operators_of_the_driver_hear_of_what_was_decided_before(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        numbers, texts = dag.add_operator("numbers", Numbers()), dag.add_operator("texts", Texts())
        sink = dag.add_operator("sink", RecordWriter(str(tmp_path / "out")))
        dag.add_stream("s", numbers.output, texts.input)
        dag.add_stream("t", texts.output, sink.input)

    HEARD.clear()
    run_dag(populate_dag)
    assert HEARD == [(0, "open"), ["noted"]]
    HEARD.clear()
    (tmp_path / "out" / "_dagflow" / "done" / "0000000000").unlink()
    run_dag(populate_dag)
    assert HEARD == [(0, "open"), ["noted"]]


class TestLostLog:
    def test_is_refused_not_begun_anew(self, source: Path, tmp_path: Path) -> None:
        out, log = tmp_path / "out", tmp_path / "log"
        run(source, out, run_folder=str(log))
        shutil.rmtree(log)
        for fresh in (False, True, False):
            with pytest.raises(OutputOrphaned) as caught:
                run(source, out, run_folder=str(log), fresh=fresh)
            assert (caught.value.folder, caught.value.run_folder) == (str(out), str(log))
        assert lines_in(out) == LINES

    def test_fresh_goes_on_once_the_output_is_empty(self, source: Path, tmp_path: Path) -> None:
        out, log = tmp_path / "out", tmp_path / "log"
        run(source, out, run_folder=str(log))
        shutil.rmtree(log)
        written(out)[0].unlink()
        with pytest.raises(OutputOrphaned, match="--fresh"):
            run(source, out, run_folder=str(log))
        assert run(source, out, run_folder=str(log), fresh=True).windows == 1
        assert run(source, out, run_folder=str(log)).windows == 0

    def test_of_the_first_output_is_noticed_at_the_second(self, source: Path, tmp_path: Path) -> None:
        def two(dag: DAG, conf: Any) -> None:
            numbers, texts = dag.add_operator("numbers", Numbers()), dag.add_operator("texts", Texts())
            sinks = [dag.add_operator(name, RecordWriter(str(tmp_path / name))) for name in ("one", "two")]
            dag.add_stream("s", numbers.output, texts.input)
            dag.add_stream("t", texts.output, *(sink.input for sink in sinks))

        run_dag(two)
        shutil.rmtree(tmp_path / "one")
        with pytest.raises(OutputOrphaned):
            run_dag(two)

    def test_a_launch_that_died_before_its_first_window_has_lost_nothing(self, source: Path, tmp_path: Path) -> None:
        out, log = tmp_path / "out", str(tmp_path / "log")
        with pytest.raises(ValueError, match="early"):
            launch(
                chain(source, sink=RecordWriter(str(out))),
                runner="local",
                run_folder=log,
                subscribers=[lambda event: (_ for _ in ()).throw(ValueError("early"))],
            )
        assert run(source, out, run_folder=log).windows == 1


class TestNames:
    def names(self, tmp_path: Path, *wanted: str, window: int = 0) -> list[str]:
        from dagflow.runtime.run_folder.reports import TaskReport
        from dagflow.runtime.run_folder.window_log import WindowLog
        from dagflow.runtime.stage.program import TaskSpec
        from dagflow.storage import MemoryStore
        from tests.runtime.run_folder.test_window_log import plan

        log = WindowLog(MemoryStore())
        files = [staged(tmp_path, name, f"{window:010d}.r.{n}") for n, name in enumerate(wanted)]
        spec = TaskSpec(window=window, epoch="r", stage="s0", partition=0, partitions=1)
        log.report(spec.report_name, TaskReport(spec.name, 0, {}, files))
        decision = decide(log, plan(window), "r", [spec], 0.0)
        assert roll_forward(log, decision, {}, durable=True).taken_away == []
        assert left_over(tmp_path) == []
        return [file.name for file in decision.files]

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        assert self.names(tmp_path, "a", "a/b", "a/c.txt", "d/e", "d") == [
            "a",
            "a-000000-0000/b",
            "a-000000-0000/c.txt",
            "d/e",
            "d-000000-0000",
        ]
        assert self.names(tmp_path, "a/b", "d/e", "d/e/f.gz", "d", "g.d/h", window=3) == [
            "a-000003-0000/b",
            "d/e-000003-0000",
            "d/e-000003-0001/f.gz",
            "d-000003-0000",
            "g.d/h",
        ]

    def test_case_differs_or_not_as_the_file_system_says(self, tmp_path: Path) -> None:
        assert self.names(tmp_path, "a", "A") == ["a", "A"]
        folding = tmp_path / "folding"
        (folding / "_DAGFLOW").mkdir(parents=True)  # what a file system without cases would find
        assert self.names(folding, "a.txt", "A.txt", "B/x", "b/X", "b") == [
            "a.txt",
            "A-000000-0000.txt",
            "B/x",
            "b/X-000000-0000",
            "b-000000-0000",
        ]

    def test_an_application_with_such_names_runs(self, source: Path, tmp_path: Path) -> None:
        class Own(RecordWriter[ReaderRecord[str]]):
            def get_file_name(self, record: ReaderRecord[str]) -> str:
                return "n" if record.record == "a" else "n/m"

        run_dag(chain(source, sink=Own(str(tmp_path / "out"))))
        assert lines_in(tmp_path / "out") == LINES


@pytest.mark.parametrize("again", [False, True])
def test_an_attempt_that_vanishes_right_after_the_decision_is_an_error(tmp_path: Path, again: bool) -> None:
    file = StagedFile("o", str(tmp_path), "x", str(tmp_path / "_dagflow/staging/0"), 1, 1)
    decision = Decision(window=0, round="", files=[file], operators={}, notes={}, states={})
    with pytest.raises(FileLost):  # no ledger says that it was there
        roll_forward(WindowLog(MemoryStore()), decision, {}, durable=False, again=again)


def test_a_file_that_a_killed_attempt_left_goes_though_its_window_is_no_longer_recorded(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in "xyz":
        (source / name).write_text("a\n")
        run(source, out, retain_windows=1)
    assert WindowLog.open(str(out / "_dagflow"), False).windows("done") == [1, 2], "the window before the one that is kept"
    name = layout.STAGED.name(window=0, attempt="s0-0000-1")
    (out / "_dagflow" / name).parent.mkdir(exist_ok=True)
    (out / "_dagflow" / name).write_text("of a killed attempt")
    run(source, out, retain_windows=1)
    assert not (out / "_dagflow" / name).exists()


class TestFilesOfADecision:
    """The state of the disk where the files of a window should be that was decided, and not rolled forward."""

    def undone(self, source: Path, out: Path) -> Path:
        """A decided window without ledger entry or mark; where its file was written."""
        run(source, out)
        undo(out)
        for kind in ("ledger", "ledger-hint"):
            shutil.rmtree(out / "_dagflow" / kind)
        (staged_file,) = (out / "_dagflow" / "staging").iterdir()
        return staged_file

    def test_that_is_lost_is_no_file_that_was_taken_away(self, source: Path, tmp_path: Path) -> None:
        staged_file = self.undone(source, tmp_path / "out")
        staged_file.rename(tmp_path / "aside")
        for _ in range(2):
            with pytest.raises(FileLost, match=r"part-000000-0000 is not there, nor is it where") as lost:
                run(source, tmp_path / "out")
        (tmp_path / "aside").rename(lost.value.path)
        assert (run(source, tmp_path / "out").windows, lines_in(tmp_path / "out")) == (0, LINES)

    @pytest.mark.parametrize("content", [b"precious\n", b"a\nc\n"])
    @pytest.mark.parametrize("is_staged", [True, False])
    def test_another_file_of_its_name_is_not_replaced(
        self, source: Path, tmp_path: Path, content: bytes, is_staged: bool
    ) -> None:
        staged_file = self.undone(source, tmp_path / "out")
        target = tmp_path / "out" / "part-000000-0000"
        target.write_bytes(content)
        if not is_staged:
            staged_file.rename(tmp_path / "aside")
        with pytest.raises(FileInTheWay, match="nothing was replaced"):
            run(source, tmp_path / "out")
        assert target.read_bytes() == content
        target.unlink()
        if not is_staged:
            (tmp_path / "aside").rename(staged_file)
        run(source, tmp_path / "out")
        assert lines_in(tmp_path / "out") == LINES

    def test_the_same_file_in_both_places_is_one(self, source: Path, tmp_path: Path) -> None:
        staged_file = self.undone(source, tmp_path / "out")
        shutil.copy(staged_file, tmp_path / "out" / "part-000000-0000")
        run(source, tmp_path / "out")
        assert (lines_in(tmp_path / "out"), left_over(tmp_path / "out")) == (LINES, [])

    @pytest.mark.parametrize("content", [b"", b"a\nc\n", b"a\nb\nc\n"])
    def test_a_staged_file_that_was_changed_is_not_published(self, source: Path, tmp_path: Path, content: bytes) -> None:
        staged_file = self.undone(source, tmp_path / "out")
        whole = staged_file.read_bytes()
        staged_file.write_bytes(content)
        with pytest.raises(StagedFileDamaged):
            run(source, tmp_path / "out")
        assert written(tmp_path / "out") == []
        staged_file.write_bytes(whole)
        run(source, tmp_path / "out")
        assert lines_in(tmp_path / "out") == LINES


class TestBeforeAnythingIsMade:
    def test_a_missing_input_is_found(self, tmp_path: Path) -> None:
        with pytest.raises(InputMissing) as caught:
            run(tmp_path / "nowhere", tmp_path / "out")
        assert caught.value.operator == "files"
        assert not (tmp_path / "out").exists()

    def test_a_missing_input_that_is_waited_for_is_not_missing(self, tmp_path: Path) -> None:
        application = chain(
            tmp_path / "nowhere", sink=RecordWriter(str(tmp_path / "out")), scanner=TimeBasedDirectoryScanner(wait=True)
        )
        running = launch(application, runner="local", once=False, window=0.01)
        running.stop()
        assert running.wait(20).status == "interrupted"

    @pytest.mark.parametrize("inside", ["in", "in/out", "in/deep/er", "link/out"])
    def test_an_output_inside_the_input_is_refused(self, source: Path, tmp_path: Path, inside: str) -> None:
        (tmp_path / "link").symlink_to(source)
        with pytest.raises(OutputInInput) as caught:
            run(source, tmp_path / inside)
        assert (caught.value.path, caught.value.output) == (str(source), str(tmp_path / inside))
        assert os.listdir(source) == ["x"]
        with pytest.raises(OutputInInput, match="run folder"):
            run(source, tmp_path / "out", run_folder=str(tmp_path / inside))

    def test_an_output_beside_an_input_of_a_similar_name_is_not_in_it(self, source: Path, tmp_path: Path) -> None:
        run(source, tmp_path / "in2")
        assert lines_in(tmp_path / "in2") == LINES


def test_what_a_power_cut_has_left_after_a_launch_had_ended_is_tidied_up(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(source, out)
    (source / "z").write_text("d\n")
    run(source, out)
    marks = sorted((out / "_dagflow" / "done").iterdir())
    assert len(marks) > 1
    marks[0].write_bytes(b"")
    (out / "_dagflow" / "ledger-hint" / ".tmp-1").touch()  # the disk had not noted that it was removed
    os.utime(out / "_dagflow" / ".lock", (1e9, 1e9))
    run(source, out)
    assert not verify_run_folder(str(out / "_dagflow")).problems
    assert not list(out.rglob(".tmp-*"))
