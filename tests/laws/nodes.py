"""Nodes of random DAGs: what every kind of node has, and predicates that operators, the reference and SQL share."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import Operator
from tests.laws.columns import KINDS, Column, Columns, Row, Rows, field_of, names_of


@attrs.frozen
class Stream:
    """A stream of a DAG.

    Attributes:
        columns: of its rows.
        changes: whether rows may be taken back.
        unique: the columns that identify a row; empty: none do.
        record: the class of its records; `row` for rows without one.
        is_loose: its records are dicts from a function: nothing says their columns, so they are never made into batches.
    """

    columns: Columns
    changes: bool = False
    unique: tuple[str, ...] = ()
    record: str = "row"
    is_loose: bool = False

    def column(self, name: str) -> Column:
        """Return the column of a name."""
        return self.columns[self.place(name)]

    def place(self, name: str) -> int:
        """Return the place of a column."""
        return names_of(self.columns).index(name)

    def places(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the places of columns."""
        return tuple(map(self.place, names))

    @property
    def ties(self) -> tuple[int, ...]:
        """The places of all columns in the order of their names: what decides between rows that are equal otherwise."""
        return self.places(sorted(names_of(self.columns)))

    @property
    def plain(self) -> Columns:
        """The columns that can be compared."""
        return tuple(column for column in self.columns if column.of.is_plain)

    @property
    def is_plain(self) -> bool:
        """True if all columns can be compared."""
        return len(self.plain) == len(self.columns)

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the names of columns of some types."""
        return [column.name for column in self.columns if column.kind in kinds]


@attrs.frozen
class Node:
    """An operator of a random DAG, as data.

    Attributes:
        kind: the name of its kind in the registry.
        inputs: the streams that it takes, by their names: `s0` of a source, `n2.output` of a node.
        args: its properties.
        partitions: how many it has in the first launch; more than one change with each launch. None: as many as the planner
            gives it.
    """

    kind: str
    inputs: tuple[str, ...]
    args: Mapping[str, Any] = attrs.field(factory=dict)
    partitions: int | None = None


@attrs.define
class Drawing:
    """A random DAG that grows: its random numbers, and the streams so far, the newest last."""

    rng: random.Random
    streams: dict[str, Stream] = attrs.field(factory=dict)
    number: int = 0

    def stream(self) -> str:
        """Return a stream, more often one of the newest."""
        names = list(self.streams)
        return names[-min(self.rng.randint(1, len(names)) for _ in range(3))]

    def some(self, columns: Sequence[Column], least: int, most: int) -> tuple[str, ...]:
        """Return the names of some columns."""
        most = min(most, len(columns))
        return names_of(tuple(self.rng.sample(columns, self.rng.randint(min(least, most), most))))


class NodeKind:
    """A kind of nodes: how to draw one, its operator, and the same by the reference and in SQL.

    Attributes:
        operators: the operators of the library that it tries.
        ports: its input ports.
        takes_records: it takes records of which no batches can be made.
    """

    operators: ClassVar[tuple[type[Operator], ...]]
    ports: ClassVar[tuple[str, ...]] = ("input",)
    takes_records: ClassVar[bool] = False

    @property
    def is_keyed(self) -> bool:
        """True if its operators have a key, and so an exchange before them."""
        return all(operator.partition_key_fixed for operator in self.operators)

    def draw(self, drawing: Drawing) -> Node | None:
        """Return a node on some streams; None where none of them fits."""
        raise NotImplementedError

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        """Return the streams that leave a node, by port."""
        raise NotImplementedError

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        """Return the operator."""
        raise NotImplementedError

    def input_ports(self, node: Node) -> Sequence[str]:
        """Return the input ports, one for each input."""
        return self.ports

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        """Return the rows that leave a node, by port."""
        raise NotImplementedError

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str] | None:
        """Return the queries over tables of the inputs, by port; None where SQL cannot say the same."""
        raise NotImplementedError


@attrs.frozen
class Predicate:
    """A condition on a column: `valid`, `null`, `less` or `equal`. Nothing is less than NaN, or equal to it, nor NaN to anything.

    It is a function of records, an expression of Arrow, a function of the reference's rows, and a condition of SQL.
    """

    column: str
    test: str
    value: Any = None
    kind: str = "int"

    @classmethod
    def drawn(cls, rng: random.Random, stream: Stream) -> Predicate:
        """Return a random condition on a column of a stream."""
        column = rng.choice(stream.columns)
        tests = ["valid", "null"]
        if column.of.is_plain:
            tests += ["equal"] * 2 if column.kind == "bool" else ["equal", "less", "less", "less"]
        test = rng.choice(tests)
        if test in ("valid", "null"):
            return cls(column.name, test, None, column.kind)
        values = [value for value in column.of.values if value == value and value != "a\0b"]  # no literal of SQL has a zero byte
        return cls(column.name, test, rng.choice(values), column.kind)

    def __call__(self, record: Any) -> bool:
        """Return True where it holds for a record."""
        return self.holds(field_of(record, self.column))

    def holds(self, value: Any) -> bool:
        """Return True where it holds for a value."""
        if value is None or self.test in ("valid", "null"):
            return (value is None) == (self.test == "null")
        return bool(value < self.value if self.test == "less" else value == self.value)

    @property
    def expression(self) -> Any:
        """The same as an expression of Arrow."""
        field = pc.field(self.column)
        if self.test in ("valid", "null"):
            return field.is_valid() if self.test == "valid" else ~field.is_valid()
        value = pc.scalar(pa.scalar(self.value, KINDS[self.kind].arrow))
        return field < value if self.test == "less" else field == value

    @property
    def sql(self) -> str:
        """The same in SQL, for which NaN is equal to NaN and larger than all numbers."""
        name = f'"{self.column}"'
        if self.test in ("valid", "null"):
            return f"{name} IS {'NOT ' if self.test == 'valid' else ''}NULL"
        comparison = f"{name} {'<' if self.test == 'less' else '='} {literal(self.value, KINDS[self.kind].sql)}"
        return f"({comparison} AND NOT isnan({name}))" if KINDS[self.kind].is_float else f"({comparison})"


def literal(value: Any, kind: str) -> str:
    """Return a value as SQL writes it.

    >>> literal(b"a", "BLOB"), literal("it's", "VARCHAR")
    ("'\\\\x61'::BLOB", "'it''s'::VARCHAR")
    """
    if isinstance(value, bytes):
        text = "".join(f"\\x{byte:02x}" for byte in value)
    elif isinstance(value, float) and math.isinf(value):
        text = "inf" if value > 0 else "-inf"
    else:
        text = repr(value) if isinstance(value, float) else str(value)
    quoted = text.replace("'", "''")
    return f"'{quoted}'::{kind}"


def quoted(names: Sequence[str], table: str = "") -> str:
    """Return names of columns in SQL."""
    return ", ".join(f'{table}"{name}"' for name in names)


def of_rows(predicate: Predicate, stream: Stream) -> Any:
    """Return a predicate as a function of the reference's rows."""
    at = stream.place(predicate.column)
    return lambda row: predicate.holds(row[at])


def expanded(row: Row) -> list[Any]:
    """Return a row with lists as Arrow gives them to functions."""
    return [list(value) if isinstance(value, tuple) else value for value in row]
