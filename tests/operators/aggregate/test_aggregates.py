"""Count, Sum, Min, Max and Average beside plain Python: in each form, with and without groups."""

from __future__ import annotations

import datetime
import math
import pickle
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagflow.errors import ColumnNotThere, OperatorFailed
from dagflow.model.types.forms import to_batch, to_records
from dagflow.state.task_states import declared_states
from dagflow.testing import OperatorTask, Window, check_operator, run_operator
from operators import Average, Count, Deduplicate, KeyValue, Max, Min, Sum, TopN, Tumbling
from operators.aggregate.aggregate import Aggregate, Partial, PartialAggregation
from operators.aggregate.errors import KeyColumnRefused, ValueColumnRefused, ValueNotKept
from tests.tiers import examples


@attrs.frozen
class Sale:
    customer: str
    amount: int | None
    place: str = "x"


SALES = st.builds(Sale, st.sampled_from("abc"), st.integers(-(2**40), 2**40) | st.none(), st.sampled_from("xy"))


def average(values: list[int]) -> float:
    return sum(values) / len(values)


CASES: list[tuple[Callable[..., Any], Callable[[list[int]], Any]]] = [(Sum, sum), (Min, min), (Max, max), (Average, average)]


def plain(sales: list[Sale], key: Callable[[Sale], Any], result: Callable[[list[int]], Any]) -> dict[Any, Any]:
    groups: dict[Any, list[int]] = {}
    for sale in sales:
        groups.setdefault(key(sale), []).extend([] if sale.amount is None else [sale.amount])
    return {name: result(values) if values else None for name, values in groups.items()}


def found(operator: Any, sales: list[Sale]) -> dict[Any, Any]:
    results = run_operator(operator, {"input": sales})["output"]
    assert len({result.key for result in results}) == len(results)
    return {result.key: result.value for result in results}


KEYS: list[tuple[Any, Callable[[Sale], Any]]] = [
    ("customer", lambda sale: sale.customer),
    (("customer", "place"), lambda sale: (sale.customer, sale.place)),
    (lambda sale: sale.place, lambda sale: sale.place),
    (None, lambda sale: None),
]


@pytest.mark.parametrize(("operator", "result"), CASES)
@pytest.mark.parametrize(("by", "key"), KEYS)
def test_values_of_groups(operator: Any, result: Any, by: Any, key: Any) -> None:
    @given(st.lists(SALES))
    def hold(sales: list[Sale]) -> None:
        wanted = plain(sales, key, result)
        assert found(operator("amount", by=by), sales) == wanted
        assert found(operator(lambda sale: sale.amount, by=by), sales) == wanted

    hold()


@pytest.mark.parametrize(("by", "key"), KEYS)
def test_counts(by: Any, key: Any) -> None:
    @given(st.lists(SALES))
    def hold(sales: list[Sale]) -> None:
        keys = list(map(key, sales))
        assert found(Count(by=by), sales) == {name: keys.count(name) for name in keys}

    hold()


@pytest.mark.parametrize("operator", [Count, *(case[0] for case in CASES)])
@pytest.mark.parametrize("by", ["customer", ("customer", "place"), None])
def test_the_laws_of_operators(operator: Any, by: Any) -> None:
    made = operator(by=by) if operator is Count else operator("amount", by=by)
    check_operator(made, SALES, port="input", max_examples=25)


@pytest.mark.parametrize(("operator", "result"), CASES)
def test_partials_come_to_the_same_as_records(operator: Any, result: Any) -> None:
    @given(st.lists(st.lists(SALES)))
    def hold(parts: list[list[Sale]]) -> None:
        whole = operator("amount", by="customer")
        combiner, port = whole.partial_aggregation("input")
        partials = [partial for part in parts for partial in run_operator(combiner, {"input": part})["output"]]
        merged = run_operator(whole, {port: partials})["output"]
        sales = [sale for part in parts for sale in part]
        assert {kv.key: kv.value for kv in merged} == plain(sales, lambda sale: sale.customer, result)

    hold()


def test_a_window_does_not_know_the_one_before() -> None:
    windows = [Window([Sale("a", 1)]), Window([Sale("a", 2)])]
    results = run_operator(Sum("amount", by="customer"), {"input": windows})["output"]
    assert results == [KeyValue("a", 1), KeyValue("a", 2)]


def test_sums_of_integers_do_not_overflow_in_batches() -> None:
    with OperatorTask(Sum[Any, Any, Any]()) as task:
        task.give("input", pa.record_batch({"value": [2**62, 2**62, 2**62]}), "batch")
    assert task.emitted["output"] == [KeyValue(None, 3 * 2**62)]


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4), min_size=1, max_size=4))
@example([[2**63 - 1, 1], [-(2**63), -1]])
def test_sums_made_ahead_fit_into_columns(parts: list[list[int]]) -> None:
    whole = Sum[int, str, int](lambda number: number, by=lambda number: "all")
    combiner, port = whole.partial_aggregation("input")  # type: ignore[misc]
    partials = [partial for part in parts for partial in run_operator(combiner, {"input": part})["output"]]
    crossed = to_batch(partials, Partial[str, int])
    for given_form, form in ((to_records(crossed, Partial[str, int]), "stream"), (crossed, "batch")):
        with OperatorTask(whole) as task:
            task.give(port, given_form, form)
        assert task.emitted["output"] == [KeyValue("all", sum(map(sum, parts)))]


@pytest.mark.parametrize("form", ["batch", "stream"])
def test_what_is_not_a_number_counts_where_nothing_else_is(form: str) -> None:
    values = [math.nan, 1.0, math.nan, 3.0]
    for operator, wanted in ((Min(), 1.0), (Max(), 3.0)):
        with OperatorTask(operator) as task:
            for part in (values[:1], values[1:]):
                task.give("input", pa.record_batch({"value": part}) if form == "batch" else part, form)
        assert task.emitted["output"] == [KeyValue(None, wanted)]


@pytest.mark.parametrize("form", ["batch", "stream"])
def test_keys_that_are_not_a_number_are_one_key(form: str) -> None:
    values = [math.nan, 1.0, float("nan")]
    with OperatorTask(Count[Any, Any](by="value")) as task:
        for part in (values[:2], values[2:]):
            task.give("input", pa.record_batch({"value": part}) if form == "batch" else part, form)
    assert {str(kv.key): kv.value for kv in task.emitted["output"]} == {"nan": 2, "1.0": 1}


@pytest.mark.parametrize("combiner", [True, False])
def test_keys_of_several_columns_of_which_one_is_not_a_number(combiner: bool) -> None:
    whole = Count[Any, Any](by=("f", "k"), combiner=combiner)
    records = [{"f": float("nan"), "k": n % 2} for n in range(6)]
    given, port = records, "input"
    if combiner:
        combiner, port = whole.partial_aggregation("input")  # type: ignore[misc]
        parts = [run_operator(combiner, {"input": records})["output"] for _ in range(2)]
        assert [len(part) for part in parts] == [2, 2]
        given = pickle.loads(pickle.dumps(parts[0])) + pickle.loads(pickle.dumps(parts[1]))
    results = run_operator(whole, {port: given})["output"]
    assert [(str(kv.key), kv.value) for kv in results] == [(f"(nan, {n})", 6 if combiner else 3) for n in (0, 1)]


def test_other_types_than_pyarrow_can_add() -> None:
    import datetime

    hours = [datetime.timedelta(hours=n) for n in (1, 2)]
    assert run_operator(Sum(), {"input": hours})["output"] == [KeyValue(None, datetime.timedelta(hours=3))]
    assert run_operator(Average(), {"input": hours})["output"] == [KeyValue(None, datetime.timedelta(minutes=90))]
    assert run_operator(Max(), {"input": ["a", "c", "b"]})["output"] == [KeyValue(None, "c")]


def test_records_before_a_bad_one_count() -> None:
    results = run_operator(Count(by=lambda text: text[0], on_error="skip"), {"input": ["a1", "", "a2"]})["output"]
    assert results == [KeyValue("a", 2)]


def test_batches_only_where_columns_are_named() -> None:
    assert Count(by="word").offered_forms("input") == {"stream", "batch"}
    assert Count(by=len).offered_forms("input") == {"stream"}
    assert Sum(len, by="word").offered_forms("input") == {"stream"}
    assert Count().offered_forms("input") == {"stream", "batch"}


def test_more_groups_than_are_kept_are_sent_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.aggregate.aggregate.MAX_PARTIAL_GROUPS", 2)
    combiner, _ = Count[Any, Any](by="value").partial_aggregation("input")  # type: ignore[misc]
    with OperatorTask(combiner) as task:
        task.give("input", ["a", "b", "c"], "stream")
        assert len(task.emitted["output"]) == 3
        task.give("input", ["a"], "stream")
    assert task.emitted["output"][-1] == Partial("a", None, 1)


@pytest.mark.parametrize("by", [3, "", (), ("a", ""), ("a", 3)])
def test_keys_that_are_none(by: Any) -> None:
    with pytest.raises(TypeError, match="by must be a function of the record or the name of a column"):
        Count(by=by)


def test_what_runs_ahead_pickles() -> None:
    for operator in (Count(by="value"), Sum(), Min(), Max(), Average()):
        combiner, port = operator.partial_aggregation("input")  # type: ignore[misc]
        assert isinstance(pickle.loads(pickle.dumps(combiner)), PartialAggregation)
        assert port == "partials"
    assert Count(combiner=False).partial_aggregation("input") is None
    assert issubclass(Count, Aggregate)


@pytest.mark.parametrize(("operator", "result"), CASES)
@pytest.mark.parametrize(("by", "key"), KEYS)
def test_running_totals_are_those_of_all_windows_so_far(operator: Any, result: Any, by: Any, key: Any) -> None:
    @settings(max_examples=examples(25))
    @given(st.lists(st.lists(SALES, max_size=6), min_size=1, max_size=4))
    def hold(windows: list[list[Sale]]) -> None:
        given_windows = {"input": [Window(sales) for sales in windows]}
        results = run_operator(operator("amount", by=by, running=True), given_windows)["output"]
        wanted = []
        for number, sales in enumerate(windows):
            so_far = plain([sale for window in windows[: number + 1] for sale in window], key, result)
            wanted += [KeyValue(name, so_far[name]) for name in dict.fromkeys(map(key, sales))]
        assert results == wanted

    hold()


@pytest.mark.parametrize(("by", "key"), KEYS)
def test_complete_totals_are_those_of_all_groups_in_each_window(by: Any, key: Any) -> None:
    @settings(max_examples=examples(25))
    @given(st.lists(st.lists(SALES, max_size=6), min_size=1, max_size=4))
    def hold(windows: list[list[Sale]]) -> None:
        given_windows = {"input": [Window(sales) for sales in windows]}
        results = run_operator(Count(by=by, running=True, output_mode="complete"), given_windows)["output"]
        wanted: list[Any] = []
        for number in range(len(windows)):
            wanted += Counter(key(sale) for window in windows[: number + 1] for sale in window).items()
        assert Counter((kv.key, kv.value) for kv in results) == Counter(wanted)

    hold()


@pytest.mark.parametrize("key", ["a", 1, 1.5, True, None, (1, ("b", None)), datetime.date(2026, 1, 1), uuid.UUID(int=7), b"x"])
def test_a_key_comes_back_as_it_was(key: Any) -> None:
    windows = {"input": [Window([key]), Window(["other"])]}
    results = run_operator(Count(by=lambda each: each, running=True, output_mode="complete"), windows)["output"]
    assert [(type(kv.key), kv.key) for kv in results].count((type(key), key)) == 2


def test_a_key_that_would_not_come_back_is_refused() -> None:
    with pytest.raises((ValueNotKept, OperatorFailed), match="Version cannot be kept over windows"):
        run_operator(Count(by=lambda each: each, running=True, output_mode="complete"), {"input": [Version(1)]})


def test_complete_totals_need_running_ones() -> None:
    with pytest.raises(ValueError, match="output_mode='complete' needs running=True"):
        Count(output_mode="complete").check()


def test_running_totals_of_values_that_are_no_plain_data() -> None:
    import datetime
    import decimal

    for one, other in (
        (datetime.timedelta(hours=1), datetime.timedelta(hours=2)),
        (decimal.Decimal("1.10"), decimal.Decimal("2.2")),
        ("to ", "be"),
        (("a", 1), ("b", 2)),
    ):
        results = run_operator(Sum(running=True), {"input": [Window([one]), Window([other])]})["output"]
        assert results == [KeyValue(None, one), KeyValue(None, one + other)]  # type: ignore[operator]
        results = run_operator(Max(running=True), {"input": [Window([other]), Window([one])]})["output"]
        assert [kv.value for kv in results] == [max(one, other)] * 2 if other > one else [other, one]  # type: ignore[operator]


def test_totals_are_kept_only_where_they_are_asked_for() -> None:
    assert not declared_states(Count(by="value"))
    assert set(declared_states(Count(by="value", running=True))) == {"totals"}


@pytest.mark.parametrize("operator", [Count(by="tags"), Sum("n", by=("n", "tags")), TopN(1, "n", by="tags")])
@pytest.mark.parametrize("tags", [[["a"]], [{"a": 1}]])
def test_columns_that_are_no_keys(operator: Any, tags: Any) -> None:
    with pytest.raises(KeyColumnRefused, match="cannot be grouped by the column 'tags'"):
        run_operator(operator, {"input": [pa.table({"tags": tags, "n": [1]})]})


@pytest.mark.parametrize(
    "operator", [Count(by=("n", "tag")), Sum("tag"), TopN(1, "tag"), TopN(1, "n", by="tag"), Deduplicate(by="tag")]
)
def test_a_column_that_is_not_there_is_told_with_those_that_are(operator: Any) -> None:
    with pytest.raises(ColumnNotThere, match=r"no column 'tag', which `(by|of)` names\n  columns  tags \(string\), n \(int64\)"):
        run_operator(operator, {"input": [pa.table({"tags": ["a"], "n": [1]})]})


STRUCTS, DAYS = [{"a": 1}, {"a": 2}], [datetime.date(2026, 1, day) for day in (1, 2)]


@pytest.mark.parametrize(
    ("operator", "values", "lack"),
    [
        (Sum("v"), DAYS, "date32[day]: these cannot be added up"),
        (Average("v"), STRUCTS, "struct<a: int64>: these cannot be added up"),
        (Max("v"), STRUCTS, "struct<a: int64>: these cannot be compared"),
        (TopN(1, "v"), STRUCTS, "struct<a: int64>: these cannot be compared"),
        (TopN(1, "v"), [["a"], ["b"]], "list<item: string>: these cannot be compared"),
    ],
)
def test_columns_that_are_no_values(operator: Any, values: Any, lack: str) -> None:
    for rows in (1, 2):  # also where there is nothing to be put together
        with pytest.raises(ValueColumnRefused) as caught:
            run_operator(operator, {"input": [pa.table({"v": values[:rows]})]})
        assert f"the column 'v', whose values are {lack}" in str(caught.value)


def test_times_have_a_greatest_and_durations_a_sum() -> None:
    assert run_operator(Max("v"), {"input": [pa.table({"v": DAYS})]})["output"][0].value == DAYS[1]
    lengths = [datetime.timedelta(1), datetime.timedelta(2)]
    assert run_operator(Sum("v"), {"input": [pa.table({"v": lengths})]})["output"][0].value == datetime.timedelta(3)


@attrs.frozen(order=True)
class Version:
    number: int


def test_a_running_result_that_would_not_come_back_is_refused() -> None:
    """At first sight: not only where another process goes on."""
    with pytest.raises((ValueNotKept, OperatorFailed), match="Version cannot be kept over windows"):
        run_operator(Max(lambda each: each, running=True, on_error="skip"), {"input": [Version(1)]})


@pytest.mark.parametrize("by", [("value",), ("value", "other")])
def test_keys_that_are_tuples_are_no_text(by: tuple[str, ...]) -> None:
    """As `-D 'operator.count.by=["value"]'` makes them: told when the DAG is checked, not by the first record."""
    for made in (Count[str, str](by=by), Sum[str, str, int](by=by), Tumbling[str, str, int](60, time="at", by=by)):
        with pytest.raises(ValueError, match=r"by=\('value',.*keys of str: name (it alone.*: value|one column)$"):
            made.check()
    for right in (Count[str, tuple[str, ...]](by=by), Count[str, Any](by=by), Count(by=by), Count[str, str](by="value")):
        right.check()
