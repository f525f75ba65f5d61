"""`GroupBy` against DuckDB: any rows of any types, in any chunks, some of them taken back."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dagflow import DAG, Window
from dagflow.errors import ColumnNotThere, ColumnTypeChanged, RowsNotKept, TotalNotHeld, ValueColumnRefused
from dagflow.testing import Collector, OperatorTask, run_dag, run_operator
from operators import Distinct, GroupBy, TopN, agg
from operators.aggregate.accumulators import Accumulator, accumulated, merged
from operators.aggregate.group_by import GroupByResult, PartialGroupBy
from tests.conformance.windows import InWindows
from tests.tiers import examples


@attrs.frozen
class Number:
    """A row with one column."""

    k: int


NAN = float("nan")
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.one_of(st.integers(-5, 5), st.integers(-(2**58), 2**58))),
    "uint64": (pa.uint64(), st.integers(0, 2**58)),
    "float64": (pa.float64(), st.one_of(st.floats(), st.sampled_from([1e20, -1e20, 1.0, 0.1, -0.0, NAN, math.inf, 5e-324]))),
    "float32": (pa.float32(), st.floats(width=32)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "string": (pa.string(), st.text("aZ\0ß☃", max_size=3)),
    "timestamp": (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    "date": (pa.date32(), st.dates()),
    "boolean": (pa.bool_(), st.booleans()),
}
ADDED_UP = ("int32", "int64", "uint64", "float64", "float32", "decimal")
KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "one": (pa.int32(), st.integers(0, 2)),
    "other": (pa.string(), st.sampled_from(["", "a", "b"])),
    "real": (pa.float64(), st.sampled_from([0.0, -0.0, NAN, 1.5])),
}


@attrs.frozen
class Case:
    """Rows of a key and a value, those that are taken back among them, and where they are cut into chunks."""

    keys: tuple[str, ...]
    kind: str
    rows: list[tuple[Any, ...]]
    retracted: list[int]
    cuts: list[int]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*((name, KEYS[name][0]) for name in self.keys), ("v", VALUES[self.kind][0])])

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True) if rows else [[]] * len(self.schema)
        return pa.record_batch([pa.array(list(c), f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema)

    def chunks(self, rows: list[tuple[Any, ...]]) -> list[pa.RecordBatch]:
        bounds = sorted({0, len(rows), *(cut for cut in self.cuts if cut < len(rows))})
        return [self.batch(rows[start:stop]) for start, stop in pairwise(bounds)]

    @property
    def left(self) -> list[tuple[Any, ...]]:
        gone = {number for number in self.retracted if number < len(self.rows)}
        return [row for number, row in enumerate(self.rows) if number not in gone]

    @property
    def taken_back(self) -> list[tuple[Any, ...]]:
        return [self.rows[number] for number in sorted({n for n in self.retracted if n < len(self.rows)})]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    keys = tuple(draw(st.lists(st.sampled_from(list(KEYS)), unique=True, max_size=2)))
    kind = draw(st.sampled_from(list(VALUES)))
    values = st.one_of(st.none(), VALUES[kind][1])
    row = st.tuples(*(st.one_of(st.none(), KEYS[name][1]) for name in keys), values)
    rows = draw(st.lists(row, max_size=20))
    return Case(keys, kind, rows, draw(st.lists(st.integers(0, 19))), draw(st.lists(st.integers(1, 19))))


def aggregates(kind: str) -> dict[str, Any]:
    found = {"n": agg.count(), "values": agg.count("v"), "least": agg.min("v"), "most": agg.max("v")}
    return {**found, "total": agg.sum("v"), "average": agg.mean("v")} if kind in ADDED_UP else found


def plain(value: Any) -> Any:
    """A value that equals itself: all NaN are one, and zeros too."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return Counter(tuple(map(plain, row)) for row in zip(*(c.to_pylist() for c in columns), strict=True))


def expected(case: Case) -> Counter[tuple[Any, ...]]:
    """DuckDB's groups; sums and means of floats by `math.fsum`."""
    rows = pa.table({"#": range(len(case.left)), **dict(zip(case.schema.names, case.batch(case.left).columns, strict=True))})
    by = ", ".join(f'"{name}"' for name in case.keys)
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        each = f"SELECT {by + ', ' if by else ''} count(*), count(v), min(v), max(v) FROM rows"
        found: pa.Table = connection.sql(f"{each} GROUP BY {by}" if by else f"{each} HAVING count(*) > 0").to_arrow_table()
    groups = rows_of(found)
    if case.kind not in ADDED_UP:
        return groups
    values: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for *key, value in case.left:
        if value is not None:
            values[tuple(map(plain, key))].append(value)
    totals = {key: (total(given), mean(given)) for key, given in values.items()}
    width = len(case.keys)
    return Counter((*group, *map(plain, totals.get(group[:width], (None, None)))) for group in groups)


def total(values: list[Any]) -> Any:
    if not isinstance(values[0], float):
        return sum(values)
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return NAN
    infinite = [value for value in values if math.isinf(value)]
    try:
        return infinite[0] if infinite else math.fsum(values)
    except OverflowError:
        return math.copysign(math.inf, sum(map(int, values)))


def mean(values: list[Any]) -> float:
    if isinstance(values[0], float) and not all(map(math.isfinite, values)):
        return float(total(values))
    try:
        return float(sum(map(Fraction, values)) / len(values))
    except OverflowError:
        return math.inf


class Batches(list[Any]):
    """The end of the stream of a task: the batches as they come. Python has no objects for some of their values."""

    def __init__(self, task: OperatorTask) -> None:
        task._node.outlets["output"].inlets[:] = [self]

    def steps(self, chunk: Any, retracts: bool) -> Iterator[Any]:
        self.append((chunk, retracts))
        return iter(())

    @property
    def rows(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for batch, retracts in self:
            (found.subtract if retracts else found.update)(rows_of(pa.Table.from_batches([batch])))
        return Counter({row: number for row, number in found.items() if number})


@given(cases())
@settings(max_examples=examples(100), deadline=None)
def test_any_rows_and_changes(case: Case) -> None:
    with OperatorTask(PartialGroupBy(keys=case.keys, aggregates=aggregates(case.kind)), in_batches=True) as task:
        partials = Batches(task)
        for chunk in case.chunks(case.rows):
            task.give("input", chunk)
        for chunk in case.chunks(case.taken_back):
            task.give("input", chunk, retracts=True)
    with OperatorTask(GroupBy(*case.keys, **aggregates(case.kind)), in_batches=True) as task:
        groups = Batches(task)
        for batch, retracts in partials:
            assert not retracts
            task.give("partials", batch)
    assert groups.rows == expected(case)


@given(cases(), st.sampled_from(["partials", "input"]))
@settings(max_examples=examples(50), deadline=None)
def test_windows_and_launches(case: Case, port: str) -> None:
    """Each window is a launch of its own, and takes back only what stands. At last that is what SQL says."""
    states: Any = None
    stands: Counter[tuple[Any, ...]] = Counter()
    steps = [(chunk, False) for chunk in case.chunks(case.rows)] + [(chunk, True) for chunk in case.chunks(case.taken_back)]
    for number, (chunk, retracts) in enumerate(steps):
        given = [(chunk, retracts)]
        if port == "partials":
            with OperatorTask(PartialGroupBy(keys=case.keys, aggregates=aggregates(case.kind)), in_batches=True) as task:
                partials = Batches(task)
                task.give("input", chunk, retracts=retracts)
            given = [(batch, False) for batch, _ in partials]
        with OperatorTask(GroupBy(*case.keys, **aggregates(case.kind)), in_batches=True, window=number, states=states) as task:
            changes = Batches(task)
            for batch, takes_back in given:
                task.give(port, batch, retracts=takes_back)
            task.end_window()
            states = task.states()
        for batch, takes_back in changes:
            rows = rows_of(pa.Table.from_batches([batch]))
            assert not takes_back or rows <= stands
            (stands.subtract if takes_back else stands.update)(rows)
    assert +stands == expected(case)


@given(cases(), st.data())
@settings(max_examples=examples(50), deadline=None)
def test_the_result_at_emission_points(case: Case, data: st.DataObject) -> None:
    """At each of them all rows that stand come, none taken back; in between nothing, whichever windows these are."""
    states, given_so_far = None, list[tuple[pa.RecordBatch, bool]]()
    steps = [(chunk, False) for chunk in case.chunks(case.rows)] + [(chunk, True) for chunk in case.chunks(case.taken_back)]
    for number, (chunk, retracts) in enumerate(steps):
        emits = number == len(steps) - 1 or data.draw(st.booleans())
        operator = GroupByResult(keys=case.keys, aggregates=aggregates(case.kind))
        with OperatorTask(operator, in_batches=True, window=number, states=states) as task:
            task.context.emits = emits
            result = Batches(task)
            task.give("input", chunk, retracts=retracts)
            task.end_window()
            states = task.states()
        given_so_far.append((chunk, retracts))
        with OperatorTask(GroupBy(*case.keys, **aggregates(case.kind)), in_batches=True) as task:
            whole = Batches(task)
            for each, takes_back in given_so_far:
                task.give("input", each, retracts=takes_back)
        assert result.rows == (whole.rows if emits else Counter())
        assert not any(takes_back for _, takes_back in result)


def of_values(case: Case) -> Counter[tuple[Any, ...]]:
    """Aggregates of all values by SQL."""
    by = ", ".join(f'"{name}"' for name in case.keys)
    rows = pa.table({"#": range(len(case.left)), **dict(zip(case.schema.names, case.batch(case.left).columns, strict=True))})
    middle = "quantile_cont(v::DOUBLE, 0.3)" if case.kind in ADDED_UP else "NULL"
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        each = (
            f"SELECT {by + ', ' if by else ''} count(DISTINCT v), list(v ORDER BY v) FILTER (v IS NOT NULL), {middle} FROM rows"
        )
        groups = connection.sql(f"{each} GROUP BY {by}" if by else f"{each} HAVING count(*) > 0").fetchall()
    return Counter(tuple(map(approximate, group)) for group in groups)


def approximate(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(plain, value))
    return f"{value + 0.0:.9e}" if isinstance(value, float) and math.isfinite(value) else plain(value)


@given(cases(), st.sampled_from([GroupBy, GroupByResult]))
@settings(max_examples=examples(50), deadline=None)
def test_aggregates_of_all_values(case: Case, kind: type[GroupBy]) -> None:
    """Over windows, with rows that are taken back."""
    assume(case.kind != "timestamp")  # whose objects have no nanoseconds
    wanted: dict[str, Any] = {"different": agg.count_distinct("v"), "all": agg.collect("v")}
    if case.kind in ADDED_UP:
        wanted["middle"] = agg.quantile("v", 0.3)
    states, stands = None, Counter[tuple[Any, ...]]()
    steps = [(chunk, False) for chunk in case.chunks(case.rows)] + [(chunk, True) for chunk in case.chunks(case.taken_back)]
    for number, (chunk, retracts) in enumerate(steps):
        operator = kind(keys=case.keys, aggregates=wanted)
        with OperatorTask(operator, in_batches=True, window=number, states=states) as task:
            task.give("input", chunk, retracts=retracts)
            task.end_window()
            states = task.states()
        if kind is GroupByResult:
            stands.clear()
        for records, change in ((task.retracted["output"], stands.subtract), (task.emitted["output"], stands.update)):
            change(tuple(map(approximate, (*row.values(), *([] if "middle" in row else [None])))) for row in records)
    assert +stands == of_values(case)


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9), st.just(math.inf)), max_size=8), st.randoms(use_true_random=False))
def test_deviations_are_exact(values: list[float | None], chance: Any) -> None:
    """In any order, and as exact as a float can be."""
    numbers = [value for value in values if value is not None]
    shuffled = chance.sample(values, len(values))
    batches = [pa.record_batch({"v": pa.array(each, pa.float64())}) for each in (values, shuffled)]
    found = [run_operator(GroupBy(d=agg.stddev("v")), {"input": [batch]})["output"] for batch in batches]
    assert repr(found[0]) == repr(found[1])
    if not values:
        assert found[0] == []
    elif len(numbers) < 2:
        assert found[0] == [{"d": None}]
    elif math.inf in numbers:
        assert math.isnan(found[0][0]["d"])
    else:
        assert found[0][0]["d"] == pytest.approx(statistics.stdev(map(Fraction, numbers)), rel=1e-15)


def test_integers_that_no_float_holds() -> None:
    """A quantile is the float next to it, a deviation exact."""
    rows = pa.record_batch({"v": pa.array([2**53 + 1, 2**53 + 3, 2**63 - 1], pa.int64())})
    wanted = {"q": agg.quantile("v", 1), "d": agg.stddev("v")}
    assert run_operator(GroupBy(aggregates=wanted), {"input": [rows]})["output"] == [
        {"q": 2.0**63, "d": pytest.approx(statistics.stdev(map(Fraction, rows.column("v").to_pylist())))}
    ]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300), min_size=2, max_size=6))
@example([0.0, 0.2])
@example([0.3, 0.0, 2.469789055950102, -0.8370639980055117, 0.1, 1.0151253021450142])
def test_a_deviation_is_rounded_once(values: list[float]) -> None:
    found = run_operator(GroupBy(d=agg.stddev("v")), {"input": [pa.record_batch({"v": values})]})["output"]
    assert found == [{"d": statistics.stdev(values)}]


def test_a_quantile_is_of_a_share() -> None:
    with pytest.raises(ValueError, match="a quantile is of a share from 0 to 1, not 50"):
        agg.quantile("v", 50)
    with pytest.raises(ValueColumnRefused):
        run_operator(GroupBy(aggregates={"q": agg.quantile("v", 0.5)}), {"input": [pa.record_batch({"v": ["a"]})]})


WIDER: dict[str, list[tuple[pa.DataType, Any]]] = {
    "integers, then floats": [(pa.int64(), 3), (pa.float64(), 0.25), (pa.null(), None), (pa.int32(), 5)],
    "decimals of more digits": [(pa.decimal128(5, 1), Decimal("1.5")), (pa.decimal128(9, 4), Decimal("0.1251")), (pa.int8(), 7)],
    "longer integers": [(pa.int8(), 3), (pa.int64(), 1 << 40), (pa.int16(), -4)],
    "no values at first": [(pa.null(), None), (pa.int32(), 2), (pa.float64(), 0.5)],
}


@pytest.mark.parametrize("result", [False, True])
@pytest.mark.parametrize("name", WIDER)
@given(order=st.data())
@settings(max_examples=examples(10), deadline=None)
def test_values_become_wider_over_windows(name: str, result: bool, order: st.DataObject) -> None:
    """Groups that are not touched meanwhile keep what they had in the columns of the earlier type."""
    windows, values = [], defaultdict[str, list[Any]](list)
    for kind, value in order.draw(st.permutations(WIDER[name])):
        keys = order.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
        windows.append(Window([pa.record_batch({"k": keys, "v": pa.array([value] * len(keys), kind)})]))
        for key in keys:
            values[key] += [] if value is None else [value]
    aggregates = {"total": agg.sum("v"), "mean": agg.mean("v"), "least": agg.min("v"), "most": agg.max("v"), "n": agg.count("v")}
    operator = (GroupByResult if result else GroupBy)(keys=("k",), aggregates=aggregates)
    last = {row.pop("k"): tuple(row.values()) for row in run_operator(operator, {"input": windows})["output"]}
    assert last == {
        key: (sum(own), pytest.approx(float(sum(own)) / len(own)), min(own), max(own), len(own)) if own else (None,) * 4 + (0,)
        for key, own in values.items()
    }


@given(cases())
@settings(max_examples=examples(50), deadline=None)
def test_without_a_partial_aggregation(case: Case) -> None:
    with OperatorTask(GroupBy(*case.keys, **aggregates(case.kind)), in_batches=True) as task:
        groups = Batches(task)
        for chunk in case.chunks(case.taken_back):  # the order of signs means nothing
            task.give("input", chunk, retracts=True)
        for chunk in case.chunks(case.rows):
            task.give("input", chunk)
    assert groups.rows == expected(case)


def test_without_changes_only_the_extremes_are_kept() -> None:
    rows = pa.record_batch({"k": [1, 1, 2], "v": [5, 3, None]})
    partial = PartialGroupBy(keys=["k"], aggregates={"least": agg.min("v")})
    found = run_operator(partial, {"input": [rows]})["output"]
    assert found == [
        {"k": 1, "#rows": 2, "least#values:int64": [{"value": 3, "n": 1}]},
        {"k": 2, "#rows": 1, "least#values:int64": []},
    ]


def grouped(*batches: dict[str, Any], **aggregates: Any) -> list[Any]:
    given = [each if isinstance(each, pa.RecordBatch) else pa.record_batch(each) for each in batches]
    return run_operator(GroupBy("k", scope="window", **aggregates), {"input": given})["output"]


def test_a_column_without_values_takes_the_type_of_later_ones() -> None:
    nothing = {"k": [1], "v": pa.nulls(1)}
    assert grouped(nothing, total=agg.sum("v"), least=agg.min("v")) == [{"k": 1, "total": None, "least": None}]
    for batches in ([nothing, {"k": [1], "v": [0.5]}, nothing], [{"k": [1], "v": [0.5]}, nothing]):
        assert grouped(*batches, total=agg.sum("v"), least=agg.min("v")) == [{"k": 1, "total": 0.5, "least": 0.5}]


def test_what_cannot_be_right_is_refused() -> None:
    with pytest.raises(ColumnTypeChanged, match="'v' is double, and was decimal128"):
        grouped({"k": [1], "v": [Decimal(1)]}, {"k": [1], "v": [0.5]}, total=agg.sum("v"))
    with pytest.raises(ColumnTypeChanged, match="'v' is double, and was int64 before"):
        grouped({"k": [1], "v": [2**62 + 1]}, {"k": [1], "v": [0.5]}, least=agg.min("v"))
    with pytest.raises(TotalNotHeld, match="'total' is 9223372036854775808 in a group"):
        grouped({"k": [1, 1], "v": [2**62, 2**62]}, total=agg.sum("v"))
    with pytest.raises(ValueColumnRefused):
        grouped({"k": [1], "v": ["a"]}, total=agg.sum("v"))
    with pytest.raises(ColumnNotThere, match="an aggregate"):
        grouped({"k": [1]}, total=agg.sum("v"))
    with pytest.raises(ValueError, match="the column 'k' would be there twice"):
        GroupBy("k", k=agg.count()).check()
    with pytest.raises(ValueError, match="neither keys nor aggregates"):
        GroupBy().check()


def test_digits_of_many_rows_are_carried() -> None:
    """A digit holds sums of 2**32 values; more of them are carried on."""
    accumulator = Accumulator.of("s", "sum", "v", pa.float64())
    batch = pa.record_batch({"v": [1.0]})
    table = accumulated(batch, (), [accumulator], 1)
    for _ in range(40):  # twice as much each time
        table = merged([table, table], (), [accumulator])
    assert accumulator.results(table).to_pylist() == [2.0**40]


def counted(*batches: pa.RecordBatch) -> int:
    """The rows that a partial aggregation counts."""
    partial = PartialGroupBy(keys=["k"], aggregates={"n": agg.count()})
    return sum(row["#rows"] for row in run_operator(partial, {"input": list(batches)})["output"])


def test_a_partial_aggregation_of_many_groups_goes_on_after_it_has_sent_them() -> None:
    many = pa.record_batch({"k": pa.array(range(120_000), pa.int32())})
    assert counted(many, pa.record_batch({"k": pa.array(range(5), pa.int64())})) == 120_005
    huge = pa.record_batch({"k": pa.array([number % 150_000 for number in range(2**20 + 1000)])})
    assert counted(huge) == 2**20 + 1000


def test_all_nan_are_one_key() -> None:
    nan = pa.array([float("nan"), -float("nan")])
    assert [row["n"] for row in grouped({"k": nan}, n=agg.count())] == [2]


def test_types_of_keys_stay_of_one_kind() -> None:
    widths = [{"k": pa.array([1], pa.int8())}, {"k": pa.array([1, 2], pa.int64())}, {"k": pa.nulls(1)}]
    assert grouped(*widths, n=agg.count()) == [{"k": 1, "n": 2}, {"k": 2, "n": 1}, {"k": None, "n": 1}]
    for other in (["a"], [0.5]):
        with pytest.raises(ColumnTypeChanged, match=r"the column 'k' is (string|double), and was int64 before"):
            grouped({"k": [1]}, {"k": other}, n=agg.count())


@pytest.mark.parametrize("function", [agg.sum, agg.mean, agg.min, agg.max])
@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.array([2**53, -(2**53), -7]), pa.array([0.25, -1e300])),
        (pa.array([2**62, 2**62, -3]), pa.array([Decimal("0.25")])),
        (pa.array([Decimal("1.5"), Decimal("-2.5")]), pa.array([Decimal("0.125")])),
        (pa.array([5, -6], pa.int8()), pa.array([2**40])),
        (pa.array([0.5], pa.float32()), pa.array([0.1])),
    ],
)
def test_values_may_become_wider(function: Any, narrow: Any, wide: Any) -> None:
    """In whatever order they come."""
    parts = [narrow[start : start + 1] for start in range(len(narrow))] + [wide]
    total = function("v")
    kind = pa.decimal128(38, wide.type.scale) if pa.types.is_decimal(wide.type) else wide.type
    whole = pa.concat_arrays([part.cast(kind) for part in parts])
    (expected,) = grouped({"k": pa.array([1] * len(whole)), "v": whole}, v=total)
    for order in itertools.permutations(parts):
        batches = [{"k": pa.array([1] * len(part)), "v": part} for part in order]
        assert grouped(*batches, v=total) == [expected]


def test_partial_groups_without_values_join_others() -> None:
    aggregates = {"total": agg.sum("v"), "least": agg.min("v")}
    partials = [
        run_operator(PartialGroupBy(keys=["k"], aggregates=aggregates), {"input": [pa.record_batch(rows)]}, form="batch")
        for rows in ({"k": [1], "v": [2]}, {"k": [1], "v": pa.nulls(1)})
    ]
    kinds = [Accumulator.of(name, each.function, each.column, pa.int64()) for name, each in aggregates.items()]
    nothing = [Accumulator.of(name, each.function, each.column, pa.null()) for name, each in aggregates.items()]
    assert [each["output"][0]["#rows"] for each in partials] == [1, 1]
    with OperatorTask(GroupBy("k", **aggregates), in_batches=True) as task:
        for accumulators, values in ((kinds, pa.array([2])), (nothing, pa.nulls(1))):
            table = accumulated(pa.record_batch({"k": pa.array([1]), "v": values}), ("k",), accumulators, 1)
            task.give("partials", table.to_batches()[0])
    assert task.emitted["output"] == [{"k": 1, "total": 2, "least": 2}]


def test_durations_have_extremes_and_half_floats_sums() -> None:
    pauses = pa.array([5, 3], pa.duration("us"))
    assert str(grouped({"k": [1, 1], "v": pauses}, least=agg.min("v"))[0]["least"]).endswith("00.000003")
    halves = pa.array([0.5, 1.5], pa.float32()).cast(pa.float16())
    assert grouped({"k": [1, 1], "v": halves}, total=agg.sum("v"), most=agg.max("v")) == [{"k": 1, "total": 2.0, "most": 1.5}]


def test_what_it_is_given_is_not_dropped() -> None:
    with pytest.raises(TypeError, match="and more of them: give all in one place"):
        GroupBy("k", aggregates={"n": agg.count()}, m=agg.count())
    with pytest.raises(TypeError, match="n='sum' is not an aggregate: write"):
        GroupBy("k", n="sum")
    with pytest.raises(ValueError, match="'a#b' has a '#'"):
        GroupBy("a#b", n=agg.count()).check()
    assert GroupBy(keys="shop").keys == ("shop",)


def test_it_runs_behind_an_operator_of_the_driver() -> None:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        numbers = dag.add_operator("numbers", InWindows[Number]([[Number(1), Number(2)], [Number(1)]]))
        by = dag.add_operator("by", GroupBy("k", n=agg.count()))
        dag.add_operator("seen", seen)
        dag.add_stream("all", numbers.output, by.input)
        dag.add_stream("groups", by.output, seen.input)

    run_dag(populate_dag)
    assert sorted(seen.records, key=lambda row: row["k"]) == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]


@pytest.mark.parametrize("operator", [GroupBy("k", most=agg.max("v")), TopN(1, "v", by="k")], ids=["GroupBy", "TopN"])
def test_what_an_append_stream_has_left_cannot_follow_changes(operator: Any) -> None:
    with OperatorTask(copy.copy(operator), in_batches=True) as task:
        task.operator.input.is_changing = False
        task.give("input", pa.record_batch({"k": [1, 1], "v": [5, 6]}))
        task.end_window()
        states = task.states()
    with OperatorTask(copy.copy(operator), in_batches=True, window=1, states=states) as task:
        task.give("input", pa.record_batch({"k": [1], "v": [6]}), retracts=True)
        with pytest.raises(RowsNotKept, match="rows that come here may be taken back"):
            task.end_window()


@pytest.mark.parametrize("operator", [GroupBy("v", n=agg.count()), Distinct("v")], ids=["GroupBy", "Distinct"])
@pytest.mark.parametrize("now", [pa.array([1.0]), pa.array(["1"]), pa.array([True])])
def test_a_key_of_another_type_is_refused_in_a_later_window(operator: Any, now: pa.Array) -> None:
    windows = [Window([pa.record_batch({"v": [1, 2]})]), Window([pa.record_batch({"v": now})])]
    with pytest.raises(ColumnTypeChanged, match=r"the column 'v' is .*, and was int64 before"):
        run_operator(operator, {"input": windows})


@pytest.mark.parametrize("values", [[pa.nulls(1), pa.nulls(2)], [pa.nulls(1), pa.array([5])], [pa.array([5]), pa.nulls(1)]])
def test_a_column_without_values(values: list[pa.Array]) -> None:
    windows = [Window([pa.record_batch({"k": [1] * len(each), "v": each})]) for each in values]
    rows = [value for each in values for value in each.to_pylist()]
    for operator in (GroupBy("k", n=agg.count(), most=agg.max("v")), GroupBy("v", n=agg.count()), Distinct("v"), TopN(1, "v")):
        found = run_operator(copy.copy(operator), {"input": windows})
        left = Counter(map(repr, found.get("output", []))) - Counter(map(repr, found.retracted.get("output", [])))
        if "most" in getattr(operator, "aggregates", {}):
            most = max((value for value in rows if value is not None), default=None)
            assert left == Counter([repr({"k": 1, "n": len(rows), "most": most})])
        elif isinstance(operator, GroupBy):
            assert len(left) == len(set(rows))
        else:
            assert len(left) == len({value for value in rows if value is not None})


@pytest.mark.parametrize("scope", ["all", "window"])
def test_smallest_and_largest_of_values_that_arrow_orders_otherwise(scope: Any) -> None:
    nan = math.nan
    rows = pa.record_batch(
        {
            "k": ["a", "a", "b", "c", "d", "d"],
            "float": [nan, 1.0, nan, None, -0.0, 0.0],
            "small": pa.array([nan, 1.0, nan, None, -0.0, 0.0], pa.float32()),
            "span": pa.array([3, -2, 0, None, 7, 7], pa.duration("us")),
        }
    )
    aggregates = {f"{name}_{f}": getattr(agg, f)(name) for name in ("float", "small", "span") for f in ("min", "max")}
    results = run_operator(GroupBy("k", scope=scope, **aggregates), {"input": [rows]})["output"]
    of_each = {name: [str(row[name]) for row in results] for name in aggregates}
    for name in ("float", "small"):
        assert of_each[f"{name}_min"] == ["1.0", "nan", "None", "0.0"]
        assert of_each[f"{name}_max"] == ["nan", "nan", "None", "0.0"]
    assert [row["span_min"] and row["span_min"].microseconds % 10 for row in results] == [8, dt.timedelta(0), None, 7]
    assert [row["span_max"] and row["span_max"].microseconds for row in results] == [3, dt.timedelta(0), None, 7]
