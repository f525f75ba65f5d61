"""The values that text and Python hold, of the values that Arrow's types have.

Arrow's times, dates and durations are integers of 32 or 64 bits: wider than ISO 8601 (the years 1 to 9999) and Python's objects.
Outside of these, Arrow's conversions to text give `<value out of range: …>` or another year, and those to Python raise for the
whole column, or give another time of day. So code that makes text or objects of a column asks here first: `_range` is the table.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pyarrow.types as t

Form = Literal["text", "Python"]

_DAY = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970-01-01."""
_MAX_DAYS = 999_999_999
"""Of a `datetime.timedelta`."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _range(kind: Any, form: Form) -> tuple[int, int, int, str] | None:
    """Return the least and the greatest integer that a form holds of a type, their step, and the rule in words; None: all."""
    is_python = form == "Python"
    years, day = "outside of the years 1 to 9999", "outside of a day"
    if t.is_date32(kind):
        return _FIRST_DAY, _LAST_DAY, 1, years
    if t.is_date64(kind):
        return _FIRST_DAY * _DAY * 1000, _LAST_DAY * _DAY * 1000, _DAY * 1000, f"{years}, or no full day"
    if t.is_timestamp(kind):
        unit = _PER_SECOND[kind.unit]
        least = max(_FIRST_DAY * _DAY * unit, _SMALLEST + is_python)  # pandas takes the smallest one for "not a time"
        return least, min((_LAST_DAY + 1) * _DAY * unit - 1, _LARGEST), 1, years if kind.unit != "ns" else "pandas' NaT"
    if t.is_time(kind):
        is_fine = is_python and kind.unit == "ns"
        text = f"{day}, or finer than a microsecond" if is_fine else day
        return 0, _DAY * _PER_SECOND[kind.unit] - 1, 1000 if is_fine else 1, text
    if t.is_duration(kind) and is_python:
        most = _MAX_DAYS * _DAY * _PER_SECOND[kind.unit]
        return max(-most, _SMALLEST + (kind.unit == "ns")), min(most, _LARGEST), 1, "longer than 999,999,999 days"
    return None


def not_held(column: Any, form: Form) -> Any:
    """Return which values of a column a form does not hold, also within lists, maps and structs: booleans; None: it holds all.

    >>> days = pa.array([0, 2_932_896, 2_932_897, None], pa.int32()).cast(pa.date32())
    >>> not_held(days, "text").to_pylist(), not_held(days.slice(0, 2), "text")
    ([False, False, True, False], None)
    """
    import pyarrow.compute as pc

    kind: Any = column.type
    if not _may_miss(kind, form):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if isinstance(kind, pa.BaseExtensionType):
        return not_held(column.storage, form)
    if t.is_dictionary(kind):
        wrong = not_held(column.dictionary, form)
        return None if wrong is None else _some(wrong.take(column.indices).fill_null(False))
    if t.is_struct(kind):
        parts = [wrong for part in column.flatten() if (wrong := not_held(part, form)) is not None]
        return None if not parts else _some(_any_of(parts))
    if t.is_map(kind):
        entry = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
        return not_held(column.cast(pa.list_(entry)), form)
    if t.is_nested(kind):
        wrong = not_held(column.flatten(), form)
        if wrong is None:
            return None
        parents = pc.unique(pc.list_parent_indices(column).filter(wrong))
        return pc.is_in(pa.array(range(len(column)), parents.type), value_set=parents)
    wrong = _outside(column, form)
    zone = getattr(kind, "tz", None)
    if form == "Python" and zone not in (None, "UTC", "Z"):  # its objects have the local time
        within = column if wrong is None else pc.if_else(wrong, pa.scalar(None, kind), column)
        local = _outside(pc.local_timestamp(within), form)
        wrong = _any_of([each for each in (wrong, local) if each is not None]) if wrong is not None or local is not None else None
    return wrong


def why_not_held(column: Any, form: Form) -> str:
    """Return the first value that a form does not hold, in words; empty if it holds all.

    >>> why_not_held(pa.array([17 * 10**14]).cast(pa.timestamp("s", "UTC")), "text")
    'the timestamp[s, tz=UTC] 1700000000000000, which is outside of the years 1 to 9999'
    """
    wrong = not_held(column, form)
    if wrong is None:
        return ""
    return next(_reasons(column.filter(wrong).slice(0, 1), form), f"a value that {form} does not hold")


def without_hidden(column: Any) -> tuple[Any, dict[int, str]]:
    """Return a column with null in place of the values that no Python object holds, and these as text, by row.

    >>> column, hidden = without_hidden(pa.array([0, 17 * 10**14]).cast(pa.timestamp("s")))
    >>> column.null_count, hidden
    (1, {1: '1700000000000000 (timestamp[s])'})
    """
    import pyarrow.compute as pc

    wrong = not_held(column, "Python")
    if wrong is None:
        return column, {}
    hidden = {row: _as_text(column.slice(row, 1)) for row in pc.indices_nonzero(wrong).to_pylist()}
    return column.take(pc.if_else(wrong, None, pa.array(range(len(column)), pa.int64()))), hidden


def objects(column: Any) -> list[Any]:
    """Return the values of a column as Python objects, to be shown: text for those that no object holds."""
    column, hidden = without_hidden(column)
    values: list[Any] = column.to_pylist()
    for row, text in hidden.items():
        values[row] = text
    return values


def rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table or batch, to be shown, as `objects` has them."""
    columns = [objects(column) for column in table.columns]
    return (
        [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)] if columns else [{}] * len(table)
    )


def _as_text(value: Any) -> str:
    """Return the text of a column of one value that no Python object holds."""
    value = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    if t.is_nested(value.type) or t.is_dictionary(value.type) or isinstance(value.type, pa.BaseExtensionType):
        return " ".join(value.to_string().split())
    return f"{_integers(value)[0]} ({value.type})"


def _reasons(column: Any, form: Form) -> Iterator[str]:
    """Yield the reasons for which a form does not hold a column, part by part."""
    kind: Any = column.type
    if isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from _reasons(chunk, form)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _reasons(column.storage, form)
    elif t.is_dictionary(kind):
        yield from _reasons(column.dictionary_decode(), form)
    elif t.is_struct(kind):
        for part in column.flatten():
            yield from _reasons(part, form)
    elif t.is_map(kind):
        yield from _reasons(column.keys, form)
        yield from _reasons(column.items, form)
    elif t.is_nested(kind):
        yield from _reasons(column.flatten(), form)
    elif (wrong := not_held(column, form)) is not None and (known := _range(kind, form)) is not None:
        yield f"the {kind} {_integers(column.filter(wrong))[0]}, which is {known[3]}"


def _may_miss(kind: Any, form: Form) -> bool:
    """Return whether a type has values that a form may not hold."""
    if isinstance(kind, pa.BaseExtensionType):
        return _may_miss(kind.storage_type, form)
    if t.is_dictionary(kind):
        return _may_miss(kind.value_type, form)
    if t.is_nested(kind):
        return any(_may_miss(kind.field(n).type, form) for n in range(kind.num_fields))
    return _range(kind, form) is not None


def _integers(column: Any) -> Any:
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _outside(column: Any, form: Form) -> Any:
    """Return which values of a column without parts are out of the range of a form; None: none is."""
    import pyarrow.compute as pc

    known = _range(column.type, form)
    assert known is not None
    least, greatest, step, _ = known
    numbers = _integers(column)
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None or (step == 1 and least <= ends["min"] and ends["max"] <= greatest):
        return None
    bits = (1 << (numbers.type.bit_width - 1)) - 1
    wrong = pc.or_(pc.less(numbers, max(least, -bits - 1)), pc.greater(numbers, min(greatest, bits)))
    if step != 1:
        wrong = pc.or_(wrong, pc.not_equal(pc.multiply(pc.divide(numbers, step), step), numbers))
    return _some(wrong.fill_null(False))


def _any_of(masks: list[Any]) -> Any:
    import pyarrow.compute as pc

    whole = masks[0]
    for mask in masks[1:]:
        whole = pc.or_(whole, mask)
    return whole


def _some(mask: Any) -> Any:
    import pyarrow.compute as pc

    return mask if pc.any(mask).as_py() else None
