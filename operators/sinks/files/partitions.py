"""Batches cut by the values of some columns, each part with its folder: `year=2026/country=se`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from dagflow.scan import NO_VALUE
from operators.sinks.encoding.plain_text import check_held
from operators.sinks.errors import PartitionColumnRefused


def folders(batch: pa.RecordBatch, columns: Sequence[str], operator: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the folders of a batch in the order of their first rows, and the rows of each, without the columns that name it.

    The order of the rows stays. A part is a copy, unless it is the whole batch, so no part keeps the whole batch in memory.
    Raises PartitionColumnRefused for columns that are unknown, or whose type cannot name a folder; ValueNotWritable for dates
    that text does not hold.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"country": ["se", "no", "se"], "n": [1, 2, 3]})
    >>> [(folder, part.to_pydict()) for folder, part in folders(batch, ["country"], "writer")]
    [('country=se', {'n': [1, 3]}), ('country=no', {'n': [2]})]
    """
    check_columns(batch.schema, columns, operator)
    rest = [name for name in batch.schema.names if name not in columns]
    codes = np.zeros(batch.num_rows, np.int64)
    named = []
    for name in columns:
        column = batch.column(name).dictionary_encode(null_encoding="encode")
        indices = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # made dense each time, so that the product of many columns' values stays within 64 bits
        _, codes = np.unique(codes * len(column.dictionary) + indices, return_inverse=True)
        check_held(column.dictionary, name, operator, "the name of a folder")
        named.append((name, indices, _texts(column.dictionary)))
    _, first = np.unique(codes, return_index=True)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(first) + 1))
    left = batch.select(rest)
    for number in np.argsort(first, kind="stable"):
        row = first[number]
        folder = "/".join(f"{quote(name, safe='')}={texts[indices[row]]}" for name, indices, texts in named)
        rows = order[bounds[number] : bounds[number + 1]]
        yield folder, left if len(first) == 1 else left.take(pa.array(rows))


def folder_names(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[str]:
    """Yield the names of all folders of a batch, each by itself: `country=se`.

    >>> import pyarrow as pa
    >>> list(folder_names(pa.record_batch({"country": ["se", None, "se"], "n": [1, 2, 3]}), ["country"]))
    ['country=se', 'country=__HIVE_DEFAULT_PARTITION__']
    """
    for name in columns:
        yield from (
            f"{quote(name, safe='')}={text}" for text in _texts(batch.column(name).dictionary_encode("encode").dictionary)
        )


def check_columns(schema: pa.Schema, columns: Sequence[str], operator: str, *, times: bool = False) -> None:
    """Raise PartitionColumnRefused. `times`: timestamps and decimals may name folders, too."""
    for name in columns:
        if name not in schema.names:
            raise PartitionColumnRefused(operator=operator, column=name, reason="there is none", known=tuple(schema.names))
        kind: Any = schema.field(name).type
        kind = kind.value_type if t.is_dictionary(kind) else kind
        if times and (t.is_timestamp(kind) or t.is_decimal(kind)):
            continue
        if not (t.is_integer(kind) or t.is_boolean(kind) or t.is_date(kind) or _is_text(kind)):
            reason = f"it is of type {kind}: folders are named by text, integers, dates and booleans"
            raise PartitionColumnRefused(operator=operator, column=name, reason=reason)
    if len(columns) == len(schema.names):
        raise PartitionColumnRefused(operator=operator, column=columns[-1], reason="no column is left for the files")


def _is_text(kind: Any) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _texts(values: Any) -> list[str]:
    """Return values as texts in folder names: characters that have a meaning in paths are written as %XX."""
    own = "%5F" + NO_VALUE[1:]  # the text itself, which would come back as null
    texts = values.cast(pa.string()).to_pylist()
    return [NO_VALUE if text is None else own if text == NO_VALUE else quote(text, safe="") for text in texts]


def nowhere(columns: Sequence[str]) -> str:
    """Return the folder of rows without values in the columns that name folders.

    >>> nowhere(["year", "country"])
    'year=__HIVE_DEFAULT_PARTITION__/country=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(f"{quote(name, safe='')}={NO_VALUE}" for name in columns)
