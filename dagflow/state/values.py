"""The values of states: encoded as plain data, decoded, and checked against their declarations before they are committed."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from dagflow.model.errors.running import StateNotPlain
from dagflow.model.operator.map_state import MapState, TrackedDict, type_arguments
from dagflow.model.operator.state import State
from dagflow.model.operator.table_state import TableState
from dagflow.model.types.comparison import type_name
from dagflow.model.types.keyed_rows import KeyedRows
from dagflow.model.types.plain_data import decode, encode
from dagflow.model.types.records import excerpt
from dagflow.model.types.typecheck import fits
from dagflow.state.errors import StateMistyped

_FORMAT = " of format "
_BUILTINS = frozenset({str, int, bool, bytes})


def state_type(declared: State[Any]) -> str:
    """Return the declared type of a state, or else the type of its initial value.

    >>> state_type(State(0)), state_type(State[int | None](None)), state_type(MapState[str, int]()), state_type(State(None))
    ('int', 'int | None', 'MapState[str, int]', 'Any')
    >>> state_type(TableState({"n": "int64"}, format_version=2))
    'TableState[n: int64] of format 2'
    """
    if isinstance(declared, TableState):
        columns = [] if declared.columns is None else [f"{name}: {kind}" for name, kind in declared.columns.items()]
        return f"TableState[{', '.join(columns) or 'any columns'}]{_FORMAT}{declared.format_version}"
    if isinstance(declared, MapState):
        return f"MapState[{', '.join(type_name(each) for each in type_arguments(declared))}]"
    declared_type = type_arguments(declared)[0]
    if declared_type is not Any:
        return type_name(declared_type)
    begin = declared.initial()
    return "Any" if begin is None else type_name(type(begin))


def format_version(text: str) -> int:
    """Return the format of the rows of a `TableState`, by what `state_type` returned. Before it was written, there was only one.

    >>> format_version("TableState[n: int64] of format 2"), format_version("TableState[any columns]")
    (2, 1)
    """
    return int(text.partition(_FORMAT)[2] or 1)


def misfit(value: Any, declared: State[Any]) -> str | None:
    """Return why a value does not have the declared type; None if it does."""
    if isinstance(declared, TableState):
        return None
    types = type_arguments(declared)
    if isinstance(declared, MapState):
        if _all_are(value, types[0]) and _all_are(value.values(), types[1]):
            return None
        for key, each in value.items():
            if not (fits(key, types[0]) and fits(each, types[1])):
                return f"it holds {excerpt(key)}: {excerpt(each)}"
        return None
    begin = declared.initial()
    tp = types[0] if types[0] is not Any or begin is None else type(begin)
    return None if fits(value, tp) else f"it holds {excerpt(value)}"


def _all_are(values: Iterable[Any], tp: Any) -> bool:
    """Return True if values are of a builtin type exactly: a fast look at many."""
    return tp is Any or (tp in _BUILTINS and set(map(type, values)) <= {tp})


def checked(value: Any, declared: State[Any], operator: str, state: str) -> Any:
    """Return a value that has the declared type. Raises StateMistyped for others."""
    wrong = misfit(value, declared)
    if wrong is not None:
        raise StateMistyped(operator=operator, state=state, declared=state_type(declared), got=wrong)
    return value


def encode_keys(keys: Iterable[Any], where: str) -> list[Any]:
    """Return keys for JSON. Raises StateNotPlain for keys that are not strings or integers."""
    result = list(keys)
    for key in result:
        if type(key) is not str and type(key) is not int:
            raise StateNotPlain(where=where, got=f"a key of type {type(key).__qualname__}")
    return result


def encode_state(declared: State[Any], value: Any, where: str) -> Any:
    """Return the value of a `State`, or a whole `MapState`, for JSON. Raises StateNotPlain."""
    if isinstance(declared, TableState):
        return {kind: _written(rows) for kind, rows in value.all_rows().items()}
    if isinstance(declared, MapState):
        return [encode_keys(value, where), encode(list(value.values()), where)]
    return encode(value, where)


def decode_state(declared: State[Any], data: Any) -> Any:
    """Return the value of a state from the result of `encode_state`."""
    if isinstance(declared, TableState):
        table = declared.initial()
        for kind, text in data.items():
            table.restore(kind, _read(text))
        return table
    if not isinstance(declared, MapState):
        return decode(data, type_arguments(declared)[0])
    keys, values = data
    return decode_map(declared, keys, values)


def decode_map(declared: MapState[Any, Any], keys: Iterable[Any], values: Iterable[Any]) -> TrackedDict[Any, Any]:
    """Return a map from its keys and encoded values."""
    return TrackedDict(zip(keys, decode(list(values), list[type_arguments(declared)[1]]), strict=True))  # type: ignore[misc]


def _written(rows: KeyedRows) -> str:
    """Return rows as text."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.batch.schema) as stream:
        stream.write_batch(rows.batch)
    return base64.b64encode(sink.getvalue()).decode()


def _read(text: str) -> KeyedRows:
    """Return rows from the result of `_written`."""
    import pyarrow as pa

    return KeyedRows(pa.ipc.open_stream(base64.b64decode(text)).read_next_batch())
