"""Keys and masks that a partitioner deals: each partition gets exactly the records whose hash & mask is one of its keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, MapState, Operator, OutputPort, WindowState
from dagflow.errors import KeysMisassigned
from dagflow.launching.launch import launch
from dagflow.local.runner import LocalRunner
from dagflow.model.operator.context import OperatorContext
from dagflow.runtime.task.execute import MAPS
from dagflow.scaling import (
    Partition,
    PartitioningContext,
    PartitionKeys,
    Response,
    StatelessPartitioner,
    assign_partition_keys,
    key_hash,
    resized,
)
from dagflow.testing import Collector, run_dag
from operators import Filter, FlatMap
from tests.conformance.keys.exchanges import Counted, read, words
from tests.conformance.windows import InWindows

WORDS = [f"word{n}" for n in range(200)]


@attrs.define
class Located:
    word: str
    partition: int
    total: int


@attrs.define
class Locate(Operator):
    """Says of each word to which partition it came, and how often it was there in all windows so far."""

    input = InputPort[Counted](partition_by="word")
    output = OutputPort[Located]()
    totals = MapState[str, int]()

    def setup(self, context: OperatorContext) -> None:
        self.__dict__["partition"] = context.partition

    @input.process
    def each(self, counted: Counted) -> None:
        self.totals[counted.word] = self.totals.get(counted.word, 0) + counted.n
        self.output.emit(Located(counted.word, self.__dict__["partition"], self.totals[counted.word]))


@attrs.define
class Pair(Operator):
    """Emits the words that both of its inputs have."""

    scope = "window"

    left = InputPort[Counted](partition_by="word")
    right = InputPort[Counted](partition_by="word")
    output = OutputPort[str]()
    seen = WindowState[dict[str, set[str]]](factory=dict)

    @left.process
    def each_left(self, counted: Counted) -> None:
        self.seen.setdefault(counted.word, set()).add("left")

    @right.process
    def each_right(self, counted: Counted) -> None:
        self.seen.setdefault(counted.word, set()).add("right")

    def end_window(self) -> None:
        self.output.emit_all(word for word, sides in self.seen.items() if len(sides) == 2)


@attrs.define
class Dealt:
    """Deals keys as it is told: window by window, the last ones for all further windows."""

    deals: list[list[PartitionKeys]]
    port: str = "input"
    window: int = -1

    def process_stats(self, stats: Any) -> Response:
        self.window += 1
        return Response(repartition_required=True)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        dealt = self.deals[min(max(self.window, 0), len(self.deals) - 1)]
        found = resized(partitions, len(dealt))
        for partition, keys in zip(found, dealt, strict=True):
            partition.keys[self.port] = keys
        return found


def keys(mask: int, *of: int) -> PartitionKeys:
    return PartitionKeys(mask, frozenset(of))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    return folder


def located(source: Path, partitioner: Any, seen: Collector[Located], **splitter: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, **splitter)
        split = dag.add_operator("words", FlatMap(words))
        locate = dag.add_operator("locate", Locate(), partitioner=partitioner)
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, locate.input)
        dag.add_stream("located", locate.output, dag.add_operator("seen", seen).input)

    return populate_dag


@pytest.mark.parametrize(
    "dealt",
    [
        [keys(3, 0, 3), keys(3, 1), keys(3, 2)],
        [keys(7, 6), keys(7, 0, 1, 2, 3, 4, 5, 7)],
        [keys(1, 1), keys(3, 0), keys(1), keys(3, 2)],
    ],
    ids=["as the original deals them", "two of a hot key's own", "masks of different widths, and one without keys"],
)
def test_a_partitioner_of_ones_own(runner: str, source: Path, dealt: list[PartitionKeys]) -> None:
    seen = Collector[Located]()
    run_dag(located(source, Dealt([dealt]), seen), runner=runner)
    found = {(record.word, record.partition) for record in seen.records}
    assert found == {(word, n) for word in WORDS for n, each in enumerate(dealt) if each.holds(key_hash(word))}
    assert len(seen.records) == len(WORDS)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_the_shipped_partitioners(runner: str, source: Path, count: int) -> None:
    seen = Collector[Located]()
    run_dag(located(source, StatelessPartitioner(count), seen), runner=runner)
    dealt = resized([Partition()], count)
    assign_partition_keys(dealt, "input")
    for record in seen.records:
        assert dealt[record.partition].keys["input"].holds(key_hash(record.word))
    assert {record.word for record in seen.records} == set(WORDS)


class Eight(LocalRunner):
    slots = 8


def test_without_a_partitioner_keys_are_dealt_evenly(source: Path) -> None:
    """Each partition has a run of neighbouring hashes."""
    seen = Collector[Located]()
    report = launch(located(source, None, seen, block_size=400), runner=Eight(), durability="process").report
    count = report.readers["locate"].now
    assert count > 3
    for record in seen.records:
        assert record.partition == (key_hash(record.word) & 0xFFFF) * count // 0x10000
    assert len(Counter(record.partition for record in seen.records)) == count


def test_state_follows_its_keys_from_window_to_window(runner: str, source: Path, tmp_path: Path) -> None:
    """The number of partitions stays, what they have does not; then the number changes too. Also over launches."""
    text = "".join(f"{word}\n" for word in WORDS[:20])
    for name in "abc":
        (source / f"{name}.txt").write_text(text)
    (source / "words.txt").unlink()
    deals = [
        [keys(3, 0, 3), keys(3, 1), keys(3, 2)],
        [keys(3, 2), keys(3, 0), keys(3, 1, 3)],
        [keys(1, 1), keys(1, 0)],
    ]
    run_folder, seen = str(tmp_path / "run"), Collector[Located]()
    application = located(source, Dealt(deals), seen, blocks_threshold=1, block_size=10_000)
    assert run_dag(application, runner=runner, run_folder=run_folder).windows == 3
    assert Counter(record.total for record in seen.records) == {1: 20, 2: 20, 3: 20}
    assert all(keys(1, 1 - record.partition).holds(key_hash(record.word)) for record in seen.records if record.total == 3)
    for partitioner in (StatelessPartitioner(3), None, StatelessPartitioner(2)):
        MAPS.clear()  # another process
        (source / f"{partitioner}.txt").write_text(text)
        seen.clear()
        run_dag(located(source, partitioner, seen, block_size=10_000), runner=runner, run_folder=run_folder)
        assert len({record.total for record in seen.records}) == 1
    assert {record.total for record in seen.records} == {6}


def test_records_of_two_ports_meet(runner: str, source: Path) -> None:
    seen = Collector[str]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        one, other = dag.add_operator("one", FlatMap(words)), dag.add_operator("other", FlatMap(words))
        pair = dag.add_operator("pair", Pair(), partitioner=Dealt([[keys(1, 1), keys(1, 0)]], "left"))
        dag.add_stream("text", lines.messages, one.input, other.input)
        dag.add_stream("left", one.output, pair.left)
        dag.add_stream("right", other.output, pair.right)
        dag.add_stream("paired", pair.output, dag.add_operator("seen", seen).input)

    run_dag(populate_dag, runner=runner)
    assert sorted(seen.records) == sorted(WORDS)


def test_keys_of_nobody_end_the_run_before_its_first_window(source: Path) -> None:
    with pytest.raises(
        KeysMisassigned, match=r"the keys of port locate\.input \(hash & 3\) .*\n  to no partition: 3\n  to several: 1"
    ):
        run_dag(located(source, Dealt([[keys(3, 0, 1), keys(3, 1, 2)]]), Collector[Located]()), runner="local")


@attrs.define
class InPartition(Operator):
    """Emits the key of each row, with the partition that it has come to."""

    input = InputPort[Any](partition_by="k")
    output = OutputPort[tuple[int, int]]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    @input.process
    def each(self, row: dict[str, int]) -> None:
        self.output.emit((row["k"], self.context.partition))


def test_a_dict_is_a_row_with_a_key() -> None:
    seen = Collector[tuple[int, int]]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Any]([[{"k": n % 5, "v": n} for n in range(20)]]))
        keep = dag.add_operator("keep", Filter[Any](lambda row: row["v"] > 3))
        keyed = dag.add_operator("keyed", InPartition())
        dag.add_operator("seen", seen)
        dag.set_attributes(keyed, partitioner=StatelessPartitioner(3))
        dag.add_stream("all", source.output, keep.input)
        dag.add_stream("kept", keep.output, keyed.input)
        dag.add_stream("keys", keyed.output, seen.input)

    run_dag(populate_dag)
    assert len(seen.records) == 16
    assert {key for key, _ in seen.records} == {0, 1, 2, 3, 4}
    assert len(set(seen.records)) == 5
