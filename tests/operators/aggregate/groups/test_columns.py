"""Groups of many batches: what pyarrow groups comes to what Python does, whatever is held and whatever types there are."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, run_operator
from operators import Count, KeyValue, Max, Min, Sum
from operators.aggregate.groups import columns
from operators.aggregate.groups.columns import ColumnGroups, grouped

WHOLE = st.integers(-(2**62), 2**62) | st.integers(-3, 3)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), WHOLE | st.none()), min_size=1, max_size=6)
KINDS = st.sampled_from(
    [(pa.string(), pa.int64()), (pa.large_string(), pa.int64()), (pa.string(), pa.uint64()), (pa.string(), pa.int8())]
)
BATCHES = st.lists(st.tuples(KINDS, ROWS), min_size=1, max_size=6)


def batch_of(kinds: tuple[Any, Any], rows: list[tuple[str | None, int | None]]) -> pa.RecordBatch:
    key, value = kinds
    low, high = {pa.uint64(): (0, 2**64), pa.int8(): (-100, 100)}.get(value, (-(2**63), 2**63))
    fitting = [number if number is None or low <= number < high else 7 for _, number in rows]
    return pa.record_batch({"key": pa.array([text for text, _ in rows], key), "value": pa.array(fitting, value)})


@pytest.mark.full
@pytest.mark.parametrize("operator", [Sum, Min, Max, Count])
def test_batches_come_to_what_python_comes_to(operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS", 4)
    monkeypatch.setattr(columns, "GROUPS", 3)

    @given(BATCHES)
    def hold(given_batches: list[tuple[tuple[Any, Any], list[tuple[str | None, int | None]]]]) -> None:
        batches = [batch_of(kinds, rows) for kinds, rows in given_batches]
        wanted: dict[Any, list[Any]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                wanted.setdefault(row["key"], []).append(row["value"])
        whole: Any = operator(by="key") if operator is Count else operator("value", by="key")
        partial, port = whole.partial_aggregation("input")
        partials: list[Any] = []
        for part in (batches[::2], batches[1::2]):
            with OperatorTask(partial) as task:
                for batch in part:
                    task.give("input", batch, "batch")
            partials += task.emitted["output"]
        for given_port, given_records in (("input", batches), (port, partials)):
            with OperatorTask(whole) as task:
                for each in given_records if given_port == "input" else [given_records]:
                    task.give(given_port, each, "batch" if given_port == "input" else "stream")
            results = {kv.key: kv.value for kv in task.emitted["output"]}
            assert results == {key: plainly(operator, values) for key, values in wanted.items()}

    hold()


def plainly(operator: Any, values: list[int | None]) -> int | None:
    there = [value for value in values if value is not None]
    return len(values) if operator is Count else {Sum: sum, Min: min, Max: max}[operator](there) if there else None


def test_what_came_first_comes_first() -> None:
    words = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]
    batches = [pa.record_batch({"value": words[start : start + 3]}) for start in range(0, len(words), 3)]
    assert [kv.key for kv in run_operator(Count(by="value"), {"input": batches})["output"]] == list(dict.fromkeys(words))


def test_results_in_columns_are_those_of_records() -> None:
    rows = pa.record_batch({"key": ["a", "b", "a"], "value": [1, 2, None]})
    for operator, result in ((Sum[Any, str, int](by="key"), [1, 2]), (Count[Any, str](by="key"), [2, 1])):
        with OperatorTask(operator, in_batches=True) as task:
            task.give("input", rows, "batch")
        assert task.chunks["output"] == [("batch", 2)]
        assert task.emitted["output"] == [KeyValue(*row) for row in zip("ab", result, strict=True)]
        assert run_operator(operator, {"input": rows.to_pylist()})["output"] == task.emitted["output"]


def test_few_groups_are_held_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "ROWS", 100)
    monkeypatch.setattr(columns, "GROUPS", 10)
    held, most = ColumnGroups(), 0
    for _ in range(200):
        held.take_rows(pa.table({"k0": [f"key {n % 7}" for n in range(50)]}))
        if held.is_full:
            assert held.compact()
        most = max(most, sum(table.num_rows for table in copy.deepcopy(held).drain()))
    assert most < 250
    assert held.as_one().to_pydict()["count"] == [1600, 1400, 1400, 1400, 1400, 1400, 1400]  # type: ignore[union-attr]


def test_a_sum_that_columns_cannot_hold_is_left_to_python() -> None:
    assert grouped([pa.table({"k0": ["a", "a"], "value": [2**62, 2**62]})], "sum") is None
