"""Topics whose partitions are unlike: one has nearly all messages, or one is slow."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet
import pytest

from dagflow import DAG, launch
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.scaling import Backlog
from operators import KafkaBlockReader, KafkaInput, KafkaSplitterInput, Map, ParquetWriter, RecordWriter
from tests.logs.mock_cluster import MockCluster
from tests.runtime.rebalancing.skewed import MOVED, slowly, very_slow_until
from tests.runtime.rebalancing.threads import ThreadRunner

pytestmark = pytest.mark.full
kafka = pytest.importorskip("confluent_kafka")

SECOND = 1_000_000


def produce(cluster: MockCluster, topic: str, partition: int, values: Iterable[str]) -> list[str]:
    """Produce values, a second of event time apart. Return them."""
    producer, sent = kafka.Producer({"bootstrap.servers": cluster.bootstrap}), list(values)
    for number, value in enumerate(sent):
        producer.produce(topic, value.encode(), partition=partition, timestamp=(number + 1) * 1000)
    assert producer.flush(30) == 0
    return sent


def test_idle_readers_steal_from_the_partition_that_has_nearly_all_messages(
    mock_cluster: MockCluster, name: str, tmp_path: Path
) -> None:
    """95 % of 1,000 messages are one block, and work: each of the two tasks reads a good part of it."""
    mock_cluster.create(name, 6)
    produced = produce(mock_cluster, name, 0, (f"slow {number}" for number in range(950)))
    for partition in range(1, 6):
        produced += produce(mock_cluster, name, partition, (f"quick {partition} {number}" for number in range(10)))

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_module("source", KafkaInput(mock_cluster.bootstrap, name, convert_to_record=bytes.decode))
        work = dag.add_operator("work", Map(slowly))
        dag.add_stream("read", source.messages, work.input)
        dag.add_stream("out", work.output, dag.add_operator("out", RecordWriter(str(tmp_path / "out"))).input)

    settings = {f"operator.source.reader.{limit}": 2 for limit in ("min_readers", "max_readers")}
    settings["operator.source.splitter.block_records"] = 1_000
    with very_slow_until(*MOVED):
        report = launch(populate_dag, settings, runner=ThreadRunner(), durability="process").report
    files = [path.read_text().split("\n")[:-1] for path in (tmp_path / "out").glob("part-*")]
    assert Counter(line for lines in files for line in lines) == Counter(produced)
    assert report.rebalanced > 0
    shares = [sum(line.startswith("slow") for line in lines) for lines in files]
    assert len(shares) == 2
    assert min(shares) >= 200  # of 950: a thief gets about half of what is left


_SEEN: list[tuple[dict[str, int], Backlog]] = []


@attrs.define
class NotingInput(KafkaSplitterInput):
    """Notes its positions and its backlog whenever it is asked for that."""

    def backlog(self) -> Backlog:
        """Return the backlog."""
        backlog = super().backlog()
        _SEEN.append(({name: each.offset for name, each in self.positions.items()}, backlog))
        return backlog


def decisions(folder: Path) -> Sequence[Decision]:
    log, found = WindowLog.open(str(folder), durable=False), list[Decision]()
    while (decision := log.read_decision(len(found))) is not None:
        found.append(decision)
    return found


def test_a_partition_that_answers_late_costs_time_and_nothing_else(mock_cluster: MockCluster, name: str, tmp_path: Path) -> None:
    """Windows end later. They have blocks of all partitions, watermark and backlog are right, and nothing is lost."""
    count, block, delay = 80, 20, 0.15
    mock_cluster.create(name, 3)
    for partition in range(3):
        mock_cluster.move(name, partition, partition + 1)
        produce(mock_cluster, name, partition, (f"{partition} {number}" for number in range(count)))
    mock_cluster.delay(3, round(delay * 1000))  # each answer of the leader of the last partition
    _SEEN.clear()

    def populate_dag(dag: DAG, conf: Any) -> None:
        more: dict[str, Any] = {"event_time": "timestamp", "block_records": block, "window_blocks": 3}
        blocks = dag.add_operator("splitter", NotingInput(mock_cluster.bootstrap, name, **more))
        reader = dag.add_operator("reader", KafkaBlockReader(bootstrap_servers=mock_cluster.bootstrap))
        dag.add_stream("blocks", blocks.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("read", reader.batches, dag.add_operator("out", ParquetWriter(str(tmp_path / "out"))).input)

    began = time.monotonic()
    launch(populate_dag, runner="local", run_folder=str(tmp_path / "run"), durability="process").wait()
    made = decisions(tmp_path / "run")
    assert time.monotonic() - began >= len(made) * delay, "each window has waited for it"
    rows = pyarrow.parquet.read_table(str(tmp_path / "out"), columns=["value"]).column("value").to_pylist()
    assert Counter(rows) == Counter(f"{partition} {number}".encode() for partition in range(3) for number in range(count))
    assert [each.watermarks["splitter"] for each in made] == [second * SECOND for second in (20, 40, 60, 80)]
    for positions, backlog in _SEEN:
        unread = [count - positions[f"{name}[{partition}]"] for partition in range(3)]
        assert len(set(unread)) == 1  # each window has a block of each partition
        assert backlog.items == sum(unread) // block
    assert _SEEN[0][1].items > _SEEN[-1][1].items == 0
