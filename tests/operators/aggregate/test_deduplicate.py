from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.errors import KeyColumnRefused
from dagflow.testing import OperatorTask, Window, check_operator, run_operator
from operators import Deduplicate
from operators.aggregate.deduplicate import FirstOfEach
from tests.tiers import examples


@attrs.frozen
class Visit:
    customer: str
    day: int | None
    pages: list[str]


VISITS = st.builds(Visit, st.sampled_from("ab"), st.integers(0, 2) | st.none(), st.lists(st.sampled_from("xy"), max_size=1))


def first_of(records: list[Any], key: Any) -> list[Any]:
    seen: list[Any] = []
    found = []
    for record in records:
        if key(record) not in seen:
            seen.append(key(record))
            found.append(record)
    return found


def best_of(records: list[Any], key: Any) -> list[Any]:
    """The first of each key in the order of all columns by name: nulls are the last."""
    best = {
        key(each): each
        for each in sorted(records, key=lambda v: (v.customer, v.day is None, v.day or 0, str(v.pages)), reverse=True)
    }
    return list(best.values())


KEYS = [
    ("customer", lambda visit: visit.customer),
    (("customer", "day"), lambda visit: (visit.customer, visit.day)),
    (lambda visit: tuple(visit.pages), lambda visit: tuple(visit.pages)),
    (lambda visit: visit.day, lambda visit: visit.day),
]


@pytest.mark.full
@pytest.mark.parametrize(("by", "key"), [(None, lambda visit: visit), *KEYS, ("pages", lambda visit: visit.pages)])
def test_the_first_of_each(by: Any, key: Any) -> None:
    @given(st.lists(VISITS))
    def hold(visits: list[Visit]) -> None:
        assert run_operator(Deduplicate(by=by, scope="window"), {"input": visits})["output"] == first_of(visits, key)

    hold()
    check_operator(Deduplicate(by=by, scope="window"), VISITS, max_examples=examples(20))


@pytest.mark.full
@pytest.mark.parametrize(("by", "key"), KEYS)
def test_the_best_of_each(by: Any, key: Any) -> None:
    @given(st.lists(VISITS))
    def hold(visits: list[Visit]) -> None:
        found = run_operator(Deduplicate(by=by), {"input": visits})["output"]
        assert Counter(map(str, found)) == Counter(map(str, best_of(visits, key)))

    hold()
    check_operator(Deduplicate(by=by), VISITS, max_examples=examples(20))
    check_operator(Deduplicate(by=by, keep="last", order_by="day"), VISITS, max_examples=examples(20))


def test_a_key_of_lists_is_refused() -> None:
    with pytest.raises(KeyColumnRefused, match="cannot be grouped by the column 'pages'"):
        run_operator(Deduplicate(by="pages"), {"input": [Visit("a", 1, ["x"])]})


@given(st.lists(st.lists(VISITS)))
def test_what_was_found_ahead_comes_to_the_same(parts: list[list[Visit]]) -> None:
    whole = Deduplicate[Visit]()
    partial, port = whole.partial_aggregation("input")  # type: ignore[misc]
    found = [visit for part in parts for visit in run_operator(partial, {"input": part})["output"]]
    visits = [visit for part in parts for visit in part]
    assert run_operator(whole, {port: found})["output"] == run_operator(whole, {"input": visits})["output"]


def test_few_keys_are_remembered_ahead() -> None:
    found = run_operator(FirstOfEach[str](most=2), {"input": ["a", "a", "b", "b", "c", "a", "c"]})["output"]
    assert found == ["a", "b", "c", "a"]


def test_lines_are_told_apart_by_their_place_unless_it_is_left_out() -> None:
    lines = [ReaderRecord(0, 0, "a"), ReaderRecord(0, 2, "a"), ReaderRecord(1, 2, "a")]
    assert run_operator(Deduplicate(), {"input": lines})["output"] == lines[:2]
    assert run_operator(Deduplicate(by="record"), {"input": lines})["output"] == lines[:1]


def test_a_window_does_not_know_the_one_before() -> None:
    assert run_operator(Deduplicate(scope="window"), {"input": [Window([1, 1]), Window([1])]})["output"] == [1, 1]
    assert run_operator(Deduplicate(), {"input": [Window([1, 1]), Window([2, 1])]})["output"] == [1, 2]


def test_rows_of_a_table() -> None:
    with OperatorTask(Deduplicate[Any]()) as task:
        task.give("input", pa.record_batch({"value": [1.0, 2.0, 1.0]}), "batch")
        task.give("input", pa.record_batch({"value": [2.0, 3.0]}), "batch")
    assert task.emitted["output"] == [1.0, 2.0, 3.0]


def test_records_that_differ_in_type_only_are_not_equal() -> None:
    assert run_operator(Deduplicate(), {"input": [None, "None", 1, "1", b"1", 1.0]})["output"] == [None, "None", 1, "1", b"1"]
    with OperatorTask(Deduplicate[Any](by="name")) as task:
        task.give("input", pa.record_batch({"name": [None, "None", None]}), "batch")
    assert len(task.emitted["output"]) == 2
