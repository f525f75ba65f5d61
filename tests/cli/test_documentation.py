from __future__ import annotations

from pathlib import Path

import pytest

from dagflow.cli.group import COMMANDS
from dagflow.config import RUN_NAMES
from dagflow.planning.steps import PHASES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def test_all_commands_options_and_steps_are_told_of() -> None:
    assert [name for name in COMMANDS if f"dagflow {name} " not in TEXT and f"## {name}\n" not in TEXT] == []
    assert [name for name in RUN_NAMES if f"`--{name.replace('_', '-')}" not in TEXT] == []
    assert [step for step in PHASES if f"| `{step}` |" not in TEXT] == []


SHOWN = ("graph_diamond.txt", "error_port_type.txt", "cli_log.txt", "cli_verify_damaged.txt", "trace_exact.txt")


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_what_is_printed(name: str) -> None:
    assert (ROOT / "tests" / "golden" / name).read_text(encoding="utf-8") in TEXT


def test_the_report_that_is_shown_is_what_is_printed() -> None:
    golden = (ROOT / "tests" / "golden" / "cli_launch_out.txt").read_text(encoding="utf-8")
    assert golden.partition("\n\n")[0] in TEXT
