"""Objects in notebooks: text as in the terminal, pictures, tables; errors with their traceback folded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dagflow
from dagflow import DAG
from dagflow.cli.main import main
from dagflow.launching.errors import ApplicationMissing
from dagflow.ledger import Ledger
from dagflow.render.notebook import html_table
from dagflow.render.report import report_text
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter

ROOT = Path(__file__).parents[2]


def populate_dag(dag: DAG, conf: Any) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    lines = dag.add_operator("lines", BlockReader())
    keep = dag.add_operator("keep", Filter(lambda line: "<" in line.record))
    out = dag.add_operator("out", RecordWriter(conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, keep.input)
    dag.add_stream("kept", keep.output, out.input)


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("<one>\ntwo\n<three>\n")
    return {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}


def bundle(thing: Any) -> dict[str, str]:
    shown: dict[str, str] = thing._repr_mimebundle_(include=None, exclude=None)
    return shown


def test_a_dag_shows_itself_also_while_it_is_not_whole(settings: dict[str, str]) -> None:
    dag = DAG("demo")
    populate_dag(dag, settings)
    shown = bundle(dag)
    assert shown["text/plain"].startswith("● files  FileSplitterInput\n│ blocks")
    assert shown["image/svg+xml"].startswith("<svg ")
    lonely = DAG()
    lonely.add_operator("lonely", BlockReader())
    assert "lonely" in bundle(lonely)["image/svg+xml"]
    assert bundle(DAG())["text/plain"] == ""


def test_plan_graph_and_validation_have_the_text_of_the_commands(settings: dict[str, str]) -> None:
    plan, graph = dagflow.plan(populate_dag, settings), dagflow.graph(populate_dag, settings)
    assert bundle(plan)["text/plain"] == str(plan)
    assert bundle(plan)["text/html"].startswith("<svg ")
    assert "<details><summary>the plan as text</summary><pre>populate_dag: staged" in bundle(plan)["text/html"]
    assert bundle(graph) == {"text/plain": str(graph), "image/svg+xml": graph.svg()}
    validation = dagflow.validate(populate_dag, settings)
    assert bundle(validation) == {"text/plain": "populate_dag: ok (4 operators, 3 streams, 1 stage)"}


def test_peeked_records_are_a_table(settings: dict[str, str]) -> None:
    peeked = dagflow.peek(populate_dag, settings, "keep.output")
    assert bundle(peeked)["text/plain"] == str(peeked)
    page = bundle(peeked)["text/html"]
    assert page.count("<tr>") == 3
    assert "&lt;three&gt;" in page
    assert "<three>" not in page


def test_a_run_shows_its_report_and_a_ledger_what_dagflow_log_prints(
    settings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = dagflow.launch(populate_dag, settings, runner="local")
    shown = bundle(run)
    assert shown == bundle(run.report)
    assert shown["text/plain"] == report_text(run.report)
    assert shown["text/html"].startswith("<p>populate_dag: done, 1 window in ")
    assert main(["log", settings["output"]]) == 0
    assert bundle(Ledger.open(settings["output"]))["text/plain"] + "\n" == capsys.readouterr().out
    again = dagflow.report(settings["output"])
    assert (again.status, again.windows, again.application) == ("done", 1, "populate_dag")


def test_tables_have_no_colours_of_their_own() -> None:
    table = html_table(["a", "b"], [["<", "1"]], "lr")
    assert "color" not in table
    assert '<td style="text-align:right;white-space:pre">1</td>' in table
    assert "&lt;" in table


class FakeShell:
    """The parts of IPython's shell that an error asks for."""

    def __init__(self, mode: str) -> None:
        self.colors = "nocolor"
        self.InteractiveTB = SimpleNamespace(mode=mode, structured_traceback=lambda *error: ["line 1", "\x1b[31mline 2"])
        self.pages: list[dict[str, str]] = []
        self.callbacks: list[Callable[..., None]] = []
        self.display_pub = SimpleNamespace(publish=self.pages.append)
        self.events = SimpleNamespace(
            register=lambda event, call: self.callbacks.append(call),
            unregister=lambda event, call: self.callbacks.remove(call),
        )


MESSAGE = "error[DF251] no application 'app.py': it is missing"


def shown_by(shell: FakeShell, monkeypatch: pytest.MonkeyPatch, has_pages: bool = False) -> list[str]:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    kind = FakeShell if has_pages else Path
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace(zmqshell=SimpleNamespace(ZMQInteractiveShell=kind)))
    error = ApplicationMissing(spec="app.py", reason="it is missing")
    error._render_traceback_()
    return [line.partition("\n")[0] for line in error._render_traceback_()]


def test_an_error_shows_its_message_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = FakeShell("Context")
    assert shown_by(shell, monkeypatch) == [MESSAGE, "  %tb Verbose shows the traceback"]
    assert shell.callbacks == []


def test_an_error_shows_its_whole_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_by(FakeShell("Verbose"), monkeypatch) == ["line 1", "\x1b[31mline 2"]


def test_an_error_folds_its_traceback_in_a_notebook_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = FakeShell("Context")
    assert shown_by(shell, monkeypatch, has_pages=True) == [MESSAGE]
    assert len(shell.callbacks) == 1
    shell.callbacks[0](None)
    page = {"text/html": "<details><summary>traceback</summary><pre>line 1\nline 2</pre></details>", "text/plain": ""}
    assert (shell.pages, shell.callbacks) == ([page], [])


@pytest.mark.full
def test_a_real_notebook(settings: dict[str, str], tmp_path: Path) -> None:
    """Run cells in a kernel of their own, as Jupyter does."""
    client, kernel = pytest.importorskip("nbclient"), pytest.importorskip("ipykernel", reason="needs Jupyter's kernel")
    nbformat = pytest.importorskip("nbformat")
    assert kernel is not None
    shutil.copytree(ROOT / "apps" / "line_filter", tmp_path / "line_filter")
    cells = [
        f"import dagflow\napp, settings = 'line_filter', {settings!r}\ndagflow.graph(app, settings)",
        "dagflow.peek(app, settings, 'keep.output')",
        "run = dagflow.launch(app, settings, runner='local')\nrun",
        "dagflow.plan('nowhere', settings)",
        "%tb Verbose",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, allow_errors=True, kernel_name="python3", resources=resources).execute()
    graph, peeked, ran, failed, whole = (cell.outputs for cell in notebook.cells)
    assert graph[0].data["image/svg+xml"].startswith("<svg ")
    assert "&lt;three&gt;" in peeked[0].data["text/html"]
    assert "line_filter: done" in ran[-1].data["text/plain"]
    assert [each.output_type for each in failed] == ["error", "display_data"]
    assert "no application 'nowhere'" in failed[0].traceback[0]
    assert len(failed[0].traceback) == 1
    assert failed[1].data["text/html"].startswith("<details>")
    assert len("".join(whole[0].traceback)) > 1000


def test_nothing_of_it_needs_ipython() -> None:
    code = (
        "import sys; sys.modules['IPython'] = None; from dagflow import DAG; print(len(DAG()._repr_mimebundle_())); "
        "print([name for name in sys.modules if name.startswith(('ipykernel', 'pyspark'))])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "2\n[]\n"
