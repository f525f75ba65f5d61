from __future__ import annotations

import shlex

import pytest

from dagflow.page.run.resume import resume_command
from dagflow.runtime.run_folder.launch_record import LaunchRecord


def record(*settings: list[str], definitions: tuple[str, ...] = (), application: str = "app") -> LaunchRecord:
    return LaunchRecord(
        application=application, name="app", folder="/my data", definitions=list(definitions), settings=list(settings)
    )


@pytest.mark.parametrize(
    ("settings", "definitions", "words"),
    [
        ([["application", "input", "a b", "-D"]], ["input=a b"], ["-D", "input=a b"]),
        ([["application", "input", "logs", "env DAGFLOW_INPUT"]], ["input=logs"], ["-D", "input=logs"]),
        ([["application", "input", "logs", "conf/my.toml:3"]], [], ["--conf", "conf/my.toml"]),
        ([["application", "a", "1", "c.toml:1"], ["application", "b", "1", "c.toml:2"]], [], ["--conf", "c.toml"]),
        ([["run", "slots", "2", "--slots"], ["run", "name", "x", "default"]], [], ["--slots", "2"]),
        ([["run", "continuous", "false", "--continuous"]], [], ["--once"]),
        ([["run", "shared_paths", "false", "--shared-paths"]], [], ["--no-shared-paths"]),
        ([["run", "timings", "true", "--timings"]], [], ["--timings"]),
        ([["run", "fresh", "true", "--fresh"]], [], []),
    ],
)
def test_the_command_says_what_the_launch_said(settings: list[list[str]], definitions: list[str], words: list[str]) -> None:
    command = resume_command(record(*settings, definitions=tuple(definitions)))
    assert command is not None
    assert shlex.split(command) == ["cd", "/my data", "&&", "dagflow", "launch", "app", *words]


def test_a_launch_that_code_started_has_no_command() -> None:
    assert resume_command(record(["application", "input", "logs", "code"])) is None
    assert resume_command(record(application="")) is None
