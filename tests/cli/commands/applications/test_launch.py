from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.runtime.events import OperatorProgress
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.run_view import RunView
from tests.cli.conftest import LINE_FILTER, Answer
from tests.golden.compare import Golden

Dagflow = Callable[..., Answer]
Write = Callable[..., None]
GIVEN = ["-D", "input=logs", "-D", "output=out", "--runner", "local"]

FAILS_HALFWAY = """
from operators import BlockReader, FileSplitterInput, Map, RecordWriter

def number(record):
    return str(int(record.record))

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    numbers = dag.add_operator("numbers", Map(number))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, numbers.input)
    dag.add_stream("all", numbers.output, writer.input)
"""


def times_taken_out(text: str) -> str:
    """Replace the parts of a text that differ from run to run."""
    text = re.sub(r"[\d.]+ (ms|s)\b", "N s", text)
    text = re.sub(r"sha256:[0-9a-f]+…", "sha256:H…", text)
    return re.sub(r"\([\d.]+ [KM]?i?B/s\)", "(N B/s)", text)


@pytest.fixture
def logs(write: Write) -> None:
    write("logs/a.txt", "one\n.two\nthree\n")
    write("logs/b.txt", "four\n.five")


@pytest.mark.usefixtures("logs")
def test_the_report_goes_to_standard_output_and_progress_to_standard_error(
    dagflow: Dagflow, golden: Golden, tmp_path: Path
) -> None:
    answer = dagflow("launch", LINE_FILTER, *GIVEN)
    assert answer.code == 0
    golden("cli_launch_out.txt", times_taken_out(answer.out))
    golden("cli_launch_err.txt", times_taken_out(answer.err))
    written = [file.read_text() for file in (tmp_path / "out").glob("part-*")]
    assert sorted("".join(written).split()) == ["four", "one", "three"]


@pytest.mark.usefixtures("logs")
def test_a_second_launch_finds_nothing_new(dagflow: Dagflow) -> None:
    dagflow("launch", LINE_FILTER, *GIVEN)
    answer = dagflow("launch", LINE_FILTER, *GIVEN)
    assert answer.code == 0
    assert "windows  0 (nothing new)" in answer.out
    assert "resumes with window 1" in answer.err
    again = dagflow("launch", LINE_FILTER, *GIVEN, "--fresh")
    assert "windows  1 (number 0)" in again.out
    assert "starting over" in again.err


@pytest.mark.usefixtures("logs")
def test_the_report_as_json(dagflow: Dagflow) -> None:
    answer = dagflow("launch", LINE_FILTER, *GIVEN, "--json")
    report = json.loads(answer.out)
    assert (report["status"], report["windows"], report["operators"]["keep"]["records_out"]) == ("done", 1, 3)


@pytest.mark.usefixtures("logs")
def test_progress_none_says_nothing(dagflow: Dagflow) -> None:
    assert dagflow("launch", LINE_FILTER, *GIVEN, "--progress", "none").err == ""


@pytest.mark.usefixtures("logs")
def test_progress_as_json_is_nothing_but_json_lines(dagflow: Dagflow, write: Write) -> None:
    events = [json.loads(line) for line in dagflow("launch", LINE_FILTER, *GIVEN, "--progress", "json").err.splitlines()]
    assert [e["event"] for e in events] == [
        "run_started",
        "window_planned",
        "window_started",
        "task_ended",
        "task_ended",
        "window_decided",
        "entry_appended",
        "window_done",
        "run_ended",
    ]
    write("app.py", FAILS_HALFWAY)
    answer = dagflow("launch", ".", "--runner", "local", "--progress", "json", "-D", "run.run_folder=other", "--fresh")
    assert [json.loads(line)["event"] for line in answer.err.splitlines()][-1] == "problems"


def test_a_run_that_fails_ends_with_1_and_the_error_comes_last(dagflow: Dagflow, write: Write, tmp_path: Path) -> None:
    write("app.py", FAILS_HALFWAY)
    write("logs/a.txt", "1\n2\nthree\n")
    answer = dagflow("launch", ".", "--runner", "local")
    assert answer.code == 1
    assert re.match(r"\w+: failed\n  windows  0\n", answer.out)  # none was decided
    assert f"  run      {tmp_path}" in answer.out
    assert "\nerror[DF301] operator 'numbers' failed" in answer.err
    assert "\n  help: fix the line that is named and launch again" in answer.err
    assert "-D operator.numbers.on_error=skip" in answer.err
    assert "Traceback" not in answer.err
    assert "Traceback" in dagflow("launch", ".", "--runner", "local", "--debug").err
    report = json.loads(dagflow("launch", ".", "--runner", "local", "--json").out)
    assert report["status"] == "failed"
    error = report["error"]
    assert (error["code"], error["class"], error["operator"], error["window"]) == ("DF301", "OperatorFailed", "numbers", 0)
    assert (Path(error["path"]).name, error["position"], error["fields"]["record"]) == ("a.txt", 4, "'three'")
    assert error["message"].startswith("operator 'numbers' failed")


def test_the_report_of_a_run_that_committed_nothing_shows_the_work_of_its_tasks() -> None:
    failed, later, early = (RunReport(status="failed", windows=windows) for windows in (0, 1, 0))
    for report, shown in ((failed, (1, 7)), (later, (1, 7)), (early, ())):
        run = RunView(report)
        for records in shown:
            figures = {"records_in": records, "records_out": 2, "errors": 0, "seconds": 0.1, "partitions": 1}
            run(OperatorProgress(operators={"files": {**figures, "records_in": 0}, "keep": figures}))
        run.show_uncommitted()
    assert failed.operators["keep"].records_in == 7
    assert "no window is committed: " in failed.warnings[0]
    assert (later.operators, early.operators) == ({}, {}), "committed windows have figures; no task has begun"


def test_the_json_of_a_failed_run_has_what_was_decided_before_and_where_it_failed(dagflow: Dagflow, write: Write) -> None:
    write("app.py", FAILS_HALFWAY)
    write("logs/a.txt", "1\n2\n")
    assert dagflow("launch", ".", "--runner", "local").code == 0
    write("logs/b.txt", "3\n")
    write("logs/c.txt", "x" * 20 + "\n")
    one_each = ["-D", "operator.files.window_bytes=1", "--windows-in-flight", "1"]
    context = ["-D", "operator.lines.reader_context.max_record_bytes=10"]
    answer = dagflow("launch", ".", "--runner", "local", *one_each, *context, "--json")
    report = json.loads(answer.out)
    assert (answer.code, report["status"], report["windows"], report["first_window"]) == (1, "failed", 1, 1)
    assert report["operators"]["numbers"]["records_out"] == 1
    error = report["error"]
    assert (error["code"], error["operator"], error["window"], error["position"]) == ("DF310", "lines", 2, 0)
    assert error["path"].endswith("c.txt")


def test_the_json_of_a_run_that_ends_otherwise(dagflow: Dagflow, write: Write, tmp_path: Path) -> None:
    write("app.py", FAILS_HALFWAY.replace("return str(int(record.record))", "raise SystemExit(3)"))
    write("logs/a.txt", "1\n")
    report = json.loads(dagflow("launch", ".", "--runner", "local", "--json").out)
    assert (report["status"], report["error"]["code"], report["error"]["operator"]) == ("failed", "DF301", "numbers")
    (tmp_path / "out" / "mine.txt").write_text("x")
    write("app.py", FAILS_HALFWAY.replace('"out"', '"logs"'))
    report = json.loads(dagflow("launch", ".", "--runner", "local", "--json").out)
    assert (report["status"], report["error"]["code"], report["error"]["operator"]) == ("failed", "DF259", "files")


def test_sys_exit_in_an_operator_is_a_failure(dagflow: Dagflow, write: Write) -> None:
    write("app.py", FAILS_HALFWAY.replace("return str(int(record.record))", "raise SystemExit(0)"))
    write("logs/a.txt", "1\n")
    assert dagflow("launch", ".", "--runner", "local").code == 1


@pytest.mark.usefixtures("logs")
def test_two_at_once_the_second_is_refused_with_3(dagflow: Dagflow, tmp_path: Path) -> None:
    from dagflow.storage import FolderLock

    folder = tmp_path / "out" / "_dagflow"
    folder.mkdir(parents=True)
    with FolderLock(str(folder), who="somebody else"):
        answer = dagflow("launch", LINE_FILTER, *GIVEN)
    assert answer.code == 3
    assert "error[DF430]" in answer.err
    assert "somebody else" in answer.err


def test_an_application_without_output_cannot_be_resumed(dagflow: Dagflow, write: Write) -> None:
    write("logs/a.txt", "one\n")
    write(
        "app.py",
        """
        from operators import BlockReader, Console, FileSplitterInput

        def populate_dag(dag, conf):
            files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
            lines = dag.add_operator("lines", BlockReader())
            show = dag.add_operator("show", Console(prefix="> "))
            dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
            dag.add_stream("text", lines.messages, show.input)
        """,
    )
    answer = dagflow("launch", ".", "--runner", "local")
    assert answer.code == 0
    assert answer.out.startswith("> one\noperator ")
    assert "no output folder; no run folder: this run cannot be resumed" in answer.err
    assert "written" not in answer.out


@pytest.mark.usefixtures("logs")
def test_an_output_by_url_is_shown_as_it_was_given(dagflow: Dagflow) -> None:
    answer = dagflow("launch", LINE_FILTER, "-D", "input=logs", "-D", "output=memory://shown/out", "--runner", "local")
    assert answer.code == 0, answer.err
    assert answer.err.startswith(
        "line_filter in this process; output memory://shown/out; run folder memory://shown/out/_dagflow\n"
    )
    assert "memory:/s" not in answer.out + answer.err


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("logs")
def test_on_spark(begin: Callable[..., object], tmp_path: Path) -> None:
    process = begin("launch", LINE_FILTER, "-D", "input=logs", "-D", "output=out", "--master", "local[1]")
    out, err = process.communicate(timeout=200)  # type: ignore[attr-defined]
    assert process.returncode == 0, err  # type: ignore[attr-defined]
    assert "Spark UI  http" in out
    assert err.startswith("line_filter on Spark at local[1]; output out; run folder out/_dagflow\nrunning: 1 slot")


@pytest.mark.parametrize("given", [["--slots", "2"], []], ids=["asked for", "all cores"])
def test_the_local_runner_works_in_processes(
    dagflow: Dagflow, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.setattr("dagflow.cli.commands.applications.launch.available_cores", lambda: 2)
    write("logs/a.txt", "one\n#two\nthree\n")
    answer = dagflow("launch", LINE_FILTER, *GIVEN, *given, "-D", "prefix=#")
    assert answer.code == 0, answer.err
    assert answer.err.startswith("line_filter in up to 2 processes; ")
    assert "running: 2 slots" in answer.err
    assert [path.read_text() for path in (tmp_path / "out").glob("part-*")] == ["one\nthree\n"]


@pytest.mark.parametrize("where", ["environment", "file"])
def test_one_slot_stays_in_this_process(dagflow: Dagflow, write: Write, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Also where a process that forks workers has been started before the settings were known."""
    monkeypatch.setattr("dagflow.cli.commands.applications.launch.available_cores", lambda: 2)
    write("logs/a.txt", "one\n")
    write("one.toml", "slots = 1\n")
    if where == "environment":
        monkeypatch.setenv("DAGFLOW_SLOTS", "1")
    answer = dagflow("launch", LINE_FILTER, *GIVEN, *(["--conf", "one.toml"] if where == "file" else []))
    assert answer.code == 0, answer.err
    assert answer.err.startswith("line_filter in this process; ")


def test_timings_say_where_the_seconds_went(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\n", encoding="utf-8")
    arguments = ("launch", LINE_FILTER, "-D", f"input={tmp_path / 'in'}", "-D", f"output={tmp_path / 'out'}", "--runner", "local")
    phases = ["application", "session", "first_task", "windows", "roll_forward", "end"]
    report = json.loads(dagflow(*arguments, "--json").out)
    assert list(report["timings"]) == phases
    answer = dagflow(*arguments, "--timings", "--fresh")
    assert [line.split("  ")[0].replace(" ", "_") for line in answer.out.splitlines()[-6:]] == phases
    assert "roll forward" not in dagflow(*arguments, "--fresh").out


LOGGING = """
import logging
from operators import BlockReader, FileSplitterInput, Map, RecordWriter

def parse(line):
    logging.getLogger("myapp.parse").info("parsing %s", line.record)
    return str(int(line.record))

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    lines = dag.add_operator("lines", BlockReader())
    number = dag.add_operator("number", Map(parse))
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, number.input)
    dag.add_stream("numbers", number.output, out.input)
"""


@pytest.mark.full
@pytest.mark.parametrize("slots", ["1", "2"])
def test_log_lines_in_json(slots: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOGGING)
    (tmp_path / "in.txt").write_text("1\n2\n")
    command = [sys.executable, "-m", "dagflow", "launch", "app.py", "-D", "input=in.txt", "-D", "output=out", "--runner", "local"]
    logs = ["--log-format", "json", "-D", "log_levels.myapp.parse=INFO"]
    ran = subprocess.run([*command, "--slots", slots, *logs], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert len({line["run"] for line in lines}) == 1
    places = [(line["logger"], line["message"], line["window"], line["operator"], line["task"]) for line in lines]
    assert places[1:3] == [("myapp.parse", f"parsing {n}", 0, "number", "s0-0000") for n in (1, 2)]
    assert [place[0] for place in places] == ["dagflow.run", "myapp.parse", "myapp.parse", "dagflow.run", "dagflow.run"]


@pytest.mark.full
def test_a_failed_launch_with_log_lines_in_json_has_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOGGING)
    (tmp_path / "in.txt").write_text("x\n")
    command = [sys.executable, "-m", "dagflow", "launch", "app.py", "-D", "input=in.txt", "-D", "output=out", "--runner", "local"]
    ran = subprocess.run(
        [*command, "--slots", "1", "-D", "log_format=json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    *_, error, problems = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (error["level"], error["logger"]) == ("ERROR", "dagflow.run")
    assert problems["problems"][0]["code"] == "DF301"


def test_a_level_that_is_not_known(dagflow: Dagflow) -> None:
    answer = dagflow("launch", LINE_FILTER, "--log-level", "loud", "-D", "log_levels.myapp=x")
    assert answer.code == 2
    assert "log_level" in answer.err
    assert "but must be DEBUG, INFO, WARNING, ERROR or CRITICAL" in answer.err
