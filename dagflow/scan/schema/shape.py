"""The columns that a scan gives, worked out of what is asked for, what was given or agreed, and what paths say."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs
import pyarrow as pa

from dagflow.arrow_types import type_text
from dagflow.scan.errors import ColumnNoSuchPart, ColumnReserved, ColumnUnknown, ProjectionError
from dagflow.scan.schema.projection import STAR, Asked, Projection, is_implicit
from dagflow.scan.schema.table import RESCUED, Column, Drift, TableSchema
from dagflow.scan.schema.types import to_type, without_null_types

COLUMNS = "columns"
"""The array of a row's fields, of text without names."""
Kind = Literal["table", "key", "implicit", "rescued"]


@attrs.frozen(kw_only=True)
class Agreed:
    """The facts that all readers of a scan know before the first row: plain data, kept with the plan of each window.

    Attributes:
        columns: of the files that were looked at, put together: `(name, type)`, types as text (`null`: no value was seen).
        files: how many of the files that were looked at have columns: blank ones, say, tell nothing.
        root: the folder below which `dir0` begins.
        keys: the keys of folders `key=value`, with the types of their values.
    """

    columns: tuple[tuple[str, str], ...] = ()
    files: int = 0
    root: str = ""
    keys: Mapping[str, str] = attrs.field(factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"columns": [list(c) for c in self.columns], "files": self.files, "root": self.root, "keys": dict(self.keys)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Agreed:
        """Of plain data."""
        columns = tuple((str(name), str(kind)) for name, kind in plain["columns"])
        return cls(columns=columns, files=plain["files"], root=plain["root"], keys=plain["keys"])


@attrs.frozen(kw_only=True)
class OutputColumn:
    """A column that a scan gives. `column`: what the user has said of it; `type`: of the whole column that it is part of."""

    name: str
    kind: Kind
    asked: Asked
    type: pa.DataType
    result: pa.DataType
    column: Column | None = None

    @property
    def field(self) -> pa.Field:
        """As a field of the batches."""
        is_whole = self.column is not None and not self.asked.steps
        return pa.field(self.name, self.result, nullable=not is_whole or self.column is None or self.column.nullable)


@attrs.frozen(kw_only=True)
class Shape:
    """The columns that a scan gives, in order. Changes only where `Drift` says "widen".

    Attributes:
        known: all columns that files are known to have, with their types, whether they are wanted or not.
        is_open: whether columns that turn up later are wanted, too (`*`, and no strict schema).
    """

    columns: tuple[OutputColumn, ...]
    known: Mapping[str, pa.DataType]
    is_open: bool

    def __attrs_post_init__(self) -> None:
        """Raise ColumnReserved where files have a column `_rescued`, too."""
        if sum(column.name == RESCUED for column in self.columns) > 1:
            raise ColumnReserved(column=RESCUED)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return pa.schema([column.field for column in self.columns])

    @functools.cached_property
    def roots(self) -> Mapping[str, OutputColumn]:
        """The columns of files that are needed, in the order in which they were asked for; of each what was asked for first."""
        found: dict[str, OutputColumn] = {}
        for column in self.columns:
            if column.kind == "table":
                found.setdefault(column.asked.root, column)
        return found

    def wanted(self, drift: Drift) -> tuple[str, ...] | None:
        """Return the columns that readers are asked for; None: all, since others than the known ones matter."""
        return None if self.is_open and drift.extra != "ignore" else tuple(self.roots)

    @property
    def source_schema(self) -> pa.Schema:
        """The columns of files with the types that they are to have."""
        return pa.schema([pa.field(name, kind) for name, kind in self.known.items()])

    def with_columns(self, extra: Iterable[pa.Field]) -> Shape:
        """Return the same with further columns of files, behind those that there are (before `_rescued`)."""
        added = [OutputColumn(name=f.name, kind="table", asked=Asked(f.name, f.name), type=f.type, result=f.type) for f in extra]
        tail = tuple(c for c in self.columns if c.kind == "rescued")
        head = tuple(c for c in self.columns if c.kind != "rescued")
        return attrs.evolve(self, columns=(*head, *added, *tail), known={**self.known, **{c.name: c.type for c in added}})

    def with_type(self, root: str, kind: pa.DataType) -> Shape:
        """Return the same, a column of files being of another type."""
        columns = tuple(
            attrs.evolve(c, type=kind, result=followed(c.asked, kind)) if c.kind == "table" and c.asked.root == root else c
            for c in self.columns
        )
        return attrs.evolve(self, columns=columns, known={**self.known, root: kind})


def make_shape(
    projection: Projection,
    agreed: Agreed,
    schema: TableSchema | None,
    drift: Drift,
    *,
    null_type: pa.DataType | None = None,
    is_array: bool = False,
    is_by_position: bool = False,
    named_as: Callable[[str], str] = str,
) -> Shape:
    """Return the columns that a scan gives.

    `null_type`: the type of columns without a value so far (text by default). `is_array`: text is read as the array `columns`.
    `is_by_position`: the columns of files are those of the schema in order, so it has none that folders alone have.
    `named_as`: what a column is called that is asked for by another name (Format.column_name).
    Raises ColumnUnknown, ColumnNoSuchPart, ColumnReserved.
    """
    unseen = pa.string() if null_type is None else null_type
    given = {} if schema is None else dict(schema.columns)
    is_strict = schema is not None and schema.strict
    known: dict[str, pa.DataType] = {name: column.arrow for name, column in given.items()}
    if is_array:
        known = {COLUMNS: pa.list_(pa.string())}
    elif not is_strict:
        for name, text in agreed.columns:
            known.setdefault(name, without_null_types(to_type(text), unseen))
    keys = {name: given[name].arrow if name in given else to_type(kind) for name, kind in agreed.keys.items()}
    of_files = dict(agreed.columns) if agreed.files or is_by_position else known  # files that were not looked at may have all
    known = {name: kind for name, kind in known.items() if name not in keys or name in of_files}
    asked = (Asked(STAR, STAR, is_star=True),) if projection.asked is None else projection.asked
    named = {each.root if each.root in known else named_as(each.root) for each in asked if not each.steps and not each.is_star}
    columns: list[OutputColumn] = []
    for each in asked:
        if each.is_star:
            names = given if is_strict else dict.fromkeys((*given, *known, *keys))
            columns += [
                _table(Asked(n, n), known[n], given.get(n)) if n in known else _other(n, "key", keys[n])
                for n in names
                if n not in named and (n in known or n in keys)
            ]
        elif (root := each.root if each.root in known else named_as(each.root)) in known:
            columns.append(_table(attrs.evolve(each, root=root), known[root], given.get(root)))
        else:
            columns.append(_unread(each, keys, drift, tuple(known), agreed.files))
    is_open = projection.has_star and not is_strict and not is_array
    must_rescue = drift.changed == "rescue" or (drift.extra == "rescue" and is_open)
    if must_rescue and all(c.kind != "rescued" for c in columns):
        columns.append(_other(RESCUED, "rescued", pa.string()))
    return Shape(columns=tuple(columns), known=known, is_open=is_open)


def column_names(projection: Projection, schema: TableSchema | None, drift: Drift) -> list[str] | None:
    """Return the names of all columns that a scan returns; None if they depend on the files (`*`).

    >>> column_names(Projection.of(["a", "*"]), TableSchema("b: int8, a: int8", strict=True), Drift())
    ['a', 'b']
    """
    is_strict = schema is not None and schema.strict
    if projection.has_star and not is_strict:
        return None
    asked = (Asked(STAR, STAR, is_star=True),) if projection.asked is None else projection.asked
    named = {each.name for each in asked if not each.is_star}
    own = [] if schema is None else [name for name in schema.columns if name not in named]
    names = [name for each in asked for name in (own if each.is_star else [each.name])]
    return [*names, RESCUED] if drift.changed == "rescue" and RESCUED not in names else names


def check_tested(names: Sequence[str], agreed: Agreed, shape: Shape) -> None:
    """Raise ColumnUnknown and ColumnNoSuchPart where files were looked at, and none has what a condition is on.

    ProjectionError where that is an element of a list.
    """
    columns = {**{name: to_type(text) for name, text in agreed.columns}, **shape.known}
    for name in names if agreed.files else ():
        if name in columns or name in agreed.keys:
            continue
        asked = Asked.of(name)
        if asked.root not in columns:
            raise ColumnUnknown(column=asked.root, known=(*columns, *agreed.keys), files=agreed.files)
        followed(asked, columns[asked.root])
        if not all(isinstance(step, str) for step in asked.steps):
            raise ProjectionError(f"{name!r} has a condition on an element of a list", "ask for columns, and fields of structs")


def _table(asked: Asked, kind: pa.DataType, column: Column | None) -> OutputColumn:
    return OutputColumn(name=asked.name, kind="table", asked=asked, type=kind, result=followed(asked, kind), column=column)


def _other(name: str, kind: Kind, type: pa.DataType) -> OutputColumn:
    return OutputColumn(name=name, kind=kind, asked=Asked(name, name), type=type, result=type)


def _unread(each: Asked, keys: Mapping[str, pa.DataType], drift: Drift, known: Sequence[str], files: int) -> OutputColumn:
    """Return a column that is not read from files: a key of folders, an implicit one, `_rescued`."""
    if not each.steps:
        if each.root in keys:
            return _other(each.root, "key", keys[each.root])
        if each.root == RESCUED and drift.rescues:
            return _other(RESCUED, "rescued", pa.string())
        if is_implicit(each.root):
            return _other(each.root, "implicit", pa.int64() if each.root == "block_offset" else pa.string())
    raise ColumnUnknown(column=each.root, known=(*known, *keys), files=files)


def followed(asked: Asked, kind: pa.DataType) -> pa.DataType:
    """Return the type of the part that is asked for, of a column of a type. Raises ColumnNoSuchPart.

    >>> followed(Asked.of("m.a[0]"), pa.struct([("a", pa.list_(pa.int8()))]))
    DataType(int8)
    """
    so_far = asked.root
    for step in asked.steps:
        types = pa.types
        if isinstance(step, int):
            if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
                raise ColumnNoSuchPart(column=asked.name, part=so_far, type=f"{type_text(kind)}, which has no elements")
            kind, so_far = kind.value_type, f"{so_far}[{step}]"
        else:
            if not types.is_struct(kind):
                raise ColumnNoSuchPart(column=asked.name, part=so_far, type=f"{type_text(kind)}, which has no fields")
            at = kind.get_field_index(step)
            if at < 0:
                fields = ", ".join(f.name for f in kind)
                raise ColumnNoSuchPart(
                    column=asked.name, part=so_far, type=f"a struct without a field {step!r} (it has {fields})"
                )
            kind, so_far = kind.field(at).type, f"{so_far}.{step}"
    return kind
