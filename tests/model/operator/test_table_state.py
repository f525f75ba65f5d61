"""`TableState`: a lookup gives what a dict would, whatever was put, removed and rolled back."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import Operator, TableState
from dagflow.errors import StateDeclaration
from dagflow.model.operator.table_state import KeyedTable
from dagflow.state.values import decode_state, encode_state, state_type

COLUMNS = {"n": "int64", "text": "string"}
KEYS = {
    "int64": st.integers(-3, 5),
    "string": st.sampled_from(["", "a", "b", "\0", "é"]),
    "binary": st.sampled_from([b"", b"a", b"\xff"]),
}
CHANGES = st.sampled_from(list(KEYS)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(KEYS[kind], max_size=6), st.sampled_from(["put", "remove", "roll back"]))
)


def keys_of(keys: list[Any], kind: str) -> Any:
    return pa.array(keys, getattr(pa, kind)())


@given(st.lists(CHANGES, max_size=12))
def test_it_holds_what_a_dict_holds(changes: list[tuple[str, list[Any], str]]) -> None:
    table, content = KeyedTable(COLUMNS), dict[Any, Any]()
    for number, (kind, keys, change) in enumerate(changes):
        point, before = table.savepoint(), dict(content)
        rows = {"n": pa.array([number] * len(keys), pa.int64()), "text": pa.array([f"{number}"] * len(keys), pa.string())}
        if change == "remove":
            table.remove(keys_of(keys, kind))
            content = {key: value for key, value in content.items() if key not in keys}
        else:
            table.put(keys_of(keys, kind), rows)
            content |= {key: {"n": number, "text": f"{number}"} for key in keys}
        if change == "roll back":
            table.roll_back(point)
            content = before
        asked, none = keys[::-1], {"n": None, "text": None}
        assert table.lookup(keys_of(asked, kind)).to_pylist() == [content.get(key, none) for key in asked]
    found = {row.pop("key"): row for batch in table.batches() for row in batch.to_pylist()}
    assert found == content
    assert table == copy.deepcopy(table)
    declared = TableState(COLUMNS)
    assert decode_state(declared, encode_state(declared, table, "")) == table


def test_all_rows_come_in_the_order_of_their_keys() -> None:
    table = KeyedTable({"n": "int64"})
    for keys in (["b", "a"], [3, -1], ["aa"]):
        table.put(pa.array(keys), {"n": pa.array([0] * len(keys))})
    assert [batch.column("key").to_pylist() for batch in table.batches()] == [[-1, 3], ["a", "aa", "b"]]


@pytest.mark.parametrize(
    ("keys", "columns", "message"),
    [
        (pa.array([1.5]), {"n": pa.array([1])}, "keys are integers of 64 bits, text or bytes, not double"),
        (pa.array([1], pa.uint64()), {"n": pa.array([1])}, "not uint64"),
        (pa.array([1, None]), {"n": pa.array([1, 2])}, "a key is null: bytes, or a record batch, stand for other keys"),
        (pa.array([1]), {"m": pa.array([1])}, "a row has the columns n, not m"),
    ],
)
def test_what_no_row_can_be_is_refused(keys: Any, columns: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        KeyedTable({"n": "int64"}).put(keys, columns)


def test_a_value_that_a_column_cannot_hold_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        KeyedTable({"n": "int8"}).put(pa.array([1]), {"n": pa.array([300])})


def test_its_declaration_names_its_columns() -> None:
    class Keeps(Operator):
        rows = TableState({"n": "int64", "at": "timestamp[us]"})

    assert state_type(Keeps.rows) == "TableState[n: int64, at: timestamp[us]] of format 1"
    assert isinstance(Keeps().rows, KeyedTable)
    for columns in ({}, {"key": "int64"}):
        with pytest.raises(StateDeclaration, match="give the types of its columns by name"):
            TableState(columns)
    with pytest.raises(StateDeclaration, match="record_key is 3: give a function"):
        TableState({"n": "int64"}, record_key=3)  # type: ignore[arg-type]


VALUES = st.one_of(st.none(), st.sampled_from([0.0, 1.5, -2.0]))


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "1", None]), VALUES), max_size=5), max_size=4))
def test_keys_of_several_columns(puts: list[list[tuple[int, str | None, float | None]]]) -> None:
    kept, content = KeyedTable(), dict[Any, int]()
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())])
    for number, keys in enumerate(puts):
        batch = pa.RecordBatch.from_pylist([dict(zip("abc", key, strict=True)) for key in keys], schema=schema)
        kept.put(batch, {"n": pa.array([number] * len(keys), pa.int64())})
        content |= dict.fromkeys(keys, number)
        asked = pa.RecordBatch.from_pylist([dict(zip("abc", key, strict=True)) for key in content], schema=schema)
        assert kept.lookup(asked).to_pylist() == [{"n": value} for value in content.values()]


@pytest.mark.parametrize("column", [pa.array([5, None, 7]), pa.array(["", None, "a"]), pa.array([None, True, False])])
def test_a_null_is_a_key_of_columns(column: Any) -> None:
    kept, keys = KeyedTable(), pa.record_batch({"a": column})
    kept.put(keys, {"n": pa.array([1, 2, 3])})
    kept.remove(keys.slice(1, 1))
    assert kept.lookup(keys).column("n").to_pylist() == [1, None, 3]


def test_columns_that_come_later_are_null_in_earlier_rows() -> None:
    kept = KeyedTable()
    assert kept.columns is None
    assert kept.lookup(pa.array([1])).num_columns == 0
    kept.put(pa.array([1]), {"n": pa.array([1]), "m": pa.nulls(1)})
    kept.put(pa.array([2]), {"n": pa.array([2]), "m": pa.array(["a"]), "o": pa.array([0.5])})
    assert kept.lookup(pa.array([2, 1])).to_pylist() == [{"n": 2, "m": "a", "o": 0.5}, {"n": 1, "m": None, "o": None}]
    with pytest.raises(TypeError, match="the column 'n' is string, and was int64"):
        kept.put(pa.array([3]), {"n": pa.array(["3"])})
    kept.put(pa.array([3]), {"n": pa.nulls(1)})
    assert kept.lookup(pa.array([3])).to_pylist() == [{"n": None, "m": None, "o": None}]
    declared = TableState()
    assert decode_state(declared, encode_state(declared, kept, "")) == kept


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.binary()])
def test_a_null_is_not_a_key(kind: pa.DataType) -> None:
    table = KeyedTable({"n": "int64"})
    for action in (table.lookup, table.remove, lambda keys: table.put(keys, {"n": pa.array([1])})):
        with pytest.raises(TypeError, match="a key is null"):
            action(pa.nulls(1, kind))


@pytest.mark.parametrize("name", ["key", "$code", "$removed"])
def test_names_of_its_own_columns_are_refused(name: str) -> None:
    with pytest.raises(StateDeclaration, match="other than key"):
        TableState({name: "int64"})
