"""The examples of docs/explanation/exchanges.md run, and what it says of settings is so."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "exchanges.md"


def test_the_examples_run() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


@pytest.mark.spark
def test_the_settings_that_are_pinned_are_told() -> None:
    from dagflow.spark.levels import PINNED

    told = re.findall(r"^\| `(spark\.[\w.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == list(PINNED)
