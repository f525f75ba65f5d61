from __future__ import annotations

import json
import logging
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import DagflowError, NoRun
from dagflow.lineage.trace import ApplicationLocator
from dagflow.model.types.records import ReaderRecord
from dagflow.page.run.data import RunReader, drawn, run_data
from dagflow.page.run.live import EventFiles
from dagflow.page.run.report import run_report
from dagflow.page.run.rows import _only_line, sample_rows
from dagflow.planning.view import plan_view
from dagflow.runtime.events import Event, RunEnded, RunStarted, Warned, WindowPlanned, line_of
from dagflow.testing import run_dag
from operators import BlockReader, Expect, FileSplitterInput, Filter, Map, RecordWriter
from tests.render import sample


def keep(line: ReaderRecord[str]) -> bool:
    return not line.record.startswith("#")


def fails(line: ReaderRecord[str]) -> str:
    if line.record == "bad </script>":
        raise ValueError(f"cannot take {line.record}")
    return line.record.upper()


def is_fine(line: str) -> bool:
    return line == "FINE"


def chain(dag: DAG, conf: dict[str, str]) -> None:
    """Splitter → reader → filter → upper → writer."""
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader())
    kept = dag.add_operator("kept", Filter(keep))
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, kept.input)
    if "on_error" in conf:
        upper = dag.add_operator("upper", Map(fails, on_error=conf["on_error"], max_rejects=conf.get("max_rejects")))
        dag.add_stream("some", kept.output, upper.input)
        dag.add_stream("rest", upper.output, out.input)
    else:
        dag.add_stream("rest", kept.output, out.input)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"line {n}\n" if n % 10 else f"# {n}\n" for n in range(100)))
    return folder


@pytest.fixture
def output(logs: Path, tmp_path: Path) -> str:
    """The output of a run that is done."""
    folder = str(tmp_path / "out")
    run_dag(chain, {"input": str(logs), "output": folder})
    return folder


def test_a_run_that_is_done(output: str) -> None:
    data = json.loads(json.dumps(run_data(output)))
    assert data["run"]["status"] == "done"
    assert data["run"]["error"] is None
    assert {node["name"] for node in data["graph"]["nodes"]} == {"files", "lines", "kept", "out"}
    assert data["operators"]["kept"]["records_in"] == 100
    assert data["operators"]["kept"]["records_out"] == 90
    assert data["windows"]["window"] == [0]
    assert data["windows"]["records"] == [90]
    assert len(data["tasks"]["rows"]) == data["windows"]["tasks"][0]
    assert data["ledgers"][0]["rows"] == 90
    assert {"application", "run"} <= {row[0] for row in data["settings"]}
    assert data["versions"]["python"]
    assert data["problems"] == []


def test_rows_lead_back_to_their_lines(output: str, logs: Path) -> None:
    rows = run_data(output)["rows"]
    assert rows[0]["text"] == "line 1"
    for row in rows:
        assert (row["window"], row["task"]) == (0, "s0-0000")
        source = row["source"]
        with open(source["path"], "rb") as file:
            file.seek(source["position"])
            assert file.read(source["length"]).decode() == row["text"]


def test_a_source_that_is_gone_is_said_to_be(output: str, logs: Path) -> None:
    shutil.rmtree(logs)
    assert all(row["source"]["gone"] for row in run_data(output)["rows"])


def test_a_line_that_occurs_twice_is_not_guessed(logs: Path, tmp_path: Path) -> None:
    (logs / "a.txt").write_text("same\nsame\n")
    run_dag(chain, {"input": str(logs), "output": str(tmp_path / "out")})
    assert [row["source"] for row in run_data(str(tmp_path / "out"))["rows"]] == [None, None]


def test_the_only_line_of_a_task_is_the_line_of_its_rows(logs: Path, tmp_path: Path) -> None:
    """The text of the row is another one. The line of the second block begins in the first one."""
    (logs / "a.txt").write_text("one\n")
    (logs / "b.txt").write_text("two and more\n")
    run_dag(chain, {"input": str(logs), "output": str(tmp_path / "out"), "on_error": "skip"}, slots=2)
    rows = run_data(str(tmp_path / "out"))["rows"]
    lines = {row["text"]: row["source"]["text"] for row in rows}
    assert lines == {"ONE": "one", "TWO AND MORE": "two and more"}
    assert all(row["source"]["how"] == "the only line that this task read" for row in rows)


@pytest.mark.parametrize(
    ("start", "stop", "line"),
    [(0, 4, (0, "one")), (4, 8, (4, "two")), (2, 6, (4, "two")), (0, 5, None), (5, 8, None), (1, 4, None), (8, 11, (8, "tre"))],
)
def test_a_range_has_the_lines_that_begin_in_it(tmp_path: Path, start: int, stop: int, line: tuple[int, str] | None) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\ntre")
    item = SimpleNamespace(path=str(tmp_path / "a.txt"), start=start, stop=stop)
    source = _only_line(SimpleNamespace(dataset=str(tmp_path), items=(item,), several=None))  # type: ignore[arg-type]
    assert line == (None if source is None else (source["position"], source["text"]))


def test_rows_are_traced_without_their_tasks_when_these_take_too_long(
    output: str, logs: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    times = iter([0.0, 1.0, 21.0, *[21.0] * 100])

    def again(dag: DAG, conf: dict[str, str]) -> None:
        print("loaded again")
        logging.getLogger("app").warning("loaded again")
        warnings.warn("loaded again", stacklevel=1)
        chain(dag, conf)

    locator = ApplicationLocator(application=again, definitions=(f"input={logs}", f"output={output}"))
    rows = list(sample_rows([output], locator, clock=lambda: next(times)))
    assert len(rows) == len(list(sample_rows([output]))), "as many rows as without"
    exact = [(row["source"] or {}).get("how") == "the task was run again up to this row" for row in rows]
    assert exact == [True] + [False] * (len(rows) - 1)
    assert ["its task was not run again" in " ".join(row["remarks"]) for row in rows] == [not each for each in exact]
    assert "loaded again" not in "".join(capfd.readouterr()) + caplog.text


def test_a_run_that_failed_names_its_operator(logs: Path, tmp_path: Path) -> None:
    (logs / "b.txt").write_text("bad </script>\n")
    with pytest.raises(DagflowError):
        run_dag(chain, {"input": str(logs), "output": str(tmp_path / "out"), "on_error": "fail"})
    data = run_data(str(tmp_path / "out"))
    assert data["run"]["status"] == "failed"
    error = data["run"]["error"]
    assert (error["code"], error["operator"], error["window"]) == ("DF301", "upper", 0)
    assert "cannot take bad </script>" in error["text"]
    report = run_report(str(tmp_path / "out"))
    text = f"{error['text']}\n  help: {error['remedy']}"
    assert (report.status, report.error, report.error_code) == ("failed", text, "DF301")
    assert data["rows"] == []
    assert (error["task"], error["items"][0]["path"], error["items"][0]["failed"]) == ("s0-0001", str(logs / "b.txt"), True)
    assert [item["failed"] for item in error["items"]] == [True, False]
    assert "-D operator.upper.on_error=skip" in error["remedy"]


def test_tasks_have_their_input(output: str, logs: Path) -> None:
    (task,) = run_data(output)["tasks"]["rows"]
    assert task[9] == [{"path": str(logs / "a.txt"), "start": 0, "stop": (logs / "a.txt").stat().st_size}, 0]


def test_a_long_file_is_read_once_for_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.page.run.rows.CHUNK", 7)  # lines lie across chunks
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("".join(f"line {n}\n" for n in range(1000)))
    run_dag(chain, {"input": str(tmp_path / "logs"), "output": str(tmp_path / "out")})
    rows = run_data(str(tmp_path / "out"))["rows"]
    assert len(rows) == 20
    assert [row["text"] for row in rows] == [f"line {row['offset']}" for row in rows]


def test_rejects_have_samples(logs: Path, tmp_path: Path) -> None:
    (logs / "b.txt").write_text("bad </script>\nfine\n")
    run_dag(chain, {"input": str(logs), "output": str(tmp_path / "out"), "on_error": "skip"})
    (rejects,) = run_data(str(tmp_path / "out"))["rejects"]
    assert (rejects["operator"], rejects["errors"]) == ("upper", 1)
    assert "bad </script>" in rejects["samples"][0][1]


def test_a_limit_of_rejects_that_failed_leaves_samples_and_figures(logs: Path, tmp_path: Path) -> None:
    """None of this is committed, and the tasks are too short for live figures."""
    (logs / "b.txt").write_text("bad </script>\nfine\n")
    with pytest.raises(DagflowError):
        run_dag(chain, {"input": str(logs), "output": str(tmp_path / "out"), "on_error": "skip", "max_rejects": "0"})
    data = run_data(str(tmp_path / "out"))
    assert (data["run"]["status"], data["run"]["error"]["code"]) == ("failed", "DF395")
    (rejects,) = data["rejects"]
    assert (rejects["operator"], rejects["errors"], rejects["samples"][0][0]) == ("upper", 1, 0)
    assert "bad </script>" in rejects["samples"][0][1]
    upper = data["live"]["operators"]["upper"]
    assert (upper["records_in"] - upper["records_out"], upper["errors"]) == (1, 1)
    assert data["operators"] == {}, "they are of committed windows"
    report = run_report(str(tmp_path / "out"))
    assert report.operators["upper"].errors == 1
    assert report.warnings[0].startswith("no window is committed: ")


def test_rejects_of_a_failed_window_are_those_of_all_operators(logs: Path, tmp_path: Path) -> None:
    (logs / "b.txt").write_text("bad </script>\nfine\n")

    def expecting(dag: DAG, conf: dict[str, str]) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
        lines = dag.add_operator("lines", BlockReader())
        upper = dag.add_operator("upper", Map(fails, on_error="skip"))
        expected = dag.add_operator("expected", Expect(is_fine, max_share=0.1))
        out = dag.add_operator("out", RecordWriter(path=conf["output"]))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, upper.input)
        dag.add_stream("some", upper.output, expected.input)
        dag.add_stream("rest", expected.output, out.input)

    with pytest.raises(DagflowError):
        run_dag(expecting, {"input": str(logs), "output": str(tmp_path / "out")})
    data = run_data(str(tmp_path / "out"))
    assert data["run"]["error"]["code"] == "DF395"
    assert {each["operator"]: each["errors"] for each in data["rejects"]} == {"expected": 100, "upper": 1}


def test_rejects_of_a_window_count_once_while_its_events_lag_behind(logs: Path, tmp_path: Path) -> None:
    (logs / "b.txt").write_text("bad </script>\nfine\n")
    output = str(tmp_path / "out")
    run_dag(chain, {"input": str(logs), "output": output, "on_error": "skip"})
    reader = RunReader(output)
    reader.data()
    assert reader._events is not None
    live = reader._events.newest
    assert live is not None
    live.windows[0].decided, live.windows[0].operators, live.operators = None, live.operators, {}
    assert reader.data()["rejects"][0]["errors"] == 1


def test_nothing_is_no_run(tmp_path: Path) -> None:
    for place in (tmp_path / "none", tmp_path):
        with pytest.raises(NoRun):
            run_data(str(place))


@pytest.mark.parametrize("kind", ["plan", "decision", "launches", "events", "ledger/000000000", "done", "ledger-hint"])
@pytest.mark.parametrize("damage", [b"", b"not json\n", b'{"v": 99}\n'])
def test_a_damaged_record_is_a_problem_and_no_failure(output: str, kind: str, damage: bytes) -> None:
    for path in Path(output, "_dagflow", kind).iterdir():
        path.write_bytes(damage)
    data = run_data(output)
    if kind in ("plan", "decision", "launches"):
        assert data["problems"]
    if kind == "ledger/000000000":
        assert data["ledgers"][0]["problem"]["code"]


def test_a_run_folder_that_lost_a_part_still_has_a_page(output: str) -> None:
    for kind in ("events", "launches", "plan", "decision", "done", "ledger"):
        shutil.rmtree(Path(output, "_dagflow", kind))
        try:
            run_data(output)
        except NoRun:
            assert kind in ("decision", "done", "ledger")


def line(event: Event) -> str:
    return line_of(attrs.evolve(event, at=1.0))


def started(application: str) -> str:
    return line(RunStarted(application=application, runner="local", run_folder="r", launch="x", slots=1, first_window=0))


def test_events_are_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    path = tmp_path / "events" / "20260101T000000-aaaaaa.jsonl"
    files = EventFiles(str(tmp_path))
    files.update()
    assert files.newest is None
    planned = line(WindowPlanned(window=0, items=1, bytes=2, tasks=1))
    path.write_text(started("a") + planned[:20])
    files.update()
    assert files.newest is not None
    assert files.newest.windows == {}
    strange = '[1]\n{"v": 1, "event": "unheard_of", "at": 1.0}\n{"v": 1, "event": "window_decided", "at": 1.0, "window": 0}\n'
    with path.open("a") as file:
        file.write(planned[20:] + strange)
    files.update()
    assert files.newest.windows[0].items == 1
    path.rename(path.with_suffix(".0001.jsonl"))  # as when a file is full
    path.write_text(line(Warned(text="w")) + line(RunEnded(status="done", windows=1, seconds=1.0)))
    files.update()
    assert len(files.newest.windows) == 1
    assert [event.text for event in files.newest.warnings] == ["w"]
    assert files.newest.ended is not None
    later = tmp_path / "events" / "20260101T000001-aaaaaa.jsonl"
    later.write_text(started("b"))
    files.update()
    assert files.newest.windows == {}
    (earlier,) = files.earlier()
    assert earlier.started is not None
    assert earlier.ended is not None
    assert (earlier.started.application, earlier.ended.status) == ("a", "done")


def test_a_run_is_running_until_its_launch_ends(output: str) -> None:
    (events,) = Path(output, "_dagflow", "events").iterdir()
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[:-1]))
    assert RunReader(output).data()["run"]["status"] == "killed"
    from dagflow.storage import FolderLock

    with FolderLock(str(Path(output, "_dagflow"))):
        assert RunReader(output).data()["run"]["status"] == "running"


def test_a_drawing_has_the_places_of_boxes() -> None:
    data = drawn(plan_view(sample.modules(), "staged"))
    assert {group["kind"] for group in data["groups"]} == {"driver", "stage", "module"}
    assert all(len(node["at"]) == 4 for node in data["nodes"])
    assert all(len(edge["points"]) >= 4 for edge in data["edges"])
