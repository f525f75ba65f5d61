"""HashJoin beside two loops of plain Python: rows and records, inner and left."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import ColumnNotThere, OperatorFailed
from dagflow.runtime.stage.outlet import Outlet
from dagflow.testing import Collector, OperatorTask, Window, run_dag, run_operator
from operators import HashJoin
from operators.join.errors import JoinColumnsClash, JoinColumnsDiffer, JoinColumnsUnknown, JoinKeyRefused, JoinSideTooLarge
from tests.tiers import examples


@attrs.frozen
class Sale:
    town: str | None
    day: int | None
    amount: int


@attrs.frozen
class Town:
    town: str | None
    day: int | None
    amount: int
    country: str


KEYS = {"town": st.sampled_from("abc") | st.none(), "day": st.integers(0, 1) | st.none()}
SALES = st.lists(st.builds(Sale, **KEYS, amount=st.integers(0, 3)), max_size=12)
TOWNS = st.lists(st.builds(Town, **KEYS, amount=st.integers(0, 3), country=st.sampled_from(["se", "no"])), max_size=12)
NAMES: list[tuple[str, ...]] = [("town",), ("town", "day"), ("day", "amount", "town")]


def pairs(left: list[Any], right: list[Any], names: tuple[str, ...], how: str) -> list[tuple[Any, Any]]:
    found = []
    for one in left:
        key = [getattr(one, name) for name in names]
        partners = [other for other in right if key == [getattr(other, name) for name in names] and None not in key]
        found += [(one, other) for other in partners or ([None] if how == "left" else [])]
    return found


def row(one: Sale, other: Town | None, names: tuple[str, ...]) -> dict[str, Any]:
    fields = [field.name for field in attrs.fields(Town) if field.name not in names]
    rights = {name: None if other is None else getattr(other, name) for name in fields}
    return attrs.asdict(one) | {f"{name}_right" if name != "country" else name: value for name, value in rights.items()}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("scope", ["all", "window"])
def test_rows_are_joined_as_two_loops_say(scope: Any, how: Any, names: tuple[str, ...]) -> None:
    @settings(max_examples=examples(50))
    @given(SALES, TOWNS)
    def hold(sales: list[Sale], towns: list[Town]) -> None:
        join = HashJoin[Sale, Town, Any](names[0] if len(names) == 1 else names, how=how, scope=scope)
        found = run_operator(join, {"left": sales, "right": towns})["output"]
        assert found == [row(*pair, names) for pair in pairs(sales, towns, names, how)]

    hold()


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("is_function", [False, True])
@pytest.mark.parametrize("scope", ["all", "window"])
def test_records_are_joined_as_two_loops_say(scope: Any, how: Any, names: tuple[str, ...], is_function: bool) -> None:
    @settings(max_examples=examples(50))
    @given(SALES, TOWNS)
    def hold(sales: list[Sale], towns: list[Town]) -> None:
        by = (lambda record: tuple(getattr(record, name) for name in names)) if is_function else names
        join = HashJoin(by, how=how, combine=lambda sale, town: (sale, town), scope=scope)
        found = run_operator(join, {"left": sales, "right": towns})["output"]
        assert found == pairs(sales, towns, names, how)

    hold()


NUMBERS = st.integers(-2, 2) | st.none()
TYPES = [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.bool_()]


def column_of(kind: pa.DataType, values: list[int | None]) -> Any:
    fitting = [None if v is None else bool(v) if kind == pa.bool_() else abs(v) if kind == pa.uint64() else v for v in values]
    return pa.array([Decimal(v) if kind == TYPES[-2] and v is not None else v for v in fitting], kind)


@given(
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.lists(NUMBERS, max_size=6),
    st.lists(NUMBERS, max_size=6),
    st.sampled_from(["all", "window"]),
)
def test_keys_of_other_types_meet_where_they_are_equal_in_python(
    one: Any, other: Any, lefts: Any, rights: Any, scope: Any
) -> None:
    left, right = column_of(one, lefts), column_of(other, rights)
    tables = {
        "left": [pa.table({"key": left, "row": range(len(left))})],
        "right": [pa.table({"key": right, "at": pa.array(range(len(right)), pa.int64())})],
    }
    found = [(row["row"], row["at"]) for row in run_operator(HashJoin("key", scope=scope), tables)["output"]]
    assert found == [
        (i, j)
        for i, x in enumerate(left.to_pylist())
        for j, y in enumerate(right.to_pylist())
        if x is not None and y is not None and x == y
    ]


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.lists(NUMBERS, max_size=6), st.lists(NUMBERS, max_size=6))
def test_keys_of_other_types_meet_over_windows(one: Any, other: Any, lefts: list[Any], rights: list[Any]) -> None:
    states: Any = None
    found = []
    for window, (side, kind, values) in enumerate((("left", one, lefts), ("right", other, rights))):
        keys = column_of(kind, values)
        rows = pa.record_batch({"key": keys, "row" if side == "left" else "at": pa.array(range(len(keys)), pa.int64())})
        with OperatorTask(HashJoin("key"), in_batches=True, window=window, states=states) as task:
            task.give(side, rows)
            task.end_window()
            found += [(row["row"], row["at"]) for row in task.emitted["output"]]
            states = task.states()
    ones, others = column_of(one, lefts).to_pylist(), column_of(other, rights).to_pylist()
    assert sorted(found) == [(i, j) for i, x in enumerate(ones) for j, y in enumerate(others) if x is not None and x == y]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("scope", ["all", "window"])
def test_zeros_are_equal_and_so_is_what_is_not_a_number(scope: Any, kind: Any) -> None:
    left = pa.table({"key": pa.array([0.0, math.nan, None], kind)})
    right = pa.table({"key": pa.array([-0.0, math.nan, None], kind), "at": [0, 1, 2]})
    tables = {"left": [left], "right": [right]}
    assert [row["at"] for row in run_operator(HashJoin("key", scope=scope), tables)["output"]] == [0, 1]
    records = {"left": left.column("key").to_pylist(), "right": right.to_pylist()}
    join = HashJoin(lambda key: key, right_by="key", combine=lambda _, other: other["at"], scope=scope)
    assert run_operator(join, records)["output"] == [0, 1]


@pytest.mark.parametrize("scope", ["all", "window"])
def test_texts_of_any_form_and_times_of_other_zones_are_equal(scope: Any) -> None:
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    left = pa.table({"word": ["a", "b"], "at": pa.array([noon, noon], pa.timestamp("us", "UTC"))})
    right = pa.table(
        {
            "name": pa.array(["b", "a"]).dictionary_encode(),
            "time": pa.array([noon, noon], pa.timestamp("ms", "Europe/Stockholm")),
            "text": pa.array(["x", "y"], pa.large_string()),
        }
    )
    join = HashJoin(("word", "at"), right_by=("name", "time"), scope=scope)
    found = run_operator(join, {"left": [left], "right": [right]})["output"]
    assert [(row["word"], row["text"]) for row in found] == [("a", "y"), ("b", "x")]


def test_a_window_of_its_own_does_not_know_the_one_before() -> None:
    sales = {
        "left": [Window([Sale("a", 1, 1)]), Window([Sale("a", 1, 2)])],
        "right": [Window([Town("a", 1, 9, "se")]), Window([])],
    }
    found = run_operator(HashJoin[Sale, Town, Any]("town", how="left", scope="window"), sales)["output"]
    assert [(row["amount"], row["country"]) for row in found] == [(1, "se"), (2, None)]
    join = HashJoin[Any, Any, Any]("town", combine=lambda sale, town: (sale.amount, town.country), scope="window")
    assert run_operator(join, sales)["output"] == [(1, "se")]


def test_many_partners_come_in_several_batches_and_many_records_wait_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    scope: Any
    monkeypatch.setattr("operators.join.lookup.MAX_PAIRS", 7)
    monkeypatch.setattr("operators.join.buffer.MAX_LEFT_ROWS", 3)
    lefts = [pa.table({"key": [n % 3, n % 2], "row": [n, n]}) for n in range(6)]
    right = pa.table({"key": [0, 1, 1, 1, 1, 1], "at": range(6)})
    rows = [row for table in lefts for row in table.to_pylist()]
    wanted = [left | {"at": other["at"]} for left in rows for other in right.to_pylist() if left["key"] == other["key"]]
    for scope in ("all", "window"):
        assert run_operator(HashJoin("key", scope=scope), {"left": lefts, "right": [right]})["output"] == wanted
        join = HashJoin[Any, Any, Any]("key", combine=lambda one, other: one | {"at": other["at"]}, scope=scope)
        assert run_operator(join, {"left": rows, "right": right.to_pylist()})["output"] == wanted


def failure(join: Any, sides: Any) -> BaseException:
    refused = (JoinColumnsClash, JoinColumnsDiffer, JoinColumnsUnknown, JoinKeyRefused, JoinSideTooLarge, ColumnNotThere)
    with pytest.raises((OperatorFailed, *refused)) as caught:
        run_operator(join, sides)
    return caught.value


def test_columns_that_clash_are_refused() -> None:
    left, right = pa.table({"key": [1], "a": [1], "a_right": [1]}), pa.table({"key": [1], "a": [2]})
    told = str(failure(HashJoin("key"), {"left": [left], "right": [right]}))
    assert "both sides have 'a_right', even with the suffix '_right'" in told
    assert run_operator(HashJoin("key", suffix="_2"), {"left": [left], "right": [right]})["output"][0]["a_2"] == 2


def test_a_left_join_must_know_the_columns_that_did_not_come() -> None:
    left = pa.table({"key": [1, 2]})
    told = str(failure(HashJoin("key", how="left"), {"left": [left], "right": []}))
    assert "no record arrived on the right side in partition 0 of 1, and the columns of its records" in told
    assert 'right_columns="name: string, people: int64"' in told
    said = HashJoin("key", how="left", right_columns="key: int64, name: string")
    assert run_operator(said, {"left": [left], "right": []})["output"] == [{"key": 1, "name": None}, {"key": 2, "name": None}]
    assert run_operator(HashJoin("key"), {"left": [left], "right": []})["output"] == []


def test_the_columns_of_a_side_without_files_are_those_that_its_reader_declares(tmp_path: Path) -> None:
    for folder in ("left", "right"):
        (tmp_path / folder).mkdir()
    (tmp_path / "left" / "rows.csv").write_text("key\n1\n")
    rows = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        join = dag.add_operator("join", HashJoin[Any, Any, Any]("key", how="left"))
        dag.read(tmp_path / "left", "csv", name="left").to(join.left)
        dag.read(tmp_path / "right", "csv", schema="key: int64, town: string", name="right").to(join.right)
        join.output.to(rows, name="rows")

    run_dag(populate_dag, {})
    assert rows.records == [{"key": 1, "town": None}]


@pytest.mark.parametrize(
    "said", ["key: int64, zz: int64", "key: int64, w: int64", "key: int64", "key: int64, w: string, x: int8"]
)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_what_comes_on_the_right_has_the_columns_that_were_said(said: str, how: Any) -> None:
    sides = {"left": [pa.table({"key": [1, 2]})], "right": [pa.table({"key": [1], "w": ["x"]})]}
    told = str(failure(HashJoin("key", how=how, right_columns=said), sides))
    assert f"right_columns  {said}\n  arrived        key: int64, w: string\n" in told
    typed = {"left": [Sale("a", 1, 1)], "right": list[Town]()}  # also where nothing comes, and the class says what would
    told = str(failure(HashJoin[Sale, Town, Any]("town", how="left", right_columns="town: string"), typed))
    assert "arrived        town: string, day: int64, amount: int64, country: string" in told


def test_columns_are_in_the_order_that_was_said_whatever_comes() -> None:
    join = HashJoin("key", how="left", right_columns="w: string, key: int64, x: int64")
    left = pa.table({"key": [1, 2]})
    for right in (pa.table({"x": [5], "key": [1], "w": ["a"]}), pa.table({"key": [1], "x": pa.nulls(1), "w": ["a"]})):
        found = run_operator(join, {"left": [left], "right": [right]})["output"]
        assert [list(row) for row in found] == 2 * [["key", "w", "x"]]
        assert found[0] == {"key": 1, "w": "a", "x": right["x"][0].as_py()}


def test_keys_that_are_not_there_or_are_none_are_refused_with_their_columns() -> None:
    left, right = pa.table({"key": [1], "tags": [["a"]]}), pa.table({"kez": [1], "tags": [["a"]]})
    sides = {"left": [left], "right": [right]}
    told = str(failure(HashJoin("key"), sides))
    assert told.startswith("there is no column 'key', which `by` names\n  columns of the right side  kez (int64), tags (list<")
    assert told.endswith("help: did you mean 'kez'?")
    told = str(failure(HashJoin("key", right_by="zz"), sides))
    assert "there is no column 'zz', which `right_by` names" in told
    told = str(failure(HashJoin("kez"), sides))
    assert "columns of the left side  key (int64)" in told
    told = str(failure(HashJoin("tags"), sides))
    assert "operator 'operator': rows cannot be joined by the column 'tags' of the left side: its values are list<" in told


@pytest.mark.parametrize("combine", [None, lambda one, other: one])
@pytest.mark.parametrize("scope", ["all", "window"])
def test_a_right_side_that_is_too_large(scope: Any, combine: Any) -> None:
    right = pa.table({"key": [1, 2, 3]})
    sides = {"left": [], "right": [right] if combine is None else [1, 2, 3]}
    join = HashJoin("key" if combine is None else lambda key: key, combine=combine, max_right_rows=2, scope=scope)
    told = str(failure(join, sides))
    assert "operator 'operator': in window 0, the right side has more than 2 records in partition 0 of 1" in told
    assert "(3 so far)" in told
    assert "partitioner=8; or, if memory allows, raise max_right_rows" in told


def test_a_right_side_of_too_many_bytes() -> None:
    rights = [pa.table({"key": [n], "text": ["x" * 1000]}) for n in range(3)]
    error = failure(HashJoin("key", max_right_bytes=2500), {"left": [], "right": rights})
    assert isinstance(error, JoinSideTooLarge)
    assert (error.operator, error.window, error.most) == ("operator", 0, 2500)
    assert 3000 < error.found < 3100
    assert "more than 2,500 bytes in partition 0 of 1" in str(error)
    assert "raise max_right_bytes" in str(error)
    assert run_operator(HashJoin("key", max_right_bytes=4000), {"left": rights, "right": rights})["output"]
    with pytest.raises(ValueError, match="max_right_bytes"):
        HashJoin("key", max_right_bytes=1 << 31)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("scope", ["all", "window"])
def test_joined_rows_come_in_batches_that_fit(monkeypatch: pytest.MonkeyPatch, scope: Any, how: Any) -> None:
    """Many rows that share a few large ones are much larger than both sides."""
    monkeypatch.setattr("operators.join.row_join.MAX_BATCH_BYTES", 10_000)
    monkeypatch.setattr("operators.join.buffer.MAX_LEFT_BYTES", 500)
    left = pa.table({"key": [n % 4 for n in range(100)], "row": range(100), "tags": [["y" * n] for n in range(100)]})
    right = pa.table({"key": [0, 1, 2], "text": ["a" * 4000, "b", "c" * 20_000]})
    lefts = [left.slice(start, 10) for start in range(0, 100, 10)]
    sizes: list[tuple[int, int]] = []
    emit_batch = Outlet.emit_batch

    def noting(self: Outlet, batch: pa.RecordBatch) -> None:
        sizes.append((batch.nbytes, batch.num_rows))
        emit_batch(self, batch)

    monkeypatch.setattr(Outlet, "emit_batch", noting)
    found = run_operator(HashJoin("key", how=how, scope=scope), {"left": lefts, "right": [right]})["output"]
    texts = dict(zip(range(3), right["text"].to_pylist(), strict=True))
    rows = [row | {"text": texts.get(row["key"])} for row in left.to_pylist() if how == "left" or row["key"] in texts]
    assert found == rows
    assert all(size <= 10_000 or count == 1 for size, count in sizes)


def test_a_right_side_of_keys_only() -> None:
    tables = {"left": [pa.table({"key": [1, 2], "a": ["x", "y"]})], "right": [pa.table({"key": [2, 2]})]}
    assert run_operator(HashJoin("key"), tables)["output"] == 2 * [{"key": 2, "a": "y"}]


@pytest.mark.parametrize("scope", ["all", "window"])
def test_keys_of_dictionaries_meet(scope: Any) -> None:
    lefts = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1], pa.int8()), ["a", "b", None])
    rights = pa.DictionaryArray.from_arrays(pa.array([1, 1, None, 0], pa.int32()), ["b", "a"])
    tables = {"left": [pa.table({"key": lefts, "row": range(4)})], "right": [pa.table({"key": rights, "at": range(4)})]}
    found = run_operator(HashJoin("key", how="left", scope=scope), tables)["output"]
    assert [(row["row"], row["at"]) for row in found] == [(0, 0), (0, 1), (1, None), (2, None), (3, 3)]


@pytest.mark.parametrize(
    ("by", "more", "reason"),
    [
        (None, {}, "by is None"),
        (len, {}, "a key that is a function needs combine"),
        ("a", {"right_by": ("a", "b")}, "by names 1 columns and right_by 2"),
        ("a", {"right_columns": "a: nonsense"}, "nonsense"),
        ("a", {"how": "full", "scope": "window"}, "how='full' needs scope=\"all\""),
        (len, {"how": "semi", "combine": max}, "there is nothing for combine"),
        (("a", "b"), {"right_columns": "w: string, a: int8"}, "right_columns lacks the key 'b'"),
        ("a", {"right_by": "b", "right_columns": "a: int8"}, "right_columns lacks the key 'b'"),
    ],
)
def test_properties_that_do_not_fit(by: Any, more: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        HashJoin(by, **more).check()
