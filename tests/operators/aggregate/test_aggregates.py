"""Count, Sum, Min, Max and Average beside plain Python: in each form, with and without groups."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import random
import uuid
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagflow.errors import ColumnNotThere, OperatorFailed, TotalNotHeld
from dagflow.state.task_states import declared_states
from dagflow.testing import OperatorTask, Window, check_operator, run_operator
from operators import Average, Count, Deduplicate, KeyValue, Max, Min, Sum, TopN, Tumbling
from operators.aggregate.aggregate import Aggregate, PartialAggregation
from operators.aggregate.errors import ColumnTypeChanged, KeyColumnRefused, ValueColumnRefused
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
    results = keyed(operator, run_operator(operator, {"input": sales})["output"])
    assert len({result.key for result in results}) == len(results)
    return {result.key: result.value for result in results}


def keyed(operator: Any, results: list[Any]) -> list[KeyValue[Any, Any]]:
    """Return results with their keys: those of several columns are rows."""
    if not isinstance(operator.by, tuple):
        return results
    assert all([*row] == [*operator.by, "value"] for row in results)
    return [KeyValue(tuple(row[name] for name in operator.by), row["value"]) for row in results]


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
    check_operator(made, SALES, port="input", max_examples=examples(25))


@pytest.mark.parametrize(("operator", "result"), CASES)
def test_partials_come_to_the_same_as_records(operator: Any, result: Any) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(st.lists(SALES)))
    def hold(parts: list[list[Sale]]) -> None:
        whole = operator("amount", by=lambda sale: sale.customer)
        combiner, port = whole.partial_aggregation("input")
        partials = [partial for part in parts for partial in run_operator(combiner, {"input": part})["output"]]
        merged = run_operator(whole, {port: partials})["output"]
        sales = [sale for part in parts for sale in part]
        assert {kv.key: kv.value for kv in merged} == plain(sales, lambda sale: sale.customer, result)

    hold()


def test_in_scope_window_a_window_does_not_know_the_one_before() -> None:
    windows = [Window([Sale("a", 1)]), Window([Sale("a", 2)])]
    results = run_operator(Sum("amount", by="customer", scope="window"), {"input": windows})["output"]
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
    with OperatorTask(whole) as task:
        task.give(port, pickle.loads(pickle.dumps(partials)), "stream")
    assert task.emitted["output"] == [KeyValue("all", sum(map(sum, parts)))]


@pytest.mark.parametrize("form", ["batch", "stream"])
def test_what_is_not_a_number_is_larger_than_all_numbers(form: str) -> None:
    values = [math.nan, 1.0, math.nan, 3.0]
    for operator, wanted in ((Min(), 1.0), (Max(), math.nan)):
        with OperatorTask(operator) as task:
            for part in (values[:1], values[1:]):
                task.give("input", pa.record_batch({"value": part}) if form == "batch" else part, form)
        ((found,)) = task.emitted["output"]
        assert repr(found.value) == repr(wanted)


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
    assert [str(row) for row in results] == [str({"f": math.nan, "k": n, "value": 6 if combiner else 3}) for n in (0, 1)]


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
    assert (task.emitted["output"][-1].key, task.emitted["output"][-1].parts) == ("a", (1, 1))


AGGREGATES = {"count": Count, "sum": Sum, "min": Min, "max": Max, "avg": Average}


@pytest.mark.parametrize("function", AGGREGATES)
@pytest.mark.parametrize("by", [("shop", "day"), ("shop",), ("day", "price", "shop")])
@pytest.mark.parametrize("combiner", [True, False])
def test_keys_of_several_columns_make_the_rows_of_sql(function: str, by: tuple[str, ...], combiner: bool) -> None:
    rng = random.Random(7)
    rows = pa.table(
        {
            "shop": [rng.choice(["a", "b", None]) for _ in range(60)],
            "day": pa.array([rng.randrange(3) for _ in range(60)], pa.int32()),
            "price": pa.array([rng.choice([1.5, 2.0, None]) for _ in range(60)]),
        }
    )
    made: Any = Count(by=by, combiner=combiner) if function == "count" else AGGREGATES[function]("day", by=by, combiner=combiner)
    windows = [Window(rows.slice(start, 17).to_batches()) for start in range(0, 60, 17)]
    emitted = run_operator(made, {"input": windows}, form="batch")
    standing = Counter(map(str, emitted["output"]))
    standing.subtract(map(str, emitted.retracted.get("output", [])))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        value = "count(*)" if function == "count" else f"{function}(day)"
        sql = f"SELECT {', '.join(by)}, {value}::{'DOUBLE' if function == 'avg' else 'BIGINT'} AS value FROM rows GROUP BY ALL"
        wanted = connection.sql(sql).to_arrow_table().to_pylist()
    assert +standing == Counter(map(str, wanted))
    assert min(standing.values()) >= 0


def test_a_function_beside_names_makes_rows_too() -> None:
    sales = [Sale("a", 2), Sale("b", 3), Sale("a", 5)]
    rows = [{"customer": "a", "place": "x", "value": 14}, {"customer": "b", "place": "x", "value": 6}]
    assert run_operator(Sum(lambda sale: sale.amount * 2, by=("customer", "place")), {"input": sales})["output"] == rows
    assert run_operator(Sum(lambda sale: sale.amount * 2, by=("customer",)), {"input": sales})["output"] == [
        {name: row[name] for name in ("customer", "value")} for row in rows
    ]


def test_a_sum_that_no_column_holds_ends_the_run_where_results_are_rows() -> None:
    rows = pa.table({"a": [1, 1], "b": [1, 1], "n": [2**62, 2**62]})
    with pytest.raises(TotalNotHeld, match="int64 cannot hold"):
        run_operator(Sum("n", by=("a", "b")), {"input": [rows]}, form="batch")


def test_a_key_with_the_name_of_the_result_is_refused() -> None:
    with pytest.raises(ValueError, match=r"names the column of the result, 'value': GroupBy\('word', 'value', sum=agg.sum"):
        Sum("n", by=("word", "value")).check()


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


def stood(operator: Any, windows: list[Any], form: Any = None) -> list[KeyValue[Any, Any]]:
    """Return the results that stand after windows: each that is taken back was there."""
    emitted = run_operator(operator, {"input": [Window(window) for window in windows]}, form=form)
    standing = list(emitted.get("output", []))
    for record in emitted.retracted.get("output", []):
        standing.remove(record)
    return standing


@pytest.mark.parametrize(("operator", "result"), [*CASES, (Count, len)])
@pytest.mark.parametrize(("by", "key"), KEYS)
def test_results_are_those_of_all_windows(operator: Any, result: Any, by: Any, key: Any) -> None:
    @settings(max_examples=examples(25))
    @given(st.lists(st.lists(SALES, max_size=6), min_size=1, max_size=4))
    def hold(windows: list[list[Sale]]) -> None:
        made = Count(by=by) if operator is Count else operator("amount", by=by)
        sales = [sale if operator is not Count else attrs.evolve(sale, amount=1) for window in windows for sale in window]
        assert {each.key: each.value for each in keyed(made, stood(made, windows))} == plain(sales, key, result)

    hold()


@pytest.mark.parametrize("key", ["a", 1, 1.5, True, None, (1, ("b", None)), datetime.date(2026, 1, 1), uuid.UUID(int=7), b"x"])
def test_keys_of_any_type_stay_groups(key: Any) -> None:
    assert Counter(stood(Count(by=lambda each: each), [[key], ["other", key]])) == {KeyValue(key, 2): 1, KeyValue("other", 1): 1}


UTC = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def test_values_of_several_types_are_one_sum() -> None:
    assert stood(Sum(), [[1, 2.5], [2**60, -0.25]]) == [KeyValue(None, float(2**60 + 3.25))]
    for windows in ([[2.5], [2**60 + 1]], [[2.5, 2**60 + 1]]):
        assert stood(Sum(), windows) == [KeyValue(None, float(Fraction(5, 2) + 2**60 + 1))]
    for windows in ([[2.5], [2**60 + 1]], [[2.5, 2**60 + 1]]):
        with pytest.raises(ColumnTypeChanged, match=r"'value' is (double|int64), and was (int64|double) before"):
            stood(Max(), windows)
    assert stood(Sum(), [[1], [decimal.Decimal("0.5")], [2]]) == [KeyValue(None, decimal.Decimal("3.5"))]
    assert stood(Max(), [[datetime.timedelta(1)], [datetime.timedelta(2)]]) == [KeyValue(None, datetime.timedelta(2))]
    other = UTC.astimezone(datetime.timezone(datetime.timedelta(hours=2))) + datetime.timedelta(hours=1)
    assert stood(Max(), [[UTC], [other]]) == [KeyValue(None, other)]


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        (Sum(), ["a"], "'a' cannot be added up"),
        (Sum(), [1, 1 << 63], "9223372036854775808 has more than 64 bits"),
        (Sum(), [1.5, decimal.Decimal(1)], "is not of the type of the values before it, float"),
        (Sum(), [decimal.Decimal("NaN")], "NaN is not a number"),
        (Sum(), [datetime.timedelta.max], "has more than 64 bits of microseconds"),
        (Max(), [1, "a"], "'a' is not of the type of the values before it, int"),
        (Max(), ["\udc80"], "surrogates not allowed"),
        (Max(), [datetime.time(1, tzinfo=datetime.UTC)], "has a time zone"),
        (Max(), [UTC.replace(tzinfo=None), UTC], "is not of the type"),
        (Min(), [(1, "a")], r"\(1, 'a'\) cannot be compared"),
    ],
)
def test_values_that_no_column_holds_are_bad_records(operator: Any, values: list[Any], message: str) -> None:
    with pytest.raises(OperatorFailed, match=message):
        run_operator(operator, {"input": values})
    skipping = run_operator(attrs.evolve(operator, on_error="skip"), {"input": values})["output"]
    assert [each.value for each in skipping] == values[:-1]


def test_a_state_is_kept_unless_results_cover_a_window() -> None:
    assert not declared_states(Count(by="value", scope="window"))
    assert set(declared_states(Count(by="value"))) == {"kept"}


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


@pytest.mark.parametrize("by", [("word",), ("word", "other")])
def test_keys_that_are_tuples_are_no_text(by: tuple[str, ...]) -> None:
    """As `-D 'operator.count.by=["value"]'` makes them: told when the DAG is checked, not by the first record."""
    for made in (Count[str, str](by=by), Sum[str, str, int](by=by), Tumbling[str, str, int](60, time="at", by=by)):
        with pytest.raises(ValueError, match=r"by=\('word',.*keys of str: name (it alone.*: word|one column)$"):
            made.check()
    for right in (Count[str, tuple[str, ...]](by=by), Count[str, Any](by=by), Count(by=by), Count[str, str](by="value")):
        right.check()
