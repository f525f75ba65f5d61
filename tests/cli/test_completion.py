"""Completion by the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Answer

Dagflow = Callable[..., Answer]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    monkeypatch.setenv("_DAGFLOW_COMPLETE", f"{shell}_source")
    answer = dagflow()
    assert (answer.code, answer.err) == (0, "")
    assert f"_DAGFLOW_COMPLETE={shell}_complete" in answer.out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("dagflow va", ["plain,validate"]),
        ("dagflow verify --re", ["plain,--replay"]),
        ("dagflow graph --format m", ["plain,mermaid"]),
        ("dagflow validate ap", ["file,ap"]),
        ("dagflow trace ou", ["file,ou"]),
        ("dagflow launch app --conf ba", ["file,ba"]),
        ("dagflow nothing", []),
    ],
)
def test_what_is_completed(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, words: str, found: list[str]) -> None:
    monkeypatch.setenv("_DAGFLOW_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    answer = dagflow()
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.split() == found


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_in_bash(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "dagflow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dagflow "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(_DAGFLOW_COMPLETE=bash_source dagflow)"
        complete -p dagflow
        COMP_WORDS=(dagflow tr); COMP_CWORD=1; _dagflow_completion dagflow; echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=True, timeout=60)
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["complete -o nosort -F _dagflow_completion dagflow", "trace"]
