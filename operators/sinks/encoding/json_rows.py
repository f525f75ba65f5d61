"""Batches as JSON: a column of strings, each an object."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.sinks.encoding.plain_text import NUMBER, OTHER, REAL, TEXT, as_text, bytes_of, kind_of_text
from operators.sinks.errors import TypeNotWritable, ValueNotWritable

JSON = "JSON"
_SPECIAL = re.compile(rb'["\\\x00-\x1f]')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@attrs.frozen
class JsonEncoder:
    """The encoder of rows as JSON objects. Errors name the `operator`."""

    operator: str

    def rows(self, batch: pa.RecordBatch) -> Any:
        r"""Return the rows of a batch, without line ends.

        >>> import pyarrow as pa
        >>> batch = pa.record_batch({"a": ['say "x"', None], "b": [[1, 2], []], "c": [{"d": 1.0}, {"d": 0.5}]})
        >>> JsonEncoder("writer").rows(batch).to_pylist()
        ['{"a":"say \\"x\\"","b":[1,2],"c":{"d":1.0}}', '{"a":null,"b":[],"c":{"d":0.5}}']

        Raises ValueNotWritable for NaN and infinity, and for times outside of the years 1 to 9999.
        """
        return self._objects(batch.schema.names, batch.columns, [""] * batch.num_columns, batch.num_rows)

    def _objects(self, names: Iterable[str], columns: Iterable[Any], above: Iterable[str], rows: int) -> Any:
        parts: list[Any] = []
        for name, column, path in zip(names, columns, above, strict=True):
            key = json.dumps(name, ensure_ascii=False)
            parts += [f"{',' if parts else '{'}{key}:", self.values(path or name, column)]
        if not parts:
            return pa.array(["{}"] * rows, pa.string())
        return pc.binary_join_element_wise(*parts, "}", "")

    def values(self, path: str, column: Any) -> Any:
        """Return the values of a column as JSON; `null` for nulls. `path`: of the column, for errors."""
        kind: Any = column.type
        plain = kind_of_text(kind)
        if plain == TEXT:
            texts = _quoted(as_text(column, path, self.operator, JSON))
        elif plain == NUMBER:
            texts = as_text(column, path, self.operator, JSON)
        elif plain == REAL:
            texts = self._reals(path, column)
        elif plain == OTHER:
            texts = as_text(column, path, self.operator, JSON)
            texts = pc.binary_join_element_wise('"', pc.replace_substring(texts, " ", "T"), '"', "")
        elif pa.types.is_struct(kind):
            names = [field.name for field in kind]
            paths = [f"{path}.{name}" for name in names]
            texts = self._objects(names, column.flatten(), paths, len(column))
            texts = pc.if_else(column.is_valid(), texts, None)
        elif pa.types.is_map(kind):
            entry = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
            column = column.cast(pa.list_(entry))
            keys, items = column.flatten().flatten()
            names = _quoted(as_text(keys, path, self.operator, JSON))
            texts = joined_lists(column, pc.binary_join_element_wise(names, self.values(path, items), ":"), "{", "}")
        else:
            texts = joined_lists(column, self.values(f"{path}[]", column.flatten()), "[", "]")
        return texts.fill_null("null")

    def _reals(self, path: str, column: Any) -> Any:
        if not pc.all(pc.is_finite(column), min_count=0).as_py():
            value = str(column.filter(pc.invert(pc.is_finite(column)))[0])
            help_ = "write null in its place before it comes here, or leave the row out: on_error='skip'"
            raise ValueNotWritable(operator=self.operator, column=path, value=value, format=JSON, help=help_)
        texts = as_text(column, path, self.operator, JSON)
        is_whole = pc.invert(pc.match_substring_regex(texts, "[.e]"))
        return pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)  # so that it is read as no integer


def _quoted(texts: Any) -> Any:
    """Return texts in quotes, with special characters escaped."""
    marks = {mark.decode() for mark in set(_SPECIAL.findall(bytes_of(texts)))}  # of all texts at once: mostly there is none
    for mark in sorted(marks, key=lambda mark: mark != "\\"):  # the one that escapes first
        texts = pc.replace_substring(texts, mark, _ESCAPES.get(mark, f"\\u{ord(mark):04x}"))
    return pc.binary_join_element_wise('"', texts, '"', "")


def joined_lists(lists: Any, values: Any, begin: str, end: str) -> Any:
    """Return the text of each list, from the texts of the values of all lists."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    joined = pc.binary_join_element_wise(begin, pc.binary_join(pa.ListArray.from_arrays(offsets, values), ","), end, "")
    return pc.if_else(lists.is_valid(), joined, None)


def check_types(schema: pa.Schema, operator: str) -> None:
    """Raise TypeNotWritable for columns that JSON has no form for, also in lists and structs."""
    for field in schema:
        wrong = unsupported_part(field.type)
        if wrong is not None:
            help_ = "make text or numbers of it before it comes here, or write Parquet"
            raise TypeNotWritable(operator=operator, column=field.name, type=wrong, format=JSON, help=help_)


def unsupported_part(kind: Any) -> str | None:
    """Return the part of a type that JSON has no form for; None if there is none."""
    if kind_of_text(kind) is not None:
        return None
    if t.is_struct(kind):
        return next((wrong for field in kind if (wrong := unsupported_part(field.type)) is not None), None)
    if t.is_map(kind):
        return unsupported_part(kind.item_type) if kind_of_text(kind.key_type) == TEXT else str(kind)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return unsupported_part(kind.value_type)
    return str(kind)
