"""JSON lines one by one, for lines that the fast parser refuses: their problems, and their types."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dagflow.scan import not_text, text_of, wider

MOST_NESTED = 100
"""Objects and lists in one another, at most; what is deeper would overflow the stack of one parser or another."""
DANGER = 5_000
"""A line with so many brackets must not come to pyarrow, which such depths may kill."""
MOST_DIGITS = 4_300
"""Python reads no longer integers."""
BOM = b"\xef\xbb\xbf"
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])|([\]}])', re.DOTALL)  # a run of characters at a time


_LARGEST = {16: 65_504.0, 32: (2 - 2**-23) * 2.0**127, 64: sys.float_info.max}
_MEMBER = re.compile(r'"(?:[^"\\]|\\.)*"\s*:')


class BadLine(ValueError):
    """A line that is not a row. `column`: the column with the problem."""

    def __init__(self, reason: str, column: str | None = None) -> None:
        super().__init__(reason)
        self.column = column


class _DuplicateKey(dict[str, Any]):
    """An object that has a key twice."""

    key: str = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    twice = _DuplicateKey(pairs)
    seen: set[str] = set()
    twice.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return twice


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadLine(f"the number {text} is too big")
    return number


def _decimal(text: str) -> Decimal:
    _number(text)
    return Decimal(text)


class _TooLong(int):
    """An integer of more digits than Python reads."""

    digits: int = 0


class _NegativeZero(int):
    """The integer `-0`, which keeps its sign as a float."""

    def __float__(self) -> float:
        return -0.0


def _integer(text: str) -> int:
    if text == "-0":
        return _NegativeZero()
    if len(text) <= MOST_DIGITS:
        return int(text)
    long = _TooLong()
    long.digits = len(text.lstrip("-"))
    return long


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_int=_integer)
_EXACT = json.JSONDecoder(object_pairs_hook=_object, parse_float=_decimal, parse_int=_integer)


def depth(data: bytes) -> int:
    """Return the depth of nested objects and lists of a line.

    >>> depth(b'{"a{": [{}, {}]}')
    3
    """
    deepest = level = 0
    for bracket in _BRACKETS.finditer(data):
        level += bool(bracket[1]) - bool(bracket[2])
        deepest = max(deepest, level)
    return deepest


def is_dangerous(data: bytes, begin: int, end: int) -> bool:
    """Return True if a run of bytes may have a line that is nested too deeply for pyarrow."""
    return data.count(b"{", begin, end) + data.count(b"[", begin, end) > DANGER


def is_parsable(data: bytes) -> bool:
    r"""Return True if pyarrow may see some lines: it crashes where the first value is `null`, and on deep nesting.

    So all lines must be objects at first sight, or blank. Bytes that are not UTF-8 it takes for text, and for names of columns.

    >>> is_parsable(b'{"a": 1}\n\n {}\r\n'), is_parsable(b'null\n{"a": 1}')
    (True, False)
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    lines = (line.strip(b" \t\r") for line in data.split(b"\n"))
    return all(
        not line
        or (line.startswith(b"{") and line.endswith(b"}") and (len(line) <= DANGER or not is_dangerous(line, 0, len(line))))
        for line in lines
    )


def parse_line(data: bytes, exact: bool = False, noun: str = "line") -> dict[str, Any]:
    """Parse a line as an object; `exact`: numbers with a fraction as decimals; `noun`: for reasons. Raises BadLine.

    >>> parse_line(b'[1]')
    Traceback (most recent call last):
    ...
    operators.formats.text.json_rows.BadLine: the line is a JSON list, but must be an object: {…}
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(not_text(f"byte {error.start} of the {noun}", data[error.start : error.start + 1], "UTF-8")) from None
    if data.count(b"{") + data.count(b"[") > MOST_NESTED and depth(data) > MOST_NESTED:
        raise BadLine(f"the {noun} is nested more than {MOST_NESTED} deep")
    text = text.strip(" \t\r\n")
    try:
        value = (_EXACT if exact else _DECODER).decode(text)
    except json.JSONDecodeError as error:
        hint = _hint(text) if noun == "line" else ""
        raise BadLine(f"the {noun} is not JSON: {error.msg} at character {error.pos}{hint}") from None
    if not isinstance(value, dict):
        kind = {list: "list", str: "text", bool: "truth value", type(None): "null"}.get(type(value), "number")
        raise BadLine(f"the {noun} is a JSON {kind}, but must be an object: {{…}}")
    if "\\u" in text:
        _check_surrogates(value)
    return value


def _hint(text: str) -> str:
    """Guess of what a line that is not JSON may be a part."""
    if text[:1] in ("[", "]"):
        return "; it looks like a JSON array, but each line must be an object: {…}"
    if text in ("{", "}", "},") or _MEMBER.match(text):
        return "; it looks like a part of an object over several lines: write each on a line of its own (jq -c)"
    return ""


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise BadLine("half of a surrogate pair (\\ud800 to \\udfff) is not a character") from None


def _check_value(value: Any, column: str) -> None:
    """Raise BadLine for what would be no fault in a column that is not asked for: fast parsers pass over it there."""
    if isinstance(value, _TooLong):
        raise BadLine(f"an integer of {value.digits} digits is too long, {MOST_DIGITS - 1} are the most", column)
    if isinstance(value, _DuplicateKey):
        raise BadLine(f"an object has the key {value.key!r} twice", column)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_value(part, column)


@attrs.frozen
class JsonRows:
    """Parses lines one by one. `types`: of columns with a type; `columns`: the needed ones (None: all); `noun`: for reasons."""

    types: dict[str, pa.DataType]
    columns: Collection[str] | None
    noun: str = "line"

    def row(self, data: bytes) -> dict[str, Any]:
        """Return the needed members of a line. Raises BadLine."""
        parsed = parse_line(data, exact=any("decimal" in str(kind) for kind in self.types.values()), noun=self.noun)
        if isinstance(parsed, _DuplicateKey) and (self.columns is None or parsed.key in self.columns):
            raise BadLine(f"the {self.noun} has the key {parsed.key!r} twice", parsed.key)
        row = {name: value for name, value in parsed.items() if self.columns is None or name in self.columns}
        for name, value in row.items():
            _check_value(value, name)
        return row

    def batch(self, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        """Return the columns of rows: of their types if all values fit, otherwise as text."""
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: self._column([row.get(name) for row in rows], self.types.get(name)) for name in names}
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _column(self, values: list[Any], kind: pa.DataType | None) -> pa.Array:
        if kind is not None and all(_is(value, kind) for value in values):
            return pa.array([_plain(value, kind) for value in values], kind)
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, _NegativeZero) or (isinstance(value, float) and not value and math.copysign(1, value) < 0):
        return "-0"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text_of(value)


def _is(value: Any, kind: pa.DataType) -> bool:
    """Return True if a value can stand in a column of a type as it is."""
    types = pa.types
    if value is None:
        return True
    if types.is_struct(kind):
        known: dict[str, pa.DataType] = {f.name: f.type for f in kind}
        return isinstance(value, dict) and all(key in known and _is(each, known[key]) for key, each in value.items())
    if types.is_map(kind):
        return isinstance(value, dict) and all(_is(each, kind.item_type) for each in value.values())
    if types.is_list(kind) or types.is_large_list(kind):
        return isinstance(value, list) and all(_is(each, kind.value_type) for each in value)
    if types.is_boolean(kind):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if types.is_integer(kind):
        return isinstance(value, int) and _within(value, kind)
    if types.is_floating(kind):
        return isinstance(value, int | float | Decimal) and _holds(kind, value)
    return isinstance(value, str) and bool(types.is_string(kind) or types.is_large_string(kind))


def _holds(kind: pa.DataType, value: float | Decimal) -> bool:
    """Return True if a finite number stays finite as a float of a type."""
    try:
        return abs(float(value)) <= _LARGEST[kind.bit_width] or (isinstance(value, float) and not math.isfinite(value))
    except OverflowError:
        return False


def _within(value: int, kind: pa.DataType) -> bool:
    bits, is_signed = kind.bit_width, str(kind).startswith("int")
    is_within: bool = -(1 << bits - 1) <= value < 1 << bits - 1 if is_signed else 0 <= value < 1 << bits
    return is_within


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value that `_is` of a type as pyarrow takes it."""
    types = pa.types
    if types.is_floating(kind) and value is not None:
        return float(value)
    if types.is_struct(kind) and value is not None:
        return {key: _plain(each, kind.field(key).type) for key, each in value.items()}
    if types.is_list(kind) and value is not None:
        return [_plain(each, kind.value_type) for each in value]
    if types.is_map(kind) and value is not None:
        return [(key, _plain(each, kind.item_type)) for key, each in value.items()]
    return value


def type_of_value(value: Any) -> pa.DataType:
    """Return the type of a JSON value.

    >>> type_of_value({"a": [1, 2.5], "b": None})
    StructType(struct<a: list<item: double>, b: null>)
    """
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(1 << 63) <= value < 1 << 63 else pa.float64() if is_exact(value) else pa.string()
    if isinstance(value, float | Decimal):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, list):
        item = pa.null()
        for each in value:
            item = wider(item, type_of_value(each))
        return pa.list_(item)
    return pa.struct([pa.field(key, type_of_value(each)) for key, each in value.items()])


def is_exact(value: Any) -> bool:
    """Return True if float64 holds a number exactly.

    >>> is_exact(2**53), is_exact(2**53 + 1), is_exact(0.1)
    (True, False, True)
    """
    try:
        return not isinstance(value, int) or float(value) == value
    except OverflowError:
        return False


def without_loss(kind: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """Return a type wide enough for the values, with text in place of each float64 that would change an integer.

    >>> import pyarrow as pa
    >>> without_loss(pa.struct([("a", pa.float64()), ("b", pa.float64())]), [{"a": 2**53 + 1, "b": 0.5}, {"a": 0.5}])
    StructType(struct<a: string, b: double>)
    """
    if pa.types.is_floating(kind):
        return kind if all(map(is_exact, values)) else pa.string()
    if pa.types.is_list(kind):
        return pa.list_(without_loss(kind.value_type, [each for value in values if value for each in value]))
    if pa.types.is_struct(kind):
        parts = [value for value in values if value]
        return pa.struct([pa.field(f.name, without_loss(f.type, [part.get(f.name) for part in parts])) for f in kind])
    return kind


def has_large_floats(column: Any) -> bool:
    """Return True if a column has floats that may stand for integers which float64 cannot tell from their neighbours."""
    # not compared with a number by pyarrow, which would import pandas: 0.4 s in each worker
    return _has_floats(column, lambda values: (pc.max(pc.abs(values)).as_py() or 0.0) >= 2.0**53)


def has_infinite(column: Any) -> bool:
    """Return True if a column has infinite numbers in it."""
    return _has_floats(column, lambda values: bool(pc.any(pc.is_inf(values), min_count=0).as_py()))


def _has_floats(column: Any, test: Callable[[Any], bool]) -> bool:
    if pa.types.is_floating(column.type):
        return test(column)
    if pa.types.is_list(column.type):
        return _has_floats(pc.list_flatten(column), test)
    if pa.types.is_struct(column.type):
        return any(_has_floats(pc.struct_field(column, [n]), test) for n in range(column.type.num_fields))
    return False


def type_of_rows(data: bytes) -> pa.Schema:
    """Return the columns of lines. Lines that cannot be parsed are left out, and text that looks like a time is text."""
    import io

    data = data.removeprefix(BOM)
    if is_parsable(data):
        try:
            options = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
            table = pj.read_json(io.BytesIO(data), options)
            if not is_deep(table.schema.types) and not any(map(has_large_floats, table.columns)):
                return pa.schema([pa.field(f.name, _without_times(f.type)) for f in table.schema])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    types: dict[str, pa.DataType] = {}
    values: dict[str, list[Any]] = {}
    for line in data.splitlines():
        try:
            row = parse_line(line) if line.strip() else {}
        except BadLine:
            continue
        for name, value in row.items():
            types[name] = wider(types.get(name, pa.null()), type_of_value(value))
            values.setdefault(name, []).append(value)
    return pa.schema([(name, without_loss(kind, values[name])) for name, kind in types.items()])


def is_deep(types: Sequence[pa.DataType]) -> bool:
    """Return True if types are nested more deeply than lines may be."""
    level = list(types)
    for _ in range(MOST_NESTED):
        level = [kind.field(n).type for kind in level for n in range(kind.num_fields)]
        if not level:
            return False
    return True


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_times(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _without_times(f.type)) for f in kind])
    return kind
