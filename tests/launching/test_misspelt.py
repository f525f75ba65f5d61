"""Names that are nearly right in an application's Python code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagflow.errors import ApplicationBroken
from dagflow.launching.build import build

APPLICATION = """
from dagflow import DAG
from operators import BlockReader, Filter

def populate_dag(dag: DAG, conf: dict) -> None:
    %s
"""


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("Filtr(str)", "Filter"),
        ("BlockReader(maxreaders=3)", "max_readers"),
        ("dag.add_operater('a', Filter(str))", "add_operator"),
        ("from operators import Tumblng", "Tumbling"),
        ("import operators; operators.Tumblng", "Tumbling"),
        ("prnt(1)", "print"),
        ("BlockReader(max_raeders=3)", "max_readers"),
    ],
)
def test_the_nearest_name_is_named(tmp_path: Path, line: str, near: str) -> None:
    (tmp_path / "app.py").write_text(APPLICATION % line)
    with pytest.raises(ApplicationBroken) as caught:
        build(str(tmp_path / "app.py"))
    assert f"Did you mean '{near}'?" in str(caught.value)


@pytest.mark.parametrize("line", ["xyzzy()", "raise TypeError('f() got an unexpected keyword argument 'a'')", "dag + 1", "1 / 0"])
def test_other_errors_are_as_python_words_them(tmp_path: Path, line: str) -> None:
    (tmp_path / "app.py").write_text(APPLICATION % line)
    with pytest.raises(ApplicationBroken) as caught:
        build(str(tmp_path / "app.py"))
    assert "Did you mean" not in str(caught.value)
