"""The rule for warnings in pyproject.toml: those that we cause and leaks are errors, those of other libraries are reported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dagflow.launching.application import load_application

ROOT = Path(__file__).parents[2]
RULE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]["filterwarnings"]

TESTS = """
import gc
import threading
import warnings

import pytest

def warn_in(module, category=UserWarning):
    exec("warnings.warn('of tomorrow', category)", {"__name__": module, "warnings": warnings, "category": category})

CATEGORIES = [DeprecationWarning, PendingDeprecationWarning, FutureWarning, RuntimeWarning, UserWarning, ImportWarning]

@pytest.mark.parametrize("category", CATEGORIES)
def test_reported_category(category):
    warn_in("pandas.core", category)

@pytest.mark.parametrize("module", ["dagflow_like", "testsuite", "application", "pandas.tests.app", "__main__"])
def test_reported_module(module):
    warn_in(module)

@pytest.mark.parametrize("module", ["dagflow", "dagflow.model.graph", "operators.sinks", "apps.orders", "app", "_dagflow_app_1f"])
def test_refused_module(module):
    warn_in(module)

@pytest.mark.parametrize("category", CATEGORIES)
def test_refused_category(category):
    warnings.warn("of tomorrow", category)

def test_refused_file_left_open():
    open(__file__)

def test_refused_file_left_open_in_a_cycle():
    class Holder:
        pass
    holder = Holder()
    holder.itself, holder.file = holder, open(__file__)
    del holder
    gc.collect()

def test_refused_error_in_a_thread():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

def test_refused_error_in_a_finalizer():
    class Failing:
        def __del__(self):
            raise ValueError
    Failing()

def test_refused_coroutine_that_is_not_awaited():
    async def step():
        pass
    step()
"""


def test_warnings_that_we_cause_and_leaks_fail_a_test_and_those_of_others_are_reported(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\nfilterwarnings = {json.dumps(RULE)}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--import-mode=importlib", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    outcomes = re.findall(r"^(PASSED|FAILED) \S+::test_(reported|refused)_", ran.stdout, re.MULTILINE)
    assert sorted(set(outcomes)) == [("FAILED", "refused"), ("PASSED", "reported")], ran.stdout
    assert (outcomes.count(("PASSED", "reported")), outcomes.count(("FAILED", "refused"))) == (11, 17)
    assert "FutureWarning: of tomorrow" in ran.stdout.partition("warnings summary")[2]


@pytest.mark.parametrize("path", sorted(ROOT.glob("apps/*/app.py")), ids=lambda path: path.parent.name)
def test_applications_that_were_loaded_by_path_are_ours(path: Path) -> None:
    [modules] = [rule.split(":")[3] for rule in RULE if rule.startswith("error:::")]
    assert re.match(modules, load_application(str(path.parent)).populate_dag.__module__)
