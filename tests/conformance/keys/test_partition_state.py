"""The state of operators in tasks over windows: the same on both runners."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import InputPort, Operator, OperatorContext, OutputPort, ReaderRecord, State
from dagflow.testing import Collector, run_dag
from operators import BlockReader
from tests.conformance.apps import chain


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(6):
        (folder / f"{n}.txt").write_text("".join(f"{word}\n" for word in "abcde"[: n + 1]))
    return folder


def added(parts: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


@attrs.define
class Word:
    """An attrs class in a state."""

    text: str = ""
    length: int = 0


def longest(parts: list[Word]) -> Word:
    return max(parts, key=lambda word: word.length)


@attrs.define
class Counts(Operator):
    """Counts lines over all windows; tells at each window's end what setup found, and what there is now."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    count = State(0, merge=sum)
    words = State[dict[str, int]](factory=dict, merge=added)
    word = State[Word](Word(), merge=longest)

    def setup(self, context: OperatorContext) -> None:
        self.context = context
        self.found = self.count

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.count += 1
        self.words[line.record] = self.words.get(line.record, 0) + 1
        if len(line.record) > self.word.length:
            self.word = Word(line.record, len(line.record))

    def end_window(self) -> None:
        where = f"{self.context.window} {self.context.partition}/{self.context.partitions}"
        self.output.emit(f"{where}: {self.found} → {self.count} {dict(sorted(self.words.items()))} {self.word.text}")


def told(runner: str, source: Path, readers: int = 1, **options: Any) -> list[str]:
    seen = Collector[str]()
    reader = BlockReader[str](min_readers=readers, max_readers=readers)
    run_dag(chain(source, Counts(), sink=seen, reader=reader, blocks_threshold=2), runner=runner, **options)
    return seen.records


def test_goes_on_from_window_to_window(runner: str, source: Path) -> None:
    assert told(runner, source) == [
        "0 0/1: 0 → 3 {'a': 2, 'b': 1} a",
        "1 0/1: 3 → 10 {'a': 4, 'b': 3, 'c': 2, 'd': 1} a",
        "2 0/1: 10 → 20 {'a': 6, 'b': 5, 'c': 4, 'd': 3, 'e': 2} a",
    ]


def test_each_partition_has_its_own(runner: str, source: Path) -> None:
    assert told(runner, source, readers=2) == [
        "0 0/2: 0 → 1 {'a': 1} a",
        "0 1/2: 0 → 2 {'a': 1, 'b': 1} a",
        "1 0/2: 1 → 4 {'a': 2, 'b': 1, 'c': 1} a",
        "1 1/2: 2 → 6 {'a': 2, 'b': 2, 'c': 1, 'd': 1} a",
        "2 0/2: 4 → 9 {'a': 3, 'b': 2, 'c': 2, 'd': 1, 'e': 1} a",
        "2 1/2: 6 → 11 {'a': 3, 'b': 3, 'c': 2, 'd': 2, 'e': 1} a",
    ]


@pytest.mark.full
def test_states_merge_and_begin_anew_as_partitions_come_and_go(runner: str, source: Path, tmp_path: Path) -> None:
    seen = Collector[str]()
    for readers in (3, 1, 2):
        reader = BlockReader[str](min_readers=readers, max_readers=readers)
        application = chain(source, Counts(), sink=seen, reader=reader, blocks_threshold=2)
        assert run_dag(application, runner=runner, run_folder=str(tmp_path / "run"), max_windows=1).windows == 1
    assert seen.records == [
        "0 0/3: 0 → 1 {'a': 1} a",
        "0 1/3: 0 → 2 {'a': 1, 'b': 1} a",
        "0 2/3: 0 → 0 {} ",  # two blocks for three readers: the last one has none
        "1 0/1: 3 → 10 {'a': 4, 'b': 3, 'c': 2, 'd': 1} a",
        "2 0/2: 10 → 15 {'a': 5, 'b': 4, 'c': 3, 'd': 2, 'e': 1} a",
        "2 1/2: 0 → 5 {'a': 1, 'b': 1, 'c': 1, 'd': 1, 'e': 1} a",
    ]


def test_large_states_go_through_objects_of_the_run_folder(runner: str, source: Path, tmp_path: Path) -> None:
    @attrs.define
    class Large(Operator):
        input = InputPort[ReaderRecord[str]]()
        output = OutputPort[int]()
        text = State("", merge="".join)

        @input.process
        def each(self, line: ReaderRecord[str]) -> None:
            self.text += line.record * 10_000

        def end_window(self) -> None:
            self.output.emit(len(self.text))

    seen = Collector[int]()
    reader = BlockReader[str](min_readers=2, max_readers=2)
    application = chain(source, Large(), sink=seen, reader=reader, blocks_threshold=2)
    run_dag(application, runner=runner, run_folder=str(tmp_path / "run"))
    assert seen.records == [10_000, 20_000, 40_000, 60_000, 90_000, 110_000]
    objects = sorted((tmp_path / "run" / "task-states").iterdir())
    sizes = sorted((int(path.name.partition(".")[0]), path.stat().st_size // 10_000) for path in objects)
    assert sizes == [(0, 1), (0, 2), (1, 4), (1, 6), (2, 9), (2, 11)]
