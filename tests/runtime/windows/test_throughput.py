"""Partitioners hear how quick partitions were, and can go by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.launching.launch import launch
from dagflow.runtime.events import ReadersChanged
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.windows.readers import Pace, later
from dagflow.scaling import UNASSIGNED, BacklogPartitioner, Load, OperatorStats, Response, resized
from operators import BlockReader, RecordWriter
from tests.conformance.apps import chain, lines_in


@attrs.define
class Throughput:
    """One partition more where they pass on more than so many records a second each, one less where fewer."""

    least: float
    most: float
    told: list[list[OperatorStats]] = attrs.field(factory=list)
    wanted: int = 1

    def process_stats(self, stats: Any) -> Response:
        self.told.append([each for each in stats if each.operator_id != UNASSIGNED])
        rates = [each.records_out_per_second for each in self.told[-1] if each.records_out_per_second is not None]
        mean = sum(rates) / len(rates) if rates else None
        step = 0 if mean is None else (mean > self.most) - (mean < self.least)
        self.wanted = max(1, min(4, len(self.told[-1]) + step))
        return Response(repartition_required=self.wanted != len(self.told[-1]))

    def define_partitions(self, partitions: Any, context: Any) -> Any:
        return resized(partitions, self.wanted)


def run(tmp_path: Path, partitioner: Any) -> tuple[list[tuple[int, int]], Any]:
    """The readers' changes over eight windows of two blocks each."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(16):
        (folder / f"{number:02d}.txt").write_text("a line\n" * 50)
    events: list[Any] = []
    reader: Any = BlockReader()
    reader.partitioner = partitioner
    application = chain(folder, sink=RecordWriter(str(tmp_path / "out")), reader=reader, blocks_threshold=2)
    report = launch(application, runner="local", durability="process", windows_in_flight=1, subscribers=[events.append]).report
    assert sum(lines_in(tmp_path / "out").values()) == 800
    return [(each.before, each.readers) for each in events if isinstance(each, ReadersChanged)], report


def test_a_partitioner_by_throughput_scales_up(tmp_path: Path) -> None:
    """Any pace at all is more than none: so it does not depend on the machine."""
    partitioner = Throughput(least=-1.0, most=0.0)
    changes, report = run(tmp_path, partitioner)
    assert changes == [(1, 2), (2, 3), (3, 4)]
    assert report.readers["lines"].now == 4


def test_and_down(tmp_path: Path) -> None:
    partitioner = Throughput(least=1e18, most=1e19, wanted=3)
    changes, _ = run(tmp_path, partitioner)
    assert changes == [(3, 2), (2, 1)]


def test_what_is_told() -> None:
    def done(number: int, records: int, seconds: float) -> TaskOutcome:
        return TaskOutcome(
            task=f"s0-{number:04d}", attempt="1", started=5.0, ended=5.0 + seconds, records=records, records_in=records // 10
        )

    first = later({}, [done(0, 100, 2.0), done(2, 10, 1.0)], 2, 4.0)  # number 2: of a further job
    assert first == {0: Pace(records_in=11 / 3, records_out=110 / 3, latency=4.0)}
    second = later(first, [done(0, 300, 3.0), done(1, 40, 1.0)], 2, 2.0)
    assert second[0].records_out == pytest.approx((110 / 3 + 100) / 2)
    assert second[0].latency == 3.0
    assert second[1].records_out == 40.0
    assert set(later(second, [], 1, None)) == {0}
    assert later(second, [done(0, 5, 0.0)], 2, 1.0) == second  # no time has passed: nothing is known


def test_a_policy_hears_the_sum_of_all_readers() -> None:
    heard: list[Load] = []

    class Policy:
        name = "mine"

        def readers(self, load: Load) -> int:
            heard.append(load)
            return 2

    partitioner = BacklogPartitioner(1, 4, policy=Policy())
    paces = [OperatorStats(0, 1, 1, 1.0, 10.0, 0.5), OperatorStats(1, 1, 1, 2.0, 20.0, 0.7), OperatorStats(UNASSIGNED, 1)]
    partitioner.process_stats(paces)
    assert (heard[0].records_in_per_second, heard[0].records_out_per_second, heard[0].latency) == (3.0, 30.0, 0.7)
