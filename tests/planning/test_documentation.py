"""The settings of Spark that docs/explanation/exchanges.md lists are those that are pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "exchanges.md"


@pytest.mark.spark
def test_the_spark_settings_that_are_pinned_are_documented() -> None:
    from dagflow.spark.dataframes.levels import PINNED

    told = re.findall(r"^\| `(spark\.[\w.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == list(PINNED)
