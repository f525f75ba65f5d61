"""The columns that a scan returns, from the projection, the provided schema, the agreed schema and the paths of files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs
import pyarrow as pa

from dagflow.arrow_types import type_text
from dagflow.scan.errors import ColumnNoSuchPart, ColumnReserved, ColumnUnknown, ProjectionError
from dagflow.scan.schema.numbers import INFERRED, NumberText, is_number
from dagflow.scan.schema.projection import STAR, ColumnPath, Projection, is_implicit
from dagflow.scan.schema.table import RESCUED, Column, Drift, TableSchema
from dagflow.scan.schema.types import to_type, without_null_types

COLUMNS = "columns"
"""The array of all fields of a row, for text without a header."""
Kind = Literal["table", "key", "implicit", "rescued"]


@attrs.frozen(kw_only=True)
class AgreedSchema:
    """The schema that all readers of a scan agree on before the first row: plain data, kept with the plan of each window.

    Attributes:
        columns: the columns of all sampled files: `(name, type)`, types as text (`null`: no value was seen).
        files: how many of the sampled files have columns; blank ones, for instance, do not.
        root: the folder below which `dir0` begins.
        keys: the keys of folders `key=value`, with the types of their values.
    """

    columns: tuple[tuple[str, str], ...] = ()
    files: int = 0
    root: str = ""
    keys: Mapping[str, str] = attrs.field(factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as plain data."""
        return {"columns": [list(c) for c in self.columns], "files": self.files, "root": self.root, "keys": dict(self.keys)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> AgreedSchema:
        """Make a schema from plain data."""
        columns = tuple((str(name), str(kind)) for name, kind in plain["columns"])
        return cls(columns=columns, files=plain["files"], root=plain["root"], keys=plain["keys"])


@attrs.frozen(kw_only=True)
class OutputColumn:
    """A column that a scan returns. `column`: the settings of the user; `type`: of the whole column that it is part of.

    `numbers`: the spelling of numbers, where they are text.
    """

    name: str
    kind: Kind
    path: ColumnPath
    type: pa.DataType
    result: pa.DataType
    column: Column | None = None
    numbers: NumberText = INFERRED

    @property
    def field(self) -> pa.Field:
        """The field of the batches."""
        is_whole = self.column is not None and not self.path.steps
        return pa.field(self.name, self.result, nullable=not is_whole or self.column is None or self.column.nullable)


@attrs.frozen(kw_only=True)
class Shape:
    """The columns that a scan returns, in order. Changes only if `Drift` says "widen".

    Attributes:
        known: all columns that files are known to have, with their types, whether they are selected or not.
        is_open: whether columns that appear later are selected, too (`*`, and no strict schema).
        numbers: the spelling of numbers in columns that appear later.
    """

    columns: tuple[OutputColumn, ...]
    known: Mapping[str, pa.DataType]
    is_open: bool
    numbers: NumberText = INFERRED

    def __attrs_post_init__(self) -> None:
        """Raise ColumnReserved if files have a column `_rescued`, too."""
        if sum(column.name == RESCUED for column in self.columns) > 1:
            raise ColumnReserved(column=RESCUED)

    @functools.cached_property
    def roots(self) -> Mapping[str, OutputColumn]:
        """The columns of files that are needed, in the order of selection, each with the part that was selected first."""
        roots: dict[str, OutputColumn] = {}
        for column in self.columns:
            if column.kind == "table":
                roots.setdefault(column.path.root, column)
        return roots

    def columns_to_read(self, drift: Drift) -> tuple[str, ...] | None:
        """Return the columns that readers load; None: all, since unknown columns matter, too."""
        return None if self.is_open and drift.extra != "ignore" else tuple(self.roots)

    @property
    def spelled(self) -> frozenset[str]:
        """The columns of numbers that no parser takes as they are spelled: readers load their text."""
        return frozenset(root for root, c in self.roots.items() if is_number(c.type) and not c.numbers.is_plain)

    @property
    def inferred(self) -> frozenset[str]:
        """The columns whose types come from a sample."""
        return frozenset(root for root, c in self.roots.items() if c.numbers.is_inferred)

    @property
    def source_schema(self) -> pa.Schema:
        """The columns of files, with the types that they shall have."""
        return pa.schema([pa.field(name, kind) for name, kind in self.known.items()])

    def with_columns(self, extra: Iterable[pa.Field]) -> Shape:
        """Return the shape with further columns of files, at the end (before `_rescued`)."""
        added = [_table(ColumnPath(f.name, f.name), f.type, None, self.numbers) for f in extra]
        tail = tuple(c for c in self.columns if c.kind == "rescued")
        head = tuple(c for c in self.columns if c.kind != "rescued")
        return attrs.evolve(self, columns=(*head, *added, *tail), known={**self.known, **{c.name: c.type for c in added}})

    def with_type(self, root: str, kind: pa.DataType) -> Shape:
        """Return the shape with another type for a column of files."""
        columns = tuple(
            attrs.evolve(c, type=kind, result=followed(c.path, kind)) if c.kind == "table" and c.path.root == root else c
            for c in self.columns
        )
        return attrs.evolve(self, columns=columns, known={**self.known, root: kind})


def make_shape(
    projection: Projection,
    agreed: AgreedSchema,
    schema: TableSchema | None,
    drift: Drift,
    *,
    null_type: pa.DataType | None = None,
    is_array: bool = False,
    is_by_position: bool = False,
    named_as: Callable[[str], str] = str,
    has_files: bool = True,
    numbers: NumberText = INFERRED,
) -> Shape:
    """Return the columns that a scan returns.

    `null_type`: the type of columns without a value so far (text by default). `is_array`: text is read as the array `columns`.
    `is_by_position`: the columns of files are those of the schema in order, so none of them is a key of folders.
    `named_as`: the name of a column that is selected by another name (Format.column_name). `has_files` False: there are no
    columns that paths say. `numbers`: their spelling in text.
    Raises ColumnUnknown, ColumnNoSuchPart, ColumnReserved.
    """
    default_type = pa.string() if null_type is None else null_type
    provided = {} if schema is None else dict(schema.columns)
    is_strict = schema is not None and schema.strict
    known: dict[str, pa.DataType] = {name: column.arrow for name, column in provided.items()}
    if is_array:
        known = {COLUMNS: pa.list_(pa.string())}
    elif not is_strict:
        for name, text in agreed.columns:
            known.setdefault(name, without_null_types(to_type(text), default_type))
    keys = {name: provided[name].arrow if name in provided else to_type(kind) for name, kind in agreed.keys.items()}
    of_files = dict(agreed.columns) if agreed.files or is_by_position else known  # files that were not sampled may have all
    known = {name: kind for name, kind in known.items() if name not in keys or name in of_files}
    paths = (ColumnPath(STAR, STAR, is_star=True),) if projection.paths is None else projection.paths
    explicit = {path.root if path.root in known else named_as(path.root) for path in paths if not path.steps and not path.is_star}
    columns: list[OutputColumn] = []
    for path in paths:
        if path.is_star:
            names = provided if is_strict else dict.fromkeys((*provided, *known, *keys))
            columns += [
                _table(ColumnPath(n, n), known[n], provided.get(n), numbers) if n in known else _key(n, keys[n], provided.get(n))
                for n in names
                if n not in explicit and (n in known or n in keys)
            ]
        elif (root := path.root if path.root in known else named_as(path.root)) in known:
            columns.append(_table(attrs.evolve(path, root=root), known[root], provided.get(root), numbers))
        else:
            columns.append(_unread(path, keys, provided, drift, tuple(known), agreed.files, has_files))
    is_open = projection.has_star and not is_strict and not is_array
    must_rescue = drift.changed == "rescue" or (drift.extra == "rescue" and is_open)
    if must_rescue and all(c.kind != "rescued" for c in columns):
        columns.append(_other(RESCUED, "rescued", pa.string()))
    return Shape(columns=tuple(columns), known=known, is_open=is_open, numbers=numbers)


def column_names(projection: Projection, schema: TableSchema | None, drift: Drift) -> list[str] | None:
    """Return the names of all columns that a scan returns; None if they depend on the files (`*`).

    >>> column_names(Projection.of(["a", "*"]), TableSchema("b: int8, a: int8", strict=True), Drift())
    ['a', 'b']
    """
    is_strict = schema is not None and schema.strict
    if projection.has_star and not is_strict:
        return None
    paths = (ColumnPath(STAR, STAR, is_star=True),) if projection.paths is None else projection.paths
    explicit = {path.name for path in paths if not path.is_star}
    others = [] if schema is None else [name for name in schema.columns if name not in explicit]
    names = [name for path in paths for name in (others if path.is_star else [path.name])]
    return [*names, RESCUED] if drift.changed == "rescue" and RESCUED not in names else names


def check_tested(names: Sequence[str], agreed: AgreedSchema, shape: Shape) -> None:
    """Check the columns of conditions against the sampled files.

    Raises ColumnUnknown and ColumnNoSuchPart if no file has one, ProjectionError for an element of a list.
    """
    columns = {**{name: to_type(text) for name, text in agreed.columns}, **shape.known}
    for name in names if agreed.files else ():
        if name in columns or name in agreed.keys:
            continue
        path = ColumnPath.of(name)
        if path.root not in columns:
            raise ColumnUnknown(column=path.root, known=(*columns, *agreed.keys), files=agreed.files)
        followed(path, columns[path.root])
        if not all(isinstance(step, str) for step in path.steps):
            raise ProjectionError(f"{name!r} has a condition on an element of a list", "ask for columns, and fields of structs")


def _table(path: ColumnPath, kind: pa.DataType, column: Column | None, numbers: NumberText) -> OutputColumn:
    spelled = numbers if column is None else column.numbers(numbers)
    result = followed(path, kind)
    return OutputColumn(name=path.name, kind="table", path=path, type=kind, result=result, column=column, numbers=spelled)


def _key(name: str, kind: pa.DataType, column: Column | None) -> OutputColumn:
    """Return the column of a key of folders. Its values are plain, whatever the format."""
    return attrs.evolve(_other(name, "key", kind), numbers=attrs.evolve(INFERRED, is_inferred=column is None))


def _other(name: str, kind: Kind, type: pa.DataType) -> OutputColumn:
    return OutputColumn(name=name, kind=kind, path=ColumnPath(name, name), type=type, result=type)


def _unread(
    path: ColumnPath,
    keys: Mapping[str, pa.DataType],
    provided: Mapping[str, Column],
    drift: Drift,
    known: Sequence[str],
    files: int,
    has_files: bool,
) -> OutputColumn:
    """Return a column that is not read from files: a key of folders, an implicit column, or `_rescued`. They have no parts."""
    unread: OutputColumn | None = None
    if path.root in keys:
        unread = _key(path.root, keys[path.root], provided.get(path.root))
    elif path.root == RESCUED and drift.rescues:
        unread = _other(RESCUED, "rescued", pa.string())
    elif has_files and is_implicit(path.root):
        unread = _other(path.root, "implicit", pa.int64() if path.root == "block_offset" else pa.string())
    if unread is not None:
        followed(path, unread.type)
        return unread
    raise ColumnUnknown(column=path.root, known=(*known, *keys), files=files)


def followed(path: ColumnPath, kind: pa.DataType) -> pa.DataType:
    """Return the type of the selected part of a column. Raises ColumnNoSuchPart.

    >>> followed(ColumnPath.of("m.a[0]"), pa.struct([("a", pa.list_(pa.int8()))]))
    DataType(int8)
    """
    so_far = path.root
    for step in path.steps:
        types = pa.types
        if isinstance(step, int):
            if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
                raise ColumnNoSuchPart(column=path.name, part=so_far, type=f"{type_text(kind)}, which has no elements")
            kind, so_far = kind.value_type, f"{so_far}[{step}]"
        else:
            if not types.is_struct(kind):
                raise ColumnNoSuchPart(column=path.name, part=so_far, type=f"{type_text(kind)}, which has no fields")
            at = kind.get_field_index(step)
            if at < 0:
                fields = ", ".join(f.name for f in kind)
                raise ColumnNoSuchPart(column=path.name, part=so_far, type=f"a struct without a field {step!r} (it has {fields})")
            kind, so_far = kind.field(at).type, f"{so_far}.{step}"
    return kind
