"""Typed columns of messages from brokers: poisoned ones are routed, and two launches read each message once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, launch
from dagflow.testing import Collector
from operators import KafkaScanInput, NatsScanInput
from tests.logs.any_log import AnyLog, InKafka, InNats

SCHEMA = "page: string, number: int64"


@pytest.fixture(params=["nats", "kafka"])
def any_log(request: pytest.FixtureRequest, name: str) -> AnyLog:
    """A topic of a broker, without messages."""
    if request.param == "kafka":
        return InKafka(name, request.getfixturevalue("mock_cluster"))
    pytest.importorskip("nats", reason="nats-py is not installed: pip install 'dagflow[nats]'")
    return InNats(name, request.getfixturevalue("shared_nats").url)


def scan(any_log: AnyLog, **properties: Any) -> Any:
    if isinstance(any_log, InKafka):
        return KafkaScanInput(any_log.cluster.bootstrap, any_log.topic, schema=SCHEMA, on_bad_row="route", **properties)
    assert isinstance(any_log, InNats)
    return NatsScanInput(
        any_log.url, topics=any_log.topic, subjects=any_log.subjects, schema=SCHEMA, on_bad_row="route", **properties
    )


def value(number: int) -> bytes:
    """A click. Every tenth message is poisoned."""
    return b'{"page": ' if number % 10 == 3 else json.dumps({"page": f"/{number}", "number": number}).encode()


@pytest.mark.full
def test_columns_come_once_and_poisoned_messages_are_routed(any_log: AnyLog, tmp_path: Path) -> None:
    rows: Collector[Any] = Collector()
    bad: Collector[Any] = Collector()

    def populate_dag(dag: DAG, conf: Any) -> None:
        clicks = dag.add_module("clicks", scan(any_log, max_readers=2))
        dag.add_stream("rows", clicks.batches, dag.add_operator("seen", rows).input)
        dag.add_stream("bad", clicks.errors, dag.add_operator("rejects", bad).input)

    for start, stop in ((0, 25), (25, 40)):
        any_log.append(*map(value, range(start, stop)))
        launch(populate_dag, runner="local", slots=1, run_folder=str(tmp_path / "run"), durability="process")
    good = [number for number in range(40) if number % 10 != 3]
    found = sorted((dict(row) for row in rows.records), key=lambda row: row["number"])
    assert [(row["number"], row["page"]) for row in found] == [(number, f"/{number}") for number in good]
    first = min(row["offset"] for row in found)  # JetStream counts from 1
    assert [row["offset"] - first for row in found] == good
    assert sorted(each.position - first for each in bad.records) == [3, 13, 23, 33]
    assert {each.raw for each in bad.records} == {'{"page": '}
