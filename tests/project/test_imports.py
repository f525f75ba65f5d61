from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["pyspark", "pyarrow", "pandas", "numpy", "networkx", "click", "rich", "cattrs", "fsspec", "cloudpickle"]


def loaded_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after a statement."""
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.split())


@pytest.mark.parametrize("statement", ["import dagflow", "import dagflow.errors", "import dagflow, operators"])
def test_importing_dagflow_loads_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)
    assert "dagflow" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


def test_the_pytest_plugin_is_light() -> None:
    """Every run of pytest loads the plugin where dagflow is installed, also in other projects."""
    assert sorted(loaded_after("import pytest, dagflow.testing.plugin").intersection(HEAVY)) == []


def test_what_is_said_to_be_public_is_there() -> None:
    loaded_after("import dagflow; missing = [n for n in dagflow.__all__ if not hasattr(dagflow, n)]; assert not missing, missing")
