"""Keys that are equal meet: in one partition, group and join, whatever their class compares and in whatever form they travel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.model.types.forms import schema_of
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import Count, HashJoin
from tests.conformance.keys.exchanges import read
from tests.conformance.keys.keyed_classes import GROUPS, KINDS, Item, MakeItems, Place

LINES = 600
"""Of one file; enough at once that they are spread as a batch, where keys have columns."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "many.txt").write_text("".join(f"{number}\n" for number in range(LINES)))
    (folder / "few.txt").write_text("".join(f"{number}\n" for number in range(LINES, LINES + 2 * GROUPS)))
    return folder


def meet(source: Path, kind: str, runner: str) -> tuple[dict[int, set[int]], list[int], Counter[int]]:
    """The partitions that each group was in, the sizes of what was counted, and the pairs of each group."""
    tp: Any = KINDS[kind][0]
    places, counts, pairs = Collector[Any](), Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, block_size=1 << 20)
        items = dag.add_operator("items", MakeItems[tp](kind))
        place = dag.add_operator("place", Place[tp](), partitioner=StatelessPartitioner(5))
        count = dag.add_operator("count", Count[Item[tp], tp](by="key"), partitioner=StatelessPartitioner(5))
        scope: Any = "window" if schema_of(Item[tp]) is None else "all"  # what has no columns cannot be kept
        both = HashJoin[Any, Any, Any](
            "key", combine=lambda one, other: one.group if one.group == other.group else -1, scope=scope
        )
        join = dag.add_operator("join", both, partitioner=StatelessPartitioner(5))
        dag.add_stream("text", lines.messages, items.input)
        dag.add_stream("made", items.output, place.input, count.input, join.left, join.right)
        dag.add_stream("places", place.output, dag.add_operator("places", places).input)
        dag.add_stream("counts", count.output, dag.add_operator("counts", counts).input)
        dag.add_stream("pairs", join.output, dag.add_operator("pairs", pairs).input)

    run_dag(populate_dag, runner=runner)
    partitions: dict[int, set[int]] = {}
    for group, partition in places.records:
        partitions.setdefault(group, set()).add(partition)
    return partitions, sorted(found.value for found in counts.records), Counter(pairs.records)


def check(source: Path, kind: str, runner: str) -> None:
    partitions, counts, pairs = meet(source, kind, runner)
    each = LINES // GROUPS + 2
    assert {group: len(found) for group, found in partitions.items()} == dict.fromkeys(range(GROUPS), 1)
    assert len(set.union(*partitions.values())) > 1
    assert counts == [each] * GROUPS
    matched = [group for group in range(GROUPS) if KINDS[kind][1](group, 0) is not None]  # None matches nothing
    assert pairs == dict.fromkeys(matched, each * each)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_keys_meet(source: Path, kind: str) -> None:
    check(source, kind, "local")


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["a class in a class", "a dataclass", "numbers"])
def test_equal_keys_meet_on_spark(spark_session: Any, source: Path, kind: str) -> None:
    check(source, kind, "spark")
