"""`dagflow submit`: what is printed, what is refused, and what --yes runs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dagflow.packaging.package as packaging
from dagflow.packaging.libraries import Library
from tests.cli.conftest import LINE_FILTER, ROOT, Answer

Dagflow = Callable[..., Answer]
GIVEN = ["-D", "input=s3://logs", "-D", "output=s3://results"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own, and no real libraries in a package."""

    def libraries(*given: Any) -> list[Library]:
        return [Library("six", "1.17", {"six.py": tmp_path / "six.py"})]

    (tmp_path / "six.py").touch()
    monkeypatch.setattr(packaging, "_libraries_here", libraries)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def words_of(answer: Answer) -> list[str]:
    assert (answer.code, answer.err) == (0, "")
    return shlex.split(answer.out.replace("\\\n", " "))


def test_a_line_for_yarn_starts_a_program_that_is_there(dagflow: Dagflow) -> None:
    words = words_of(dagflow("submit", LINE_FILTER, "--to", "yarn", *GIVEN, "-D", "spark.executor.memory=4g"))
    assert words[:5] == ["spark-submit", "--master", "yarn", "--deploy-mode", "client"]
    assert "spark.executor.memory=4g" in words
    main = Path(words[words.index("launch") - 1])
    compile(main.read_text(encoding="utf-8"), str(main), "exec")
    assert os.listdir(main.parent) == [main.name], "beside it, no module hides another"
    assert words[words.index("launch") :][:2] == ["launch", LINE_FILTER]


def test_a_package_goes_along_and_is_not_sent_twice(dagflow: Dagflow) -> None:
    line = ["submit", LINE_FILTER, "--to", "yarn", "--deploy-mode", "cluster", "--package", *GIVEN]
    words = words_of(dagflow(*line))
    assert any(word.startswith("spark.archives=") and word.endswith("#environment") for word in words)
    assert words[words.index("launch") :][:2] == ["launch", "app:populate_dag"]
    assert "--package" not in words


@pytest.mark.parametrize(
    "where",
    [["--to", "yarn", "--deploy-mode", "cluster", "--package"], ["--to", "kubernetes", "--image", "o:1"]],
    ids=["yarn", "kubernetes"],
)
def test_a_driver_elsewhere_gets_the_settings_of_this_machine(
    dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: list[str]
) -> None:
    conf = tmp_path / "settings.toml"
    conf.write_text('prefix = "#"\nwindow = "5s"\n[operator.reader]\nmax_readers = 7\n')
    monkeypatch.setenv("DAGFLOW_PREFIX", ";")
    monkeypatch.setenv("DAGFLOW_MAX_WINDOWS", "3")
    answer = dagflow("submit", LINE_FILTER, *where, *GIVEN, "--conf", str(conf))
    assert (answer.code, answer.err) == (0, "")
    for text in ("prefix=#", "operator.reader.max_readers=7", "window=5s", "max_windows=3"):
        assert text in answer.out
    assert str(conf) not in answer.out
    assert "prefix=;" not in answer.out


def test_secrets_of_this_machine_are_left_out_and_named(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGFLOW_DATABASE", "postgresql://ada:hunter2@db/shop")
    where = ["--to", "kubernetes", "--image", "o:1"]
    answer = dagflow(
        "submit", str(ROOT / "apps/orders"), *where, "-D", "input=s3://in", "-D", "output=s3://o", "-D", "catalog=sqlite:////d"
    )
    assert answer.code == 0, answer.err
    assert "hunter2" not in answer.out + answer.err
    assert "database (env DAGFLOW_DATABASE) holds a secret and is left out" in answer.err


def test_kubernetes_gets_a_manifest(dagflow: Dagflow) -> None:
    answer = dagflow("submit", LINE_FILTER, "--to", "kubernetes", "--image", "o:1", *GIVEN)
    assert (answer.code, answer.err) == (0, "")
    assert "kind: Job" in answer.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--to", "standalone"], "--master spark://HOST:PORT"),
        (["--to", "kubernetes"], "--image IMAGE"),
        (["--to", "connect"], "--remote sc://HOST:PORT"),
        (["--to", "yarn", "--deploy-mode", "cluster"], "--package: its hosts lack"),
        (["--to", "connect", "--remote", "sc://h:15002/;token=hunter2"], "DF278"),
        (["--to", "yarn", "-D", "spark.hadoop.fs.s3a.secret.key=hunter2"], "DF278"),
        (["--to", "standalone", "--deploy-mode", "cluster", "--master", "spark://h:7077"], "DF279"),
    ],
)
def test_what_is_missing_or_cannot_be_is_told(dagflow: Dagflow, given: list[str], message: str) -> None:
    answer = dagflow("submit", LINE_FILTER, *GIVEN, *given)
    assert answer.code != 0
    assert answer.out == ""
    assert message in answer.err
    assert "hunter2" not in answer.err


@pytest.mark.parametrize(
    ("given", "dropped"),
    [
        (["--to", "yarn", "--image", "o:1", "--executors", "2"], ["--image", "--executors"]),
        (["--to", "standalone", "--master", "spark://h:7077", "--claim", "data", "--secret", "s"], ["--secret", "--claim"]),
        (["--to", "kubernetes", "--image", "o:1", "--deploy-mode", "client"], ["--deploy-mode"]),
        (["--to", "yarn", "--master", "spark://h:7077"], ["--master"]),
        (["--to", "yarn", "-D", "run.remote=sc://h:15002"], ["--remote"]),
        (["--to", "connect", "--remote", "sc://h:15002", "--namespace", "jobs"], ["--namespace"]),
        (["--to", "yarn", "--package-with", "polars"], ["--package-with"]),
        (["--to", "yarn", "--runner", "local"], ["--runner local"]),
    ],
)
def test_no_option_is_dropped_silently(dagflow: Dagflow, given: list[str], dropped: list[str]) -> None:
    answer = dagflow("submit", LINE_FILTER, *GIVEN, *given)
    assert (answer.code, answer.out) == (2, "")
    assert f"--to {given[1]} has no use for these, leave them out" in answer.err
    assert [line.strip().partition(" (")[0] for line in answer.err.splitlines() if line.startswith("  --")] == dropped


def test_json_is_passed_on(dagflow: Dagflow) -> None:
    assert "--json" in dagflow("submit", LINE_FILTER, *GIVEN, "--to", "yarn", "--json").out.split()


def test_yes_runs_it_and_passes_its_exit_code_on(dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = tmp_path / "bin/spark-submit"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\necho "$@" > {shlex.quote(str(tmp_path / "given"))}\nexit 7\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)
    assert dagflow("submit", LINE_FILTER, "--to", "yarn", *GIVEN, "--yes").code == 7
    assert "--master yarn" in (tmp_path / "given").read_text()


def test_without_spark_submit_yes_says_so(dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = dagflow("submit", LINE_FILTER, "--to", "yarn", *GIVEN, "--yes")
    assert answer.code != 0
    assert "spark-submit" in answer.err.splitlines()[0]
