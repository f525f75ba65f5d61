"""Totals over windows: by columns and by records they are the same, and come in the same order."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, Window, run_operator
from operators import Average, Count, Max, Min, Sum
from tests.tiers import examples

LARGE = 2**63 - 1
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.one_of(st.none(), st.integers(-2, 4), st.sampled_from([LARGE, -LARGE - 1])),
    "string": st.one_of(st.none(), st.sampled_from(["", "a", "b", "\0", '\0{"float": "1.5"}', "null"])),
    "bool": st.one_of(st.none(), st.booleans()),
    "double": st.sampled_from([1.0, 1.5, -0.0, 0.0, math.nan]),
    "binary": st.sampled_from([b"", b"null"]),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([LARGE, -LARGE - 1])),
    "double": st.one_of(st.none(), st.floats(width=32)),
    "string": st.one_of(st.none(), st.text("ab", max_size=2)),
}
WINDOWS = st.lists(
    st.tuples(st.sampled_from(list(KEYS)), st.sampled_from(["int64", "double"])).flatmap(
        lambda kinds: st.lists(st.tuples(KEYS[kinds[0]], VALUES[kinds[1]]), min_size=1, max_size=8).map(
            lambda rows: pa.table({"k": pa.array([k for k, _ in rows], kinds[0]), "v": pa.array([v for _, v in rows], kinds[1])})
        )
    ),
    min_size=1,
    max_size=5,
)


def shown(results: list[Any]) -> list[tuple[str, str]]:
    return [(repr(each.key), repr(each.value)) for each in results]


@pytest.mark.parametrize("operator", [Count(by="k"), Sum("v", by="k"), Min("v", by="k"), Max("v", by="k"), Average("v", by="k")])
def test_columns_and_records_have_the_same_totals(operator: Any) -> None:
    made = type(operator)(by="k", running=True, **({"of": "v"} if not isinstance(operator, Count) else {}))

    @settings(max_examples=examples(60), deadline=None)
    @given(WINDOWS)
    def hold(windows: list[Any]) -> None:
        columns = run_operator(made, {"input": [Window([table]) for table in windows]}, form="batch")["output"]
        records = run_operator(made, {"input": [Window(table.to_pylist()) for table in windows]}, form="stream")["output"]
        assert shown(columns) == shown(records)

    hold()


def test_results_of_columns_are_batches() -> None:
    with OperatorTask(Sum("v", by="k", running=True), in_batches=True) as task:
        for number in range(1, 5):
            task.give("input", pa.table({"k": [1, None, 2], "v": [1, 2, LARGE // 3]}).to_batches()[0], form="batch")
            emitted = [(each.key, each.value) for each in task.end_window()["output"]]
            assert emitted == [(1, number), (None, 2 * number), (2, LARGE // 3 * number)]
    row, null, large = ("batch", 1), ("records", 1), ("records", 1)
    assert task.chunks["output"] == [*3 * [row, null, row], row, null, large], "a sum that no column holds is a record"


@pytest.mark.parametrize("key", [datetime.date(2026, 1, 1), LARGE + 1, "\udc80", "\0", b"x", ("a", None)])
def test_totals_of_any_key_go_on(key: Any) -> None:
    results = run_operator(Count(by=lambda each: each, running=True), {"input": [Window([key]), Window([key, "a"])]})["output"]
    assert [(each.key, each.value) for each in results] == [(key, 1), (key, 2), ("a", 1)]
