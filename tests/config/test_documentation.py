"""The tables of docs/reference/settings.md."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from dagflow.config import Bytes, Millis, Seconds, effective, from_text, read_layers
from dagflow.config.values.conversion import Mismatch

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
TEXT = PAGE.read_text(encoding="utf-8")


class Colour(enum.Enum):
    RED = 1


NAMES = {"Bytes": Bytes, "Seconds": Seconds, "Millis": Millis, "Literal": Literal, "Path": Path, "re": re, "Colour": Colour}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cells without their backticks."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("row", table("Values"), ids=lambda row: f"{row[0]}: {row[1]}")
def test_the_table_of_values(row: list[str]) -> None:
    written, text, value = row
    hint: Any = eval(written.replace(" / None", " | None"), NAMES)
    if value == "error":
        with pytest.raises(Mismatch):
            from_text(hint, text)
    else:
        assert repr(from_text(hint, text)) == value.replace("PosixPath", type(Path()).__name__)


def test_the_table_of_the_settings_of_the_run() -> None:
    rows = [row for row in effective(None, read_layers()) if row.group == "run"]
    assert table("Settings of the run") == [[row.key, row.type.replace("|", "/"), row.value, row.doc] for row in rows]
