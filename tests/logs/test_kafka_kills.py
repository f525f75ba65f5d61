"""Launches that die while they read a topic that grows: continued, they give each message once."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.ledger import read_dataset
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.testing import run_dag
from operators import KafkaInput, ParquetWriter
from operators.logs.kafka.stream import KafkaStream
from operators.logs.splitter_input import AbstractLogSplitterInput
from tests.chaos.dying import after, before, die_at, in_child
from tests.logs.mock_cluster import MockCluster

pytestmark = [pytest.mark.full, pytest.mark.chaos]
kafka = pytest.importorskip("confluent_kafka")

STEPS = {
    "before a window is planned": before("_plan", AbstractLogSplitterInput),
    "after a window is planned": after("_plan", AbstractLogSplitterInput),
    "before messages are read": before("read", KafkaStream),
    "after messages are read": after("read", KafkaStream),
    "after the decision": after("decide", WindowLog),
    "before the mark": before("done", WindowLog),
}
"""The steps at which a launch is killed."""


def produce(cluster: MockCluster, topic: str, first: int, count: int) -> None:
    producer = kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def launched(cluster: MockCluster, topic: str, folder: Path, point: tuple[str, int] | None = None) -> int:
    """Launch in a child, which is killed at a point. Return its exit status."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_module("source", KafkaInput(cluster.bootstrap, topic))
        dag.add_stream("read", source.batches, dag.add_operator("out", ParquetWriter(str(folder / "out"))).input)

    def work() -> None:
        if point is not None:
            die_at(STEPS[point[0]], point[1])
        settings = {"operator.source.splitter.block_records": 4, "operator.source.splitter.window_blocks": 3}
        run_dag(populate_dag, settings, run_folder=str(folder / "run"), windows_in_flight=2)

    return in_child(work)


def written(folder: Path) -> list[int]:
    return sorted(int(value.as_py()) for value in read_dataset(folder / "out").to_table().column("value"))


@pytest.mark.parametrize("step", STEPS)
def test_killed_launches_that_are_continued_give_each_message_once(
    step: str, mock_cluster: MockCluster, name: str, tmp_path: Path
) -> None:
    mock_cluster.create(name, 2)
    produce(mock_cluster, name, 0, 40)
    for number, call in enumerate((1, 0, 1)):
        assert launched(mock_cluster, name, tmp_path, (step, call)) == -signal.SIGKILL
        produce(mock_cluster, name, 40 + number * 30, 30)
    for _ in range(2):
        assert launched(mock_cluster, name, tmp_path) == 0
        assert written(tmp_path) == list(range(130))
