"""`TopN` and `Deduplicate` over windows and launches against DuckDB: any rows of any types, some of them taken back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import ColumnNotThere, ColumnTypeChanged, NeverInserted, OtherColumns, RecordsWithoutColumns
from dagflow.testing import OperatorTask, Window, check_operator, run_operator
from operators import Deduplicate, Distinct, GroupBy, Sort, TopN, agg, col
from tests.operators.aggregate.test_group_by import VALUES, Batches, rows_of
from tests.operators.small_portions import small_portions
from tests.tiers import examples

FLOATS = ("float64", "float32")


@attrs.frozen
class Case:
    """Windows of rows, each row with its sign."""

    kind: str
    windows: list[list[tuple[tuple[Any, ...], bool]]]

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        schema = pa.schema({"k": pa.int32(), "key": pa.string(), "v": VALUES[self.kind][0]})
        columns = zip(*rows, strict=True) if rows else [[]] * len(schema)
        return pa.record_batch([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def left(self, windows: int) -> list[tuple[Any, ...]]:
        """The rows that are there after some windows."""
        rows: list[tuple[Any, ...]] = []
        for row, retracts in (each for window in self.windows[:windows] for each in window):
            if not retracts:
                rows.append(row)
        for row, retracts in (each for window in self.windows[:windows] for each in window):
            if retracts:
                rows.remove(row)  # the same objects: so NaN equals itself
        return rows


@st.composite
def cases(draw: st.DrawFn, *, changes: bool = True) -> Case:
    kind = draw(st.sampled_from(list(VALUES)))
    few = draw(st.lists(VALUES[kind][1], min_size=1, max_size=3))
    value = st.one_of(st.none(), st.sampled_from(few), VALUES[kind][1])
    row = st.tuples(st.integers(0, 2) | st.none(), st.sampled_from(["", "a", "b"]) | st.none(), value)
    windows: list[list[tuple[tuple[Any, ...], bool]]] = []
    there: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 4))):
        new = draw(st.lists(row, max_size=8))
        there += new
        gone = draw(st.lists(st.sampled_from(range(len(there))), unique=True, max_size=8)) if there and changes else []
        window = [(each, False) for each in new] + [(there[number], True) for number in gone]
        there = [each for number, each in enumerate(there) if number not in gone]
        windows.append(draw(st.permutations(window)))
    return Case(kind, windows)


RANKINGS: dict[str, tuple[Any, str, str]] = {
    "top": (lambda: TopN(2, "v", by="k"), "k", "v DESC, k, key"),
    "smallest": (lambda: TopN(1, "v", by=("key", "k"), smallest=True), "key, k", "v, k, key"),
    "of all": (lambda: TopN(3, "v"), "1", "v DESC, k, key"),
    "by a function": (lambda: TopN(2, "v", by=lambda row: row["k"]), "k", "v DESC, k, key"),
    "first": (lambda: Deduplicate(by="k"), "k", "k, key, v"),
    "last": (lambda: Deduplicate(by="key", keep="last"), "key", "k DESC, key DESC, v DESC"),
    "newest": (lambda: Deduplicate(by=("k",), keep="last", order_by="v"), "k", "v DESC, k DESC, key DESC"),
    "equal": (lambda: Deduplicate(), "k, key, v", "k"),
    "distinct rows": (lambda: Distinct(), "k, key, v", "k"),
    "distinct": (lambda: Distinct("key", "k"), "k, key", "k"),
}


def expected(name: str, case: Case, windows: int) -> Counter[tuple[Any, ...]]:
    operator, by, order = RANKINGS[name][0](), *RANKINGS[name][1:]
    terms = [f"{term} NULLS LAST" for term in order.split(", ")]
    if case.kind in FLOATS:
        terms = [f"isnan(v), {term}" if term.startswith("v ") else term for term in terms]
    where = "TRUE"
    if isinstance(operator, TopN):
        where = "v IS NOT NULL" + (" AND NOT isnan(v)" if case.kind in FLOATS else "")
    rank = f"row_number() OVER (PARTITION BY {by} ORDER BY {', '.join(terms)})"
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_batches([case.batch(case.left(windows))]))
        found = connection.sql(f"SELECT * FROM rows WHERE {where} QUALIFY {rank} <= {getattr(operator, 'n', 1)}")
        found = found.select(*operator.keys) if getattr(operator, "keys", ()) else found
        return rows_of(found.to_arrow_table())


def check(name: str, case: Case, *, is_changing: bool, partial: bool = False) -> None:
    """Each window is a launch of its own, and takes back only what stands. What stands is what SQL says."""
    states: Any = None
    stands: Counter[tuple[Any, ...]] = Counter()
    for number, window in enumerate(case.windows):
        port = "input"
        chunks = [(case.batch([row for row, sign in window if sign == retracts]), retracts) for retracts in (True, False)]
        if partial:
            before: Any
            before, port = RANKINGS[name][0]().partial_aggregation("input")
            with OperatorTask(before, in_batches=True) as task:
                before.input.is_changing = is_changing
                sent = Batches(task)
                for batch, retracts in chunks:
                    task.give("input", batch, "batch", retracts=retracts)
            chunks = list(sent)
        operator: Any = RANKINGS[name][0]()
        with OperatorTask(operator, in_batches=True, window=number, states=states) as task:
            operator.input.is_changing = is_changing
            changes = Batches(task)
            task.begin_window()
            for batch, retracts in chunks:
                task.give(port, batch, "batch", retracts=retracts)
            task.end_window()
            states = task.states()
        for batch, retracts in changes:
            rows = rows_of(pa.Table.from_batches([batch]))
            assert not retracts or rows <= stands
            (stands.subtract if retracts else stands.update)(rows)
        assert +stands == expected(name, case, number + 1)


@pytest.mark.parametrize("name", RANKINGS)
@settings(max_examples=examples(20), deadline=None)
@given(case=cases(), partial=st.booleans(), small=st.booleans())
def test_any_changes(name: str, case: Case, partial: bool, small: bool) -> None:
    with small_portions(small=small):
        check(name, case, is_changing=True, partial=partial)


@pytest.mark.parametrize("name", RANKINGS)
@settings(max_examples=examples(20), deadline=None)
@given(case=cases(changes=False), partial=st.booleans(), small=st.booleans())
def test_any_rows_that_stay(name: str, case: Case, partial: bool, small: bool) -> None:
    with small_portions(small=small):
        check(name, case, is_changing=False, partial=partial)


@pytest.mark.parametrize("name", ["top", "newest", "by a function"])
def test_rows_are_ordered_before_a_window_ends(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("operators.aggregate.ranked_rows.WAITING_ROWS", 10)
    rows = [((number % 3, "ab"[number % 2], number * 7 % 50), False) for number in range(200)]
    case = Case("int64", [rows[:150], rows[150:]])
    for is_changing in (True, False):
        check(name, case, is_changing=is_changing)
    operator: Any = RANKINGS[name][0]()
    with OperatorTask(operator, in_batches=True) as task:
        operator.input.is_changing = False
        for row, _ in rows:
            task.give("input", case.batch([row]), "batch")
        assert sum(table.num_rows for table in operator.ranked.tables) < 3 * 2 + 10 + 2


@attrs.frozen
class Row:
    k: int
    v: int | None


LAWFUL = [TopN(2, "v", by="k"), Deduplicate(by="k"), Deduplicate(), Distinct(), Distinct("v")]


@pytest.mark.parametrize("operator", LAWFUL, ids=str)
def test_the_laws_of_operators(operator: Any) -> None:
    rows = st.builds(Row, st.integers(0, 2), st.integers(0, 3) | st.none())
    check_operator(operator, rows, port="input", max_examples=examples(20))


def windows(*batches: dict[str, Any]) -> dict[str, list[Any]]:
    return {"input": [Window([pa.record_batch(batch)]) for batch in batches]}


def test_what_cannot_be_right_is_refused() -> None:
    never = pytest.raises(NeverInserted, match="takes back a row that it has not emitted: k=1, v=2")
    with never, OperatorTask(TopN[Any](1, "v", by="k")) as task:
        task.give("input", pa.record_batch({"k": [1], "v": [2]}), "batch", retracts=True)
    with pytest.raises(ColumnTypeChanged, match="the column 'k' is string, and was int64 before"):
        run_operator(Deduplicate(by="k"), windows({"k": [1], "v": [2]}, {"k": ["a"], "v": [2]}))
    with pytest.raises(ColumnTypeChanged, match="the column 'v' is string, and was int64 before"):
        run_operator(Deduplicate(by="k"), windows({"k": [1], "v": [2]}, {"k": [1], "v": ["b"]}))
    with pytest.raises(OtherColumns, match=r"now     k\n  before  k, v\n  help: name those to compare: Distinct\('k', 'v'\)"):
        run_operator(Distinct(), {"input": [pa.record_batch({"k": [1], "v": [2]}), pa.record_batch({"k": [1]})]})
    with pytest.raises(ValueError, match="Distinct has no aggregates"):
        Distinct("k", n=agg.count()).check()
    with pytest.raises(ValueError, match="keep and order_by need a key"):
        Deduplicate(keep="last").check()
    with pytest.raises(RecordsWithoutColumns, match='scope="window"'):
        run_operator(TopN(1, "n"), {"input": [{"n": 1}]})


def test_a_column_that_comes_later_is_null_in_rows_that_are_kept() -> None:
    found = run_operator(Deduplicate(by="k", keep="last"), windows({"k": [1, 2]}, {"k": [1], "a": ["x"]}, {"k": [2]}))
    assert found["output"] == [{"k": 1}, {"k": 2}, {"k": 1, "a": "x"}]
    assert found.retracted["output"] == [{"k": 1, "a": None}]


@pytest.mark.parametrize(
    ("operator", "setting"),
    [(Deduplicate(by="key", order_by="typo"), "order_by"), (Sort("typo"), "by"), (TopN(1, of="typo"), "of")],
    ids=["Deduplicate", "Sort", "TopN"],
)
def test_a_column_that_is_not_there_is_named_with_its_property(operator: Any, setting: str) -> None:
    with pytest.raises(ColumnNotThere, match=f"there is no column 'typo', which `{setting}` names"):
        run_operator(operator, {"input": [pa.table({"key": [1], "type": [2]})]})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: agg.sum(col("a") * col("b")), r"column takes the name of a column; got col\('a'\) \* col\('b'\)"),
        (lambda: GroupBy(col("a") % 2, n=agg.count()), r"keys takes the name of a column; got col\('a'\) % 2"),
        (lambda: Sort([col("a")]), "by takes the name of a column"),
        (lambda: TopN(1, of=col("a")), "of must be a function of the record or the name of a column"),
    ],
    ids=["agg", "GroupBy", "Sort", "TopN"],
)
def test_expressions_are_computed_before(make: Any, told: str) -> None:
    with pytest.raises(TypeError, match=rf"{told}.*\. Compute it before: Select\('\*', name=col"):
        make()
