from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.ledger import UnknownEvent
from dagflow.ledger.tail import entry_name
from tests.cli.conftest import ROOT, Answer
from tests.cli.datasets import Dataset, sensors
from tests.golden.compare import Golden

Dagflow = Callable[..., Answer]


def test_log(dagflow: Dagflow, golden: Golden, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    answer = dagflow("log", "out")
    assert (answer.code, answer.err) == (0, "")
    golden("cli_log.txt", answer.out)


@pytest.mark.parametrize("number", [0, 3, 4])
def test_one_entry(dagflow: Dagflow, golden: Golden, tmp_path: Path, number: int) -> None:
    sensors(tmp_path / "out")
    golden(f"cli_log_{number}.txt", dagflow("log", "out", str(number)).out)


def test_a_derived_dataset(dagflow: Dagflow, golden: Golden, tmp_path: Path) -> None:
    source = sensors(tmp_path / "sensors")
    other = Dataset(tmp_path / "other", "other")
    other.commit({"a.txt": "1\n"}, watermark=5)
    totals = Dataset(tmp_path / "totals", "totals", made_of={"sensors": "sensors", "other": "other"})
    totals.derive({"t.txt": "10\n"}, source, other)
    source.commit({"f.txt": "1\n"})
    totals.derive({"u.txt": "11\n"}, source, other)
    golden("cli_log_derived.txt", dagflow("log", "totals").out)
    golden("cli_log_derived_4.txt", dagflow("log", "totals", "4").out)


def numbers(answer: Answer) -> list[int]:
    assert (answer.code, answer.err) == (0, "")
    return [int(line.split()[0]) for line in answer.out.split("\n") if line[:5].strip().isdigit()]


def test_what_is_shown_can_be_chosen(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    assert numbers(dagflow("log", "out")) == [6, 5, 4, 3, 2, 1, 0]
    some = dagflow("log", "out", "-n", "2")
    assert numbers(some) == [6, 5]
    assert some.out.endswith("… 5 entries before (-n 0 shows all)\n")
    assert numbers(dagflow("log", "out", "--data-only")) == [6, 3, 2]
    assert "-n 0" not in dagflow("log", "out", "--data-only", "-n", "3").out
    assert dagflow("log", "out", "--data-only", "-n", "1").out.endswith("… older entries (-n 0 shows all)\n")
    assert numbers(dagflow("log", "out", "--since", "2023-11-14T22:18:20")) == [6, 5, 4]
    assert numbers(dagflow("log", "out", "--since", "2023-11-15T00:18:20+02:00")) == [6, 5, 4]
    assert numbers(dagflow("log", "out", "--since", "2023-11-14")) == [6, 5, 4, 3, 2, 1, 0]
    assert dagflow("log", "out", "--since", "2030-01-01").out.endswith("no such entries\n")


@pytest.mark.full
def test_a_long_ledger(dagflow: Dagflow, tmp_path: Path) -> None:
    made = Dataset(tmp_path / "out")
    for watermark in range(1, 411):
        made.commit({}, watermark=watermark)
    assert len(numbers(dagflow("log", "out"))) == 20
    assert numbers(dagflow("log", "out", "-n", "0")) == list(range(411, -1, -1))
    assert dagflow("log", "out", "-n", "0").out.count("what moved") == 1


def test_json_is_a_line_an_entry(dagflow: Dagflow, tmp_path: Path) -> None:
    made = sensors(tmp_path / "out")
    found = [json.loads(line) for line in dagflow("log", "out", "--json").out.splitlines()]
    assert [each["seq"] for each in found] == [6, 5, 4, 3, 2, 1, 0]
    assert [each["hash"] for each in found] == [entry.hash for entry in made.ledger.entries(newest_first=True)]
    assert [each["moved"] for each in found[:5]] == [
        ["logs", "watermark"],
        ["logs", "state"],
        ["watermark"],
        ["logs"],
        ["logs", "state", "watermark"],
    ]
    assert found[3]["event"]["new_data"]["interval"] == {"start": 3, "end": 5}
    assert json.loads(dagflow("log", "out", "3", "--json").out) == found[3]
    assert len(dagflow("log", "out", "--json", "-n", "3").out.splitlines()) == 3


def test_a_dataset_is_known_by_anything_that_lies_in_it(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    whole = dagflow("log", "out").out
    for place in ("out/", "./out", "out/a.txt", "out/sub", "out/sub/c.txt", "out/_dagflow", (tmp_path / "out").as_uri()):
        assert dagflow("log", place).out.partition("\n")[2] == whole.partition("\n")[2], place


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [
        ("nowhere", "DF284", "there is no TMP/nowhere\n  help: name the output folder"),
        ("outt", "DF284", "there is no TMP/outt\n  did you mean TMP/out?"),
        ("out/z.txt", "DF284", "there is no TMP/out/z.txt\n  help: the path lies in the dataset TMP/out"),
        (".", "DF281", "TMP has no ledger: it is not the output folder of an application, or nothing was committed yet\n"),
        (".", "DF281", "\n  did you mean TMP/out?"),
        ("plain", "DF281", "TMP/plain has no ledger"),
        ("nosuch://bucket/out", "DF431", "nosuch"),
    ],
)
def test_there_is_no_such_dataset(dagflow: Dagflow, tmp_path: Path, place: str, code: str, words: str) -> None:
    sensors(tmp_path / "out")
    (tmp_path / "plain").mkdir()
    answer = dagflow("log", place)
    assert (answer.code, answer.out) == (3 if code == "DF431" else 2, "")
    assert answer.err.startswith(f"error[{code}] ")
    assert words in answer.err.replace(str(tmp_path), "TMP")


def test_there_is_no_such_entry(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    answer = dagflow("log", "out", "7")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.replace(str(tmp_path), "TMP") == "error[DF282] TMP/out has no entry 7; its newest entry is 6\n"
    assert dagflow("log", "out", "--since", "soon").code == 2
    assert dagflow("log", "out", "-n", "-1").code == 2


def test_a_damaged_ledger_is_no_short_one(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    (tmp_path / "out" / "_dagflow" / entry_name(6)).unlink()
    answer = dagflow("log", "out")
    assert answer.code == 1
    assert answer.err.startswith("error[DF505] ")
    assert json.loads(dagflow("log", "out", "--json").out)["problems"][0]["class"] == "LedgerCut"


def test_events_of_the_future_are_shown_as_far_as_they_are_known(dagflow: Dagflow, tmp_path: Path) -> None:
    from dagflow.ledger import encode_entry

    made = sensors(tmp_path / "out")
    head = made.ledger.entry(6)
    import attrs

    event = UnknownEvent("DropColumn", {"column": "value"})
    later = attrs.evolve(head, seq=7, prev_hash=head.hash, event=event, carried=head.carried.after(7, event))
    made.ledger.store.create(entry_name(7), encode_entry(later))
    assert "DropColumn" in dagflow("log", "out").out
    assert 'unknown  {"column": "value"}' in dagflow("log", "out", "7").out


@pytest.mark.full
def test_nobody_reads(tmp_path: Path) -> None:
    made = Dataset(tmp_path / "out")
    for watermark in range(1, 2000):
        made.commit({}, watermark=watermark)
    command = [sys.executable, "-m", "dagflow", "log", "out", "-n", "0", "--json"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["seq"] == 2000
    process.stdout.close()
    assert process.stderr.read() == ""
    process.wait(20)
    process.stderr.close()
