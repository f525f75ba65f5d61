from __future__ import annotations

import gc
import json
import os
import subprocess
from collections.abc import Callable

import click
import pytest

from dagflow.cli.group import COMMANDS, SECTIONS, commands
from tests.cli.conftest import LINE_FILTER, ROOT, Answer

Dagflow = Callable[..., Answer]
TAKES = {
    **dict.fromkeys(("show", "report", "ui", "log", "trace", "verify"), " DATASET"),
    "init": " NAME",
    "operators": " [NAME]",
    "explain": " [CODE]",
    "completion": " SHELL",
    "doctor": " [APP]",
    "warm": "",
}


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_all_commands_and_exit_codes(dagflow: Dagflow, option: str) -> None:
    answer = dagflow(option)
    assert answer.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in answer.out
    for code in ("0    done", "1    ", "2    ", "3    ", "130  "):
        assert code in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_the_exit_codes(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = dagflow(command, "--help")
    assert answer.code == 0
    assert f"dagflow {command} [OPTIONS]{TAKES.get(command, ' APP')}" in answer.out
    assert "130  interrupted" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    assert ("launch again to resume" in answer.out) == (command in ("launch", "dev"))
    assert ("  1    " in answer.out) == (command not in SECTIONS["general"])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_pages_are_laid_out_alike(command: str) -> None:
    """Sentences for each option, then examples, then the exit codes."""
    page = commands.get_command(click.Context(commands), command)
    assert page is not None
    helps = [option.help for option in page.params if isinstance(option, click.Option) and not option.hidden]
    assert helps or command == "completion"
    assert [text for text in helps if not text or not text[0].isupper() or not text.endswith(".")] == []
    assert (page.help or "").endswith(".")
    assert f"  dagflow {command} " in (page.epilog or "").partition("Exit codes:")[0]


def test_launch_has_an_option_for_each_setting_of_the_run(dagflow: Dagflow) -> None:
    from dagflow.config import RUN_NAMES

    text = dagflow("launch", "--help").out
    assert [name for name in RUN_NAMES if f"--{name.replace('_', '-')} " not in text] == []
    assert "--once" in text


def test_options_may_be_repeated_as_long_as_they_agree(dagflow: Dagflow) -> None:
    given = ["--runner", "local", "--fresh", "--runner", "local", "--fresh", "--no-shared-paths"]
    rows = json.loads(dagflow("config", LINE_FILTER, "-D", "input=.", "-D", "output=out", *given, "--json").out)
    values = {row["key"]: row["value"] for row in rows if row["group"] == "run" and row["origin"].startswith("--")}
    assert values == {"runner": "local", "fresh": "true", "shared_paths": "false"}
    assert dagflow("config", LINE_FILTER, "-D", "input=.", "-D", "output=out", "--fresh", "--no-fresh").code == 2


def test_version(dagflow: Dagflow) -> None:
    assert dagflow("--version").out.startswith("dagflow ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lanch"], "There is no command 'lanch'. Did you mean 'launch'?"),
        (["frobnicate"], "There is no command 'frobnicate'. Commands: launch, submit, dev, validate"),
        (["launch"], "Missing argument 'APP'"),
        (["launch", LINE_FILTER, "--runer", "local"], "--runner"),
        (["plan", LINE_FILTER, "--step", "stage"], "stage"),
        (["graph", LINE_FILTER, "-f", "png"], "png"),
        ([], "Usage"),
    ],
)
def test_a_wrong_command_line_ends_with_2(dagflow: Dagflow, arguments: list[str], words: str) -> None:
    answer = dagflow(*arguments)
    assert answer.code == 2
    assert words in answer.err + answer.out
    assert "Traceback" not in answer.err


def test_a_user_s_mistake_shows_a_traceback_only_with_debug(dagflow: Dagflow) -> None:
    answer = dagflow("validate", "nowhere")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error[DF251] no application 'nowhere'")
    debug = dagflow("validate", "nowhere", "--debug")
    assert debug.code == 2
    assert "Traceback" in debug.err
    assert "error[DF251]" in debug.err


def test_what_nobody_expected_is_one_line(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise LookupError("lost")

    monkeypatch.setattr("dagflow.cli.prepare.examine", broken)
    answer = dagflow("validate", LINE_FILTER)
    assert answer.code == 1
    assert answer.err == "internal error: LookupError: lost\n  help: --debug shows the traceback\n"
    assert "in broken" in dagflow("validate", LINE_FILTER, "--debug").err


def test_ctrl_c_anywhere_ends_with_130(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dagflow.cli.prepare.examine", interrupted)
    assert dagflow("validate", LINE_FILTER).code == 130


def test_as_a_module(begin: Callable[..., subprocess.Popen[str]]) -> None:
    out, err = begin("--version").communicate(timeout=60)
    assert out.startswith("dagflow ")
    assert err == ""


def test_a_reader_that_goes_away_is_no_error(begin: Callable[..., subprocess.Popen[str]]) -> None:
    process = begin("config", LINE_FILTER, "-D", "input=.", "-D", "output=out")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 141


def test_text_that_a_terminal_cannot_show_is_no_error(begin: Callable[..., subprocess.Popen[str]]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    process = begin("plan", LINE_FILTER, "-D", "input=.", "-D", "output=out", env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\\u2192" in out


def test_the_collector_is_left_as_it_was(dagflow: Dagflow) -> None:
    assert gc.isenabled()
    dagflow("--help")
    assert gc.isenabled()
