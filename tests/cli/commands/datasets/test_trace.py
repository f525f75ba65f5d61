from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]


@pytest.fixture
def out(dagflow: Dagflow, tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_bytes(b".no\none\r\ntwo\n")
    (tmp_path / "logs" / "b.txt").write_bytes(b"three\n.no\n")
    given = ["-D", "input=logs", "-D", "output=out", "-D", "operator.splitter.block_size=4"]
    assert dagflow("launch", LINE_FILTER, *given, "--runner", "local", "--progress", "none").code == 0
    return tmp_path / "out"


def source(answer: Answer) -> tuple[str, int, str]:
    assert (answer.code, answer.err) == (0, "")
    found = json.loads(answer.out)["source"]
    return Path(found["path"]).name, found["position"], found["text"]


def test_each_row_leads_to_its_line(dagflow: Dagflow, out: Path) -> None:
    found = [source(dagflow("trace", "out", "--offset", str(n), "--exact", "--trust", "--json")) for n in range(3)]
    assert sorted(found) == [("a.txt", 4, "one\r\n"), ("a.txt", 9, "two\n"), ("b.txt", 0, "three\n")]


def test_as_text(dagflow: Dagflow, out: Path, tmp_path: Path) -> None:
    lines = dagflow("trace", "out", "--offset", "0", "--exact", "--trust").out.split("\n")
    assert lines[0] == f"row 0 of {out}"
    assert [line.split()[0] for line in lines[1:7]] == ["file", "entry", "window", "written", "read", "record"]
    assert lines[6].endswith("bytes [4, 9): 5 B")
    assert lines[7].strip() == r"one\r\n"
    assert dagflow("trace", "out", "--offset", "0").out.split("\n")[5].split()[0] == "read"


def test_by_the_line_of_a_file(dagflow: Dagflow, out: Path) -> None:
    name = next(path.name for path in sorted(out.glob("part-*")) if path.read_bytes().startswith(b"one"))
    assert source(dagflow("trace", f"out/{name}", "--line", "1", "--exact", "--trust", "--json"))[2] == "one\r\n"


def test_what_stands_in_the_way_is_told_after_what_is_known(dagflow: Dagflow, out: Path, tmp_path: Path) -> None:
    (tmp_path / "logs" / "a.txt").write_text("another\n")
    answer = dagflow("trace", "out", "--offset", "0", "--exact", "--trust")
    assert answer.code == 1
    assert "logs/a.txt, bytes [0, " in answer.out
    assert answer.err.startswith("error[DF330] ")
    told = dagflow("trace", "out", "--offset", "0", "--exact", "--trust", "--json")
    assert (told.code, told.err) == (1, "")
    assert json.loads(told.out)["problems"][0]["class"] == "FileChanged"
    assert dagflow("trace", "out", "--offset", "0").code == 0


def test_the_application_may_be_given(dagflow: Dagflow, out: Path) -> None:
    given = ["--app", LINE_FILTER, "-D", "input=logs", "-D", "output=out", "--json"]
    assert source(dagflow("trace", "out", "--offset", "0", "--exact", *given))[2] == "one\r\n"
    missing = dagflow("trace", "out", "--offset", "0", "--exact", "--app", "nowhere")
    assert (missing.code, missing.err[:13]) == (2, "error[DF251] ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Which row?"),
        (["--offset", "0", "--line", "1"], "Which row?"),
        (["--offset", "-1"], "--offset"),
        (["--offset", "3"], "has no row 3; its newest row is 2"),
        (["--line", "1"], "committed file"),
        (["--offset", "0", "--exact", "--conf", "a.toml"], "--conf needs --app"),
        (["--offset", "0", "-D", "prefix=x"], "-D and --conf go with --exact"),
    ],
)
def test_a_wrong_command_line(dagflow: Dagflow, out: Path, arguments: list[str], words: str) -> None:
    answer = dagflow("trace", "out", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
