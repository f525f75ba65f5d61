"""The ledger of a result says how many rows came into it, and left it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, launch
from dagflow.ledger import Ledger
from operators import Filter, GroupBy, JsonLinesWriter, agg, col

FILES = ["shop,price\na,1\nb,2\n", "shop,price\na,3\nc,0\n", "shop,price\nb,-2\n", "shop,price\n"]
Application = Callable[[DAG, Any], None]


def alone(dag: DAG, conf: Any) -> None:
    dag.read(conf["input"], format="csv").to(GroupBy("shop", sold=agg.sum("price"))).to(JsonLinesWriter(conf["output"]))


def filtered(dag: DAG, conf: Any) -> None:
    totals = dag.read(conf["input"], format="csv").to(GroupBy("shop", sold=agg.sum("price")))
    totals.to(Filter(col("sold") > 0)).to(JsonLinesWriter(conf["output"]))


def partitioned(dag: DAG, conf: Any) -> None:
    totals = dag.read(conf["input"], format="csv").to(GroupBy("shop", sold=agg.sum("price")))
    totals.to(JsonLinesWriter(conf["output"], partition_columns=["shop"]))


def changelog(dag: DAG, conf: Any) -> None:
    totals = dag.read(conf["input"], format="csv").to(GroupBy("shop", sold=agg.sum("price")))
    totals.to(JsonLinesWriter(conf["output"], mode="changelog"))


def appended(dag: DAG, conf: Any) -> None:
    dag.read(conf["input"], format="csv").to(JsonLinesWriter(conf["output"]))


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (alone, [(2, 0), (2, 1), (1, 1)]),
        (filtered, [(2, 0), (1, 1), (0, 1)]),
        (partitioned, [(2, 0), (2, 1), (1, 1)]),
        (changelog, [(2, 0), (2, 1), (1, 1)]),
        (appended, []),
    ],
)
def test_each_launch_counts_its_changes(application: Application, expected: list[tuple[int, int]], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate(FILES):
        (tmp_path / "in" / f"{number}.csv").write_text(text)
        launch(application, {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}, runner="local")
    entries = [entry.data for entry in Ledger.open(str(tmp_path / "out")).entries() if entry.data is not None]
    changes = [entry.extra["changes"] for entry in entries if "changes" in entry.extra]
    assert [(each["inserted"], each["retracted"]) for each in changes] == expected
