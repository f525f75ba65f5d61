from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dagflow.launching.development import UserCode
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]

APP = """
from operators import BlockReader, FileSplitterInput, Map, RecordWriter
from helper import shown

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    map_ = dag.add_operator("map", Map(shown))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, map_.input)
    dag.add_stream("all", map_.output, writer.input)
"""
HELPER = "def shown(record: object) -> str:\n    return {} + record.record\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "helper.py").write_text(HELPER.format("'> '"))
    return tmp_path


@pytest.fixture
def code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> UserCode:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "part.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return UserCode(str(folder / "app.py"), ["local.toml"])


def test_nothing_has_changed_at_first(code: UserCode) -> None:
    code.remember()
    assert code.changed() is None


@pytest.mark.parametrize("name", ["app.py", "helper.py", "local.toml"])
def test_a_changed_file_is_noticed(code: UserCode, folder: Path, name: str) -> None:
    code.remember()
    (folder / name).write_text("# other code\n")
    assert code.changed() == str(folder / name)


def test_files_that_appear_or_go_are_noticed(code: UserCode, folder: Path) -> None:
    code.remember()
    (folder / "new.py").write_text("")
    assert code.changed() == str(folder / "new.py")
    code.remember()
    (folder / "helper.py").unlink()
    assert code.changed() == str(folder / "helper.py")


def test_what_the_code_has_loaded_is_watched_and_loaded_anew(code: UserCode, folder: Path) -> None:
    code.remember()
    from package import part  # type: ignore[import-not-found]

    assert part.VALUE == 1
    assert code.changed() is None
    (folder / "package" / "part.py").write_text("VALUE = 2\n")
    assert code.changed() == str(folder / "package" / "part.py")
    code.forget()
    from package import part as again

    assert again.VALUE == 2


def test_a_module_that_no_longer_loads_stays_watched(code: UserCode, folder: Path) -> None:
    code.remember()
    import package.part  # type: ignore[import-not-found]  # noqa: F401

    assert code.changed() is None
    code.forget()
    (folder / "package" / "part.py").write_text("VALUE = (\n")
    code.remember()
    (folder / "package" / "part.py").write_text("VALUE = 22\n")
    assert code.changed() == str(folder / "package" / "part.py")


@pytest.mark.parametrize(("module", "file"), [("package.part", "package/part.py"), ("package", "package/__init__.py")])
def test_the_folder_of_a_module_is_watched_before_it_loads(
    code: UserCode, folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, file: str
) -> None:
    monkeypatch.chdir(folder)
    code = UserCode(module)
    code.remember()
    (folder / file).write_text("VALUE = 3\n")
    assert code.changed() == str(folder / file)


def test_libraries_and_what_was_loaded_before_stay(code: UserCode) -> None:
    import fractions

    code.forget()
    assert sys.modules["fractions"] is fractions
    assert sys.modules[__name__]


def test_results_of_a_launch_are_not_replaced(dagflow: Dagflow, folder: Path) -> None:
    given = ("-D", "input=logs", "-D", "output=out", "--runner", "local")
    assert dagflow("launch", LINE_FILTER, *given).code == 0
    answer = dagflow("dev", LINE_FILTER, *given)
    assert answer.code == 2
    assert "out has results of an earlier run" in answer.err.replace(str(folder) + "/", "")
    assert "--fresh to replace them" in answer.err


def test_an_application_that_does_not_exist_is_not_waited_for(dagflow: Dagflow) -> None:
    assert dagflow("dev", "missing.py", "--runner", "local").code == 2


@pytest.fixture
def started(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    processes = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dagflow", "dev", "app.py", *options]
        with (folder / "log").open("w") as log:
            processes.append(subprocess.Popen(command, cwd=folder, text=True, stderr=log, stdout=log))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def wait_for(folder: Path, lines: list[str], seconds: float = 60.0) -> None:
    """Wait until the output has these lines."""
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end:
        parts = sorted((folder / "out").glob("part-*"))
        found = [line for part in parts for line in part.read_text().splitlines()]
        if found == lines:
            return
        time.sleep(0.05)
    raise AssertionError(f"found {found} instead of {lines}\n{(folder / 'log').read_text()}")


@pytest.mark.full  # a process of its own, and real time
@pytest.mark.parametrize("runner", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_each_change_runs_the_new_code_from_the_start(
    started: Callable[..., subprocess.Popen[str]], folder: Path, runner: str
) -> None:
    process = started("--runner", runner)
    wait_for(folder, ["> one", "> two"], 120)
    (folder / "helper.py").write_text(HELPER.format("'! '"))
    wait_for(folder, ["! one", "! two"])
    (folder / "helper.py").write_text(HELPER.format("1 +"))  # fails in the task: the run ends, dev does not
    while "waiting for a change of the code" not in (folder / "log").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    (folder / "helper.py").write_text("def shown(")  # does not load
    while "SyntaxError" not in (folder / "log").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    (folder / "app.py").rename(folder / "away")  # as some editors do while they save
    while "no application 'app.py'" not in (folder / "log").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    (folder / "helper.py").write_text(HELPER.format("'# '"))
    (folder / "app.py").write_text("raise SystemExit(3)")
    while "the application called sys.exit(3)" not in (folder / "log").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    (folder / "away").rename(folder / "app.py")
    wait_for(folder, ["# one", "# two"])
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    assert "Traceback" not in (folder / "log").read_text()
