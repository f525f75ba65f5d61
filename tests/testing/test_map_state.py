"""`MapState` in operators that users test, and in tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st

from dagflow import DAG, InputPort, MapState, Operator, OutputPort, ReaderRecord, launch
from dagflow.errors import ChangedInPlace
from dagflow.testing import Window, check_operator, run_operator
from operators import BlockReader, FileSplitterInput, Map, RecordWriter


@attrs.define
class Counted(Operator):
    """Says how often a word has come, over windows; words with a "!" are wrong."""

    input = InputPort[str](partition_by="value")
    output = OutputPort[str]()
    counts = MapState[str, int]()

    @input.process
    def each(self, word: str) -> None:
        if word.endswith("!"):
            raise ValueError("too loud")
        self.counts[word] = self.counts.get(word, 0) + 1

    def end_window(self) -> None:
        self.output.emit(" ".join(f"{word}={self.counts[word]}" for word in sorted(self.counts)))


class CountedInBatches(Counted):
    """The same, with a form for batches that leaves half of its work behind when it raises."""

    @Counted.input.batch
    def each_batch(self, batch: Any) -> None:
        for word in batch.column(0).to_pylist():
            self.each(word)


@pytest.mark.parametrize("operator", [Counted(), CountedInBatches()])
def test_it_goes_on_from_window_to_window(operator: Counted) -> None:
    given = {"input": [Window(["a", "b", "a"]), Window([]), Window(["b"])]}
    assert run_operator(operator, given)["output"] == ["a=2 b=1", "a=2 b=1", "a=2 b=2"]
    assert operator.counts == {}


def test_operators_with_it_can_be_checked() -> None:
    check_operator(Counted(), st.sampled_from("abc"))


@attrs.define
class Placed(Operator):
    again: bool

    input = InputPort[str]()
    output = OutputPort[int]()
    places = MapState[str, list[int]]()

    @input.process
    def each(self, word: str) -> None:
        places = self.places.setdefault(word, [])
        places.append(len(places))
        if self.again:
            self.places[word] = places
        self.output.emit(len(places))


def test_a_value_that_is_changed_in_place_and_not_assigned_is_told() -> None:
    given = {"input": [Window(["a", "b", "a"]), Window(["a"])]}
    assert run_operator(Placed(True), given)["output"] == [1, 1, 2, 3]
    with pytest.raises(ChangedInPlace) as caught:
        run_operator(Placed(False), given)
    assert str(caught.value) == (
        "Placed has changed the value of 'a' in MapState 'places' in place: only what is assigned is saved\n"
        "  help: assign it again, `self.places['a'] = value`"
    )


def test_what_a_bad_batch_has_changed_is_undone() -> None:
    operator = CountedInBatches(on_error="skip")
    found = run_operator(operator, {"input": ["a", "b", "!", "a", "c", "b!", "c"]}, form="batch")
    assert (found["output"], found.skipped) == (["a=2 b=1 c=2"], 2)


def test_it_goes_on_in_tasks_and_over_launches(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([tmp_path / "in"], block_size=4))
        words = dag.add_operator("words", BlockReader(max_readers=3))
        plain = dag.add_operator("plain", Map[ReaderRecord[str], str](lambda line: line.record))
        counted = dag.add_operator("counted", Counted())
        out = dag.add_operator("out", RecordWriter[str](str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, words.blocks_metadata_input)
        dag.add_stream("lines", words.messages, plain.input)
        dag.add_stream("words", plain.output, counted.input)
        dag.add_stream("counts", counted.output, out.input)

    (tmp_path / "in").mkdir()
    totals = []
    for number, text in enumerate(["a\nb\na\n", "c\n", "a\nc\nc\nb\n" * 10]):
        (tmp_path / "in" / f"{number}").write_text(text)
        launch(populate_dag, runner="local")
        counts: dict[str, int] = {}
        for part in (tmp_path / "out").glob(f"part-{number:06d}-*"):
            for pair in part.read_text().split():
                word, _, count = pair.partition("=")
                counts[word] = counts.get(word, 0) + int(count)
        totals.append(counts)
    assert totals[0] == {"a": 2, "b": 1}
    assert totals[2] == {"a": 12, "b": 11, "c": 21}
