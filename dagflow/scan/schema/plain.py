"""Plain types: one type for all layouts of the same values, and the conversion to it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # its functions are made at run time


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type of a type, in which a scan returns its values; a plain type stays.

    Dictionaries become their values, views and lists of fixed size ordinary strings and lists, extensions their storage, and
    small decimals `decimal128`.

    >>> plain_type(pa.dictionary(pa.int8(), pa.string())), plain_type(pa.list_(pa.uuid(), 2))
    (DataType(string), ListType(list<item: fixed_size_binary[16]>))
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_struct(kind):
        fields = [pa.field(f.name, plain_type(f.type)) for f in kind]
        return pa.struct(fields) if any(f.type is not old.type for f, old in zip(fields, kind, strict=True)) else kind
    if types.is_map(kind):
        key, item = plain_type(kind.key_type), plain_type(kind.item_type)
        return kind if key.equals(kind.key_type) and item.equals(kind.item_type) else pa.map_(key, item)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    if is_large or types.is_list(kind) or types.is_list_view(kind) or types.is_fixed_size_list(kind):
        plain_list = (pa.large_list if is_large else pa.list_)(plain_type(kind.value_type))
        return kind if plain_list.equals(kind) else plain_list
    return kind


def plain(values: pa.Array) -> pa.Array:
    """Return values as values of their `plain_type`; the same array if it has that type.

    >>> plain(pa.array(["a", None]).dictionary_encode()).type
    DataType(string)
    """
    types, current, kind = pa.types, values.type, plain_type(values.type)
    if kind.equals(current):
        return values
    if isinstance(values, pa.ExtensionArray):
        return plain(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return plain(values.dictionary_decode())
    if isinstance(values, pa.StructArray):
        parts = list(map(plain, values.flatten()))  # null where the struct is: what lies below may be anything
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pc.is_null(values))
    if types.is_map(current) or not types.is_nested(current):
        return pc.cast(values, kind)
    # Not cast: of Arrow 26, a list view with a null loses what stands behind it.
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    make = pa.LargeListArray if types.is_large_list(kind) else pa.ListArray
    offsets = pa.array([0, *lengths.cumsum()], pa.int64() if types.is_large_list(kind) else pa.int32())
    return make.from_arrays(offsets, plain(values.flatten()), type=kind, mask=pc.is_null(values))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types; the same one if they are plain."""
    fields = [field.with_type(plain_type(field.type)) for field in schema]
    return schema if all(a.type.equals(b.type) for a, b in zip(fields, schema, strict=True)) else pa.schema(fields)


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with plain columns; the same one if they are plain."""
    schema = plain_schema(batch.schema)
    return batch if schema is batch.schema else pa.RecordBatch.from_arrays(list(map(plain, batch.columns)), schema=schema)
