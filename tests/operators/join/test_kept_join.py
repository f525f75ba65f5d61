"""`HashJoin` over all input against DuckDB: rows of both sides come and are taken back, in any windows and launches."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import ExpressionRefused, NeverInserted
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import HashJoin, Join, col
from operators.join.change import KINDS
from operators.join.errors import JoinColumnChanged, JoinColumnsClash, JoinColumnsUnknown, JoinKeysDiffer, JoinRecordNotKept
from tests.operators.small_portions import small_portions
from tests.tiers import examples

NAN = float("nan")
KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int32(), st.integers(0, 2)),
    "texts": (pa.string(), st.sampled_from(["", "a", "b"])),
    "reals": (pa.float64(), st.sampled_from([0.0, NAN, 1.5])),
    "dates": (pa.date32(), st.dates().map(lambda day: day.replace(year=2026, month=1, day=1 + day.day % 3))),
}
SIDES = ("left", "right")


@attrs.frozen
class Case:
    """A kind of key, and rows of both sides: keys, a value; with numbers of those that are taken back, in windows."""

    kinds: tuple[str, ...]
    windows: list[list[tuple[str, tuple[Any, ...], bool]]]

    def schema(self, side: str) -> pa.Schema:
        keys = [(f"k{number}", KEYS[kind][0]) for number, kind in enumerate(self.kinds)]
        return pa.schema([*keys, ("v" if side == "left" else "w", pa.int64())])

    def batch(self, side: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        names = self.schema(side).names
        return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=self.schema(side))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rows come, and any of those that have come are taken back, in any order within a window: before they come, too."""
    kinds = tuple(draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=2)))
    row = st.tuples(*(st.one_of(st.none(), KEYS[kind][1]) for kind in kinds), st.integers(0, 1))
    there: dict[str, list[Any]] = {side: [] for side in SIDES}
    windows = []
    for _ in range(draw(st.integers(1, 4))):
        changes: list[tuple[str, tuple[Any, ...], bool]] = []
        for side in SIDES:
            come = draw(st.lists(row, max_size=5))
            there[side] += come
            count = draw(st.integers(0, min(4, len(there[side]))))
            gone = [there[side].pop(draw(st.integers(0, len(there[side]) - 1))) for _ in range(count)]
            changes += [(side, each, False) for each in come] + [(side, each, True) for each in gone]
        windows.append(draw(st.permutations(changes)))
    return Case(kinds, windows)


def plain(row: Any) -> tuple[Any, ...]:
    return tuple(str(value) if isinstance(value, float) else value for value in row)  # NaN equals NaN


def stands(case: Case, side: str) -> list[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    values = {plain(row): row for window in case.windows for at, row, _ in window if at == side}
    for window in case.windows:
        for at, row, retracts in window:
            if at == side:
                rows[plain(row)] += -1 if retracts else 1
    return [values[row] for row in rows.elements()]


def expected(case: Case, how: str, condition: str | None = None, *, crosses: bool = False) -> Counter[tuple[Any, ...]]:
    """Return the rows of SQL. `condition`: a further one. `crosses`: rows are joined without the columns in common."""
    keys = [f"k{number}" for number in range(len(case.kinds))]
    with duckdb.connect() as connection:
        for side in SIDES:
            schema = pa.schema([(f.name, pa.string() if f.type == pa.float64() else f.type) for f in case.schema(side)])
            rows = [dict(zip(schema.names, plain(row), strict=True)) for row in stands(case, side)]
            connection.register(f"{side}_rows", pa.Table.from_pylist(rows, schema))
        equal = [] if crosses else [f"l.{key} = r.{key}" for key in keys]
        on = " AND ".join([*equal, *([f"({condition})"] if condition else [])]) or "true"
        if how in ("semi", "anti"):
            query = (
                f"SELECT * FROM left_rows l WHERE {'NOT ' if how == 'anti' else ''}EXISTS (SELECT * FROM right_rows r WHERE {on})"
            )
        else:
            every = [f"l.{key}" if crosses else f"coalesce(l.{key}, r.{key})" for key in keys]
            columns = ", ".join([*every, "v", *(f"r.{key}" for key in keys if crosses), "w"])
            query = f"SELECT {columns} FROM left_rows l {how} JOIN right_rows r ON {on}"
        found = connection.sql(query)
        return Counter(map(plain, found.fetchall()))


def joined(case: Case, how: Any, **more: Any) -> Iterator[Counter[tuple[Any, ...]]]:
    """Yield what stands after each window, each of them a launch of its own."""
    states: Mapping[str, Any] | None = None
    found: Counter[tuple[Any, ...]] = Counter()
    names = [f"k{number}" for number in range(len(case.kinds))]
    columns = ", ".join(f"{field.name}: {field.type}" for field in case.schema("right")).replace("date32[day]", "date32")
    declared = {"right_columns": columns} if "combine" not in more else {}
    for number, window in enumerate(case.windows):
        options = {"by": names[0] if len(names) == 1 else tuple(names), "how": how, **declared, **more}
        join = HashJoin[Any, Any, Any](**options)
        with OperatorTask(join, in_batches=True, window=number, states=states) as task:
            task.begin_window()
            join.left.columns = [(field.name, str(field.type)) for field in case.schema("left")]  # as readers agree on them
            for side, row, retracts in window:
                records: Any = case.batch(side, [row])
                task.give(side, records.to_pylist() if "combine" in more else records, retracts=retracts)
            task.end_window()
            for records, sign in ((task.retracted["output"], -1), (task.emitted["output"], 1)):
                for record in records:
                    found[plain(record.values() if isinstance(record, dict) else record)] += sign
            assert min(found.values(), default=0) >= 0
            states = task.states()
        yield Counter({row: number for row, number in found.items() if number})


@pytest.mark.parametrize("how", KINDS)
@settings(max_examples=examples(20), deadline=None)
@given(case=cases(), small=st.booleans())
def test_any_changes_of_both_sides(how: str, case: Case, small: bool) -> None:
    with small_portions(small=small):
        *_, found = joined(case, how)
    assert found == expected(case, how)


CONDITIONS = {"v < w": col("v") < col("w"), "v = w OR l.k0 IS NULL": (col("v") == col("w")) | col("k0").is_null()}


@pytest.mark.parametrize("how", KINDS)
@settings(max_examples=examples(20), deadline=None)
@given(case=cases(), condition=st.sampled_from([None, *CONDITIONS]), crosses=st.booleans(), small=st.booleans())
def test_any_condition_with_a_key_or_without(how: str, case: Case, condition: str | None, crosses: bool, small: bool) -> None:
    where = {} if condition is None else {"where": CONDITIONS[condition]}
    with small_portions(small=small):
        *_, found = joined(case, how, **where, **({"by": ()} if crosses else {}))
    assert found == expected(case, how, condition, crosses=crosses)


def test_join_is_a_join_of_rows() -> None:
    sides = {"left": [pa.table({"a": [1, 2], "n": [5, 6]})], "right": [pa.table({"b": [2], "n": [7]})]}
    assert run_operator(Join({"a": "b"}), sides)["output"] == [{"a": 2, "n": 6, "n_right": 7}]
    assert len(run_operator(Join(), sides)["output"]) == 2
    assert run_operator(pickle.loads(pickle.dumps(Join({"a": "b"}, "semi"))), sides)["output"] == [{"a": 2, "n": 6}]
    with pytest.raises(ExpressionRefused, match="there is no column 'm'"):
        run_operator(Join({"a": "b"}, where=col("m") > 1), sides)
    with pytest.raises(ValueError, match='it needs scope="all", and no combine'):
        run_operator(Join("n", where=col("n") > 1, scope="window"), sides)


@pytest.mark.parametrize("where", [lambda row: row["v"] > 1, True, "v > 1"])
def test_a_condition_is_an_expression(where: Any) -> None:
    wanted = "where takes no function: write an expression" if callable(where) else "where must be an expression over columns"
    with pytest.raises(TypeError, match=wanted):
        Join("k", where=where)


def test_an_inner_join_with_a_condition_takes_back_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 1], "v": [1, 2]}), tmp_path / "rows.parquet")
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows, join = dag.read(tmp_path / "rows.parquet"), dag.add_operator("join", Join("k", where=col("v") < col("v_right")))
        rows.to(join.left)
        rows.to(join.right)
        join.output.to(sink, name="sink")

    run_dag(populate_dag, {})
    assert sink.records == [{"k": 1, "v": 1, "v_right": 2}]


def test_columns_clash_only_where_they_are_emitted_or_read() -> None:
    sides = {
        "left": [pa.table({"k": [1, 2], "v": [1, 2], "v_right": [0, 0]})],
        "right": [pa.table({"k": [1, 2], "v": [9, 9], "w": [2, 2]})],
    }
    for where in (col("v") < col("w"), pc.field("v") < pc.field("w")):
        assert [row["k"] for row in run_operator(Join("k", "semi", where), sides)["output"]] == [1]
        assert [row["k"] for row in run_operator(Join("k", "anti", where), sides)["output"]] == [2]
        with pytest.raises(JoinColumnsClash, match="'v_right'"):
            run_operator(Join("k", "inner", where), sides)
    for where in (col("v_right") < col("w"), pc.field("v_right") < pc.field("w")):
        with pytest.raises(JoinColumnsClash, match="'v_right'"):
            run_operator(Join("k", "semi", where), sides)


@pytest.mark.parametrize("how", ["inner", "left", "full"])
@pytest.mark.parametrize("by_function", [False, True])
@settings(max_examples=examples(20), deadline=None)
@given(case=cases())
def test_any_changes_of_records(how: str, by_function: bool, case: Case) -> None:
    """Records without a class are kept as JSON."""
    names = [f"k{number}" for number in range(len(case.kinds))]

    def both(one: Any, other: Any) -> tuple[Any, ...]:
        return (*((one or other)[name] for name in names), one and one["v"], other and other["w"])

    by = {"by": lambda record: tuple(record[name] for name in names)} if by_function else {}
    *_, found = joined(case, how, combine=both, **by)
    assert found == expected(case, how)


@attrs.frozen
class Sale:
    """A class whose records are rows with columns."""

    town: str | None
    amount: int


ROWS = st.builds(Sale, st.sampled_from("ab") | st.none(), st.integers(0, 2))


@pytest.mark.parametrize(
    ("how", "port"), [(how, port) for how in KINDS for port in SIDES if port == "left" or how not in ("right", "full")]
)
def test_laws_of_operators(how: Any, port: str) -> None:
    join = HashJoin[Sale, Sale, Any]("town", how=how, right_columns="town: string, amount: int64")
    check_operator(join, ROWS, port=port, max_examples=examples(30))
    if how in ("inner", "left"):
        records = HashJoin[Sale, Sale, Any](lambda sale: sale.town, how=how, combine=lambda one, other: (one, other))
        check_operator(records, ROWS, port=port, max_examples=examples(30))


def windows(join: Any, *chunks: tuple[str, Any, bool]) -> Counter[str]:
    """Return the rows that stand after windows with a chunk each, as a launch each."""
    found: Counter[str] = Counter()
    states: Mapping[str, Any] | None = None
    for number, (side, chunk, retracts) in enumerate(chunks):
        with OperatorTask(attrs.evolve(join), window=number, states=states) as task:
            task.give(side, chunk, retracts=retracts)
            task.end_window()
            for records, sign in ((task.retracted["output"], -1), (task.emitted["output"], 1)):
                for record in records:
                    found[str(list(record.values()))] += sign
            states = task.states()
    return +found


def test_columns_may_come_later_and_keep_their_type() -> None:
    left = pa.record_batch({"key": ["a"], "v": pa.nulls(1)})
    right = pa.record_batch({"key": ["a"], "tags": [["x"]], "code": pa.array(["y"]).dictionary_encode()})
    more = pa.record_batch({"key": ["a"], "v": [0.5], "key_2": [1]})
    found = windows(HashJoin("key"), ("left", left, False), ("right", right, False), ("left", more, False))
    assert found == Counter(["['a', None, ['x'], 'y']", "['a', 0.5, 1, ['x'], 'y']"])


def test_a_column_of_another_type_is_refused() -> None:
    chunks = [("left", pa.record_batch({"key": ["a"], "v": [value]}), False) for value in (1, 0.5)]
    with pytest.raises(JoinColumnChanged, match="the column 'v' of the left side is double, and was int64 before"):
        windows(HashJoin("key"), *chunks)


def test_what_has_not_come_cannot_be_taken_back() -> None:
    one, other = (pa.record_batch({"key": ["a"], "v": [value]}) for value in (1, 2))
    with pytest.raises(NeverInserted, match="takes back a row that it has not emitted: key='a', v=2"):
        windows(HashJoin("key"), ("left", one, False), ("left", other, True))


def test_the_columns_of_nulls_must_be_known() -> None:
    rows = pa.record_batch({"key": ["a"], "v": [1]})
    with pytest.raises(JoinColumnsUnknown, match="no record arrived on the left side"):
        windows(HashJoin("key", how="full"), ("right", rows, False))


class Opaque:
    """Has neither columns nor a form as plain data."""

    key = 1


def test_records_that_cannot_be_kept_are_refused() -> None:
    join = HashJoin[Any, Any, Any]("key", combine=lambda one, other: 1)
    with pytest.raises(JoinRecordNotKept, match=r'join the records of each window only: scope="window"'):
        run_operator(join, {"left": [Opaque()], "right": []})
    join = HashJoin[Any, Any, Any](lambda record: object, combine=lambda one, other: 1)
    with pytest.raises(JoinRecordNotKept, match="a key cannot be kept for later windows"):
        run_operator(join, {"left": [1], "right": []})


@pytest.mark.parametrize(
    ("left", "right"),
    [(pa.array([0.5], pa.float32()), pa.array([0.1])), (pa.array([True]), pa.array([3])), (pa.array([1]), pa.array([2.5]))],
)
def test_a_key_that_the_left_column_does_not_hold(left: pa.Array, right: pa.Array) -> None:
    given = {"left": [pa.record_batch({"k": left})], "right": [pa.record_batch({"k": right, "x": [1]})]}
    with pytest.raises(JoinKeysDiffer, match="the key 'k' is"):
        run_operator(HashJoin("k", how="full"), given)


def test_a_key_that_the_left_column_holds() -> None:
    for left, right in (
        (pa.array([0.5]), pa.array([3])),
        (pa.nulls(1), pa.array([3])),
        (pa.array([5]), pa.array([3], pa.int8())),
    ):
        given = {"left": [pa.record_batch({"k": left})], "right": [pa.record_batch({"k": right, "x": [1]})]}
        assert {"k": 3, "x": 1} in run_operator(HashJoin("k", how="full"), given)["output"]
