"""A package of the user's that is called `operators`: named in scripts and tests, and let alone where it does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

SCRIPT = """
    from dagflow import DAG
    from operators import BlockReader
"""
RUN = {"script": ["use.py"], "pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_use.py"]}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, with the repository at the end of its path as an installed library would be."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("form", ["operators/__init__.py", "operators.py"])
@pytest.mark.parametrize("how", RUN)
def test_a_name_of_the_library_says_what_hides_it(write: Callable[..., None], tmp_path: Path, form: str, how: str) -> None:
    write(form, "MINE = 1\n")
    write("use.py", SCRIPT)
    write("test_use.py", SCRIPT)
    answer = run(tmp_path, *RUN[how])
    assert answer.returncode != 0
    told = answer.stdout + answer.stderr
    assert "hides dagflow's operator library" in told
    assert "help: rename your folder or file 'operators'" in told
    assert "DF257" in told


def test_another_package_of_that_name_works_where_nothing_of_ours_is_wanted(write: Callable[..., None], tmp_path: Path) -> None:
    write("operators/__init__.py", "MINE = 1\n")
    write("operators/mine.py", "ALSO = 2\n")
    write(
        "test_use.py",
        """
        import dagflow
        import operators
        from operators import MINE
        from operators.mine import ALSO

        def test_it():
            assert (MINE, ALSO) == (1, 2)
            assert not hasattr(operators, "nothing")
        """,
    )
    answer = run(tmp_path, *RUN["pytest"])
    assert answer.returncode == 0, answer.stdout


def test_one_that_is_imported_before_dagflow(write: Callable[..., None], tmp_path: Path) -> None:
    write("operators.py", "MINE = 1\n")
    write("use.py", "import operators\nimport dagflow\nfrom operators import Map\n")
    assert "error[DF257]" in run(tmp_path, "use.py").stderr


def test_the_library_itself_is_found_as_ever(tmp_path: Path, write: Callable[..., None]) -> None:
    write(
        "use.py",
        "import dagflow, operators, sys\nfrom operators import BlockReader\nprint(type(operators.__spec__.loader).__name__)\n",
    )
    answer = run(tmp_path, "use.py")
    assert (answer.stdout, answer.stderr) == ("SourceFileLoader\n", "")
