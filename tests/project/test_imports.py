from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = ["pyspark", "pyarrow", "pandas", "numpy", "networkx", "click", "rich", "cattrs", "fsspec", "cloudpickle"]
TELEMETRY = ["prometheus_client", "opentelemetry", "openlineage"]


def loaded_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after a statement."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import dagflow",
        "import dagflow.errors",
        "import dagflow, operators",
        "from dagflow.render.explanations import explanations; list(explanations())  # imports all errors",
    ],
)
def test_importing_dagflow_loads_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)
    assert "dagflow" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


def test_the_pytest_plugin_is_light() -> None:
    """Every run of pytest loads the plugin where dagflow is installed, also in other projects."""
    assert sorted(loaded_after("import pytest, dagflow.testing.plugin").intersection(HEAVY)) == []


def test_what_is_said_to_be_public_is_there() -> None:
    loaded_after("import dagflow; missing = [n for n in dagflow.__all__ if not hasattr(dagflow, n)]; assert not missing, missing")


def test_operators_import_arrow_and_numpy_at_the_top() -> None:
    """One policy: `operators` loads its modules lazily, by name, so that imports inside functions would save nothing."""
    late = []
    for path in sorted((ROOT / "operators").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if node not in tree.body and any(name.partition(".")[0] in ("pyarrow", "numpy") for name in names):
                late.append(f"{path.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
    assert late == []


CSV = "n,s,t\n1,x,2026-01-01\n2,,oops\n"
JSON = '{"n": 1, "x": 1.5, "s": "a"}\n{"n": 2, "x": 2.5, "s": "b"}\n'
SCAN = """
from operators import FileSplitterInput, JsonLinesFormat, ParquetWriter, ScanReader
def application(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    reader = dag.add_operator("reader", ScanReader(JsonLinesFormat()))
    writer = dag.add_operator("writer", ParquetWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, writer.input)
"""


@pytest.mark.parametrize(
    ("data", "application", "more"),
    [
        (CSV, f"application = {str(ROOT / 'apps/csv_to_parquet')!r}", ["rejects"]),
        (CSV, f"application = {str(ROOT / 'apps/line_filter')!r}", []),
        (JSON, SCAN, []),
    ],
    ids=["csv", "lines", "json"],
)
def test_a_run_without_spark_loads_no_pandas(tmp_path: Path, data: str, application: str, more: list[str]) -> None:
    """It takes half a second, in each worker process too. Many a function of pyarrow loads it by the way."""
    (tmp_path / "a").write_text(data)
    settings = {"input": str(tmp_path / "a"), **{name: str(tmp_path / name) for name in ("output", *more)}}
    run = "launch(application, settings, runner='local', slots=1, run_folder=folder)"  # the tasks run in this process
    loaded = loaded_after(
        f"from dagflow import launch\nsettings, folder = {settings!r}, {str(tmp_path / 'run')!r}\n{application}\n{run}"
    )
    assert "pyarrow" in loaded
    assert "pandas" not in loaded
    assert sorted(loaded.intersection(TELEMETRY)) == [], "no telemetry was asked for"
