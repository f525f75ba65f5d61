"""Values of records, as cells of a table and as JSON."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.errors.shown import escaped

MAX_CELL = 200
"""The number of characters of a value that a table shows."""


def cell(value: Any) -> str:
    r"""Return a value as it stands in a table: on one line, and not too long.

    >>> cell("a\tb"), cell(b"bytes"), cell(None), cell(1.5), cell({"n": [1, None]})
    ('a\\tb', 'bytes', 'null', '1.5', '{"n": [1, null]}')
    """
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value[: MAX_CELL * 4]).decode("utf-8", "backslashreplace")
    value = plain(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = escaped(text[: MAX_CELL + 1])
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…"


def plain(value: Any) -> Any:
    r"""Return a value as JSON has it. Bytes that are not UTF-8 become `{"base64": …}`; other objects their text.

    >>> import datetime, decimal
    >>> plain({"day": datetime.date(2026, 1, 31), "price": decimal.Decimal("1.50"), "raw": [b"a", b"\xff"]})
    {'day': '2026-01-31', 'price': '1.50', 'raw': ['a', {'base64': '/w=='}]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if attrs.has(type(value)):
        return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        return {name: plain(each) for name, each in zip(names, value, strict=True)}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
