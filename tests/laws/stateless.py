"""Kinds of nodes that are functions of single rows, and `Union`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow.compute as pc

from dagflow import Operator
from dagflow.testing import run_operator
from operators import Expect, Filter, FlatMap, Map, Sample, Select, Split, Union, Unnest, col, when
from tests.laws import reference
from tests.laws.columns import Column, Rows, field_of, names_of, table_of
from tests.laws.nodes import Drawing, Node, NodeKind, Predicate, Stream, of_rows


class Filtered(NodeKind):
    """`Filter` by a function or an expression."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Filter,)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node:
        name = drawing.stream()
        predicate = Predicate.drawn(drawing.rng, drawing.streams[name])
        return Node("filter", (name,), {"predicate": predicate, "is_function": _is_function(drawing, name)})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return {"output": _passed(node, inputs[0])}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Filter[Any](_as_operators_take(node, node.args["predicate"]))

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        return {"output": reference.where(rows[0], of_rows(node.args["predicate"], inputs[0]))}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        return {"output": f"SELECT * FROM {tables[0]} WHERE {node.args['predicate'].sql}"}


class Splitting(NodeKind):
    """`Split` with two predicates."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Split,)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node:
        name, rng = drawing.stream(), drawing.rng
        predicates = {port: Predicate.drawn(rng, drawing.streams[name]) for port in ("one", "two")}
        args = {"predicates": predicates, "matches": rng.choice(["first", "all"]), "is_function": _is_function(drawing, name)}
        return Node("split", (name,), args)

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return dict.fromkeys(("one", "two", "rest"), _passed(node, inputs[0]))

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        predicates = {port: _as_operators_take(node, each) for port, each in node.args["predicates"].items()}
        return Split[Any](predicates, matches=node.args["matches"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        one, two = (of_rows(each, inputs[0]) for each in node.args["predicates"].values())
        is_first = node.args["matches"] == "first"
        return {
            "one": reference.where(rows[0], one),
            "two": reference.where(rows[0], lambda row: two(row) and not (is_first and one(row))),
            "rest": reference.where(rows[0], lambda row: not one(row) and not two(row)),
        }

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        one, two = (f"coalesce({each.sql}, false)" for each in node.args["predicates"].values())
        second = f"{two} AND NOT {one}" if node.args["matches"] == "first" else two
        conditions = {"one": one, "two": second, "rest": f"NOT ({one} OR {two})"}
        return {port: f"SELECT * FROM {tables[0]} WHERE {condition}" for port, condition in conditions.items()}


class Expecting(NodeKind):
    """`Expect`, which drops rows or routes them to `failed`."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Expect,)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node:
        name, rng = drawing.stream(), drawing.rng
        predicate = Predicate.drawn(rng, drawing.streams[name])
        return Node(
            "expect", (name,), {"predicate": predicate, "is_function": _is_function(drawing, name), "keeps": rng.random() < 0.3}
        )

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return {"output": _passed(node, inputs[0])}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Expect[Any](_as_operators_take(node, node.args["predicate"]), max_share=1.0, drop=not node.args["keeps"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        holds = of_rows(node.args["predicate"], inputs[0])
        return {"output": rows[0] if node.args["keeps"] else reference.where(rows[0], holds)}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        return {"output": f"SELECT * FROM {tables[0]} WHERE {'true' if node.args['keeps'] else node.args['predicate'].sql}"}


def _is_function(drawing: Drawing, name: str) -> bool:
    """Return whether a predicate is to be a function: always where there are no columns."""
    stream = drawing.streams[name]
    return stream.is_loose or drawing.rng.random() < (0.5 if stream.record in PAIRS else 0.15)


def _passed(node: Node, stream: Stream) -> Stream:
    """Return the stream of the records for which a predicate holds: objects, where it is a function."""
    return attrs.evolve(stream, is_loose=node.args["is_function"] and stream.record not in PAIRS)


def _as_operators_take(node: Node, predicate: Predicate) -> Any:
    return predicate if node.args["is_function"] else predicate.expression


class Sampling(NodeKind):
    """`Sample`. The reference asks the operator, row by row: nothing else knows its hash."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Sample,)

    def draw(self, drawing: Drawing) -> Node:
        return Node(
            "sample", (drawing.stream(),), {"fraction": drawing.rng.choice([0.3, 0.7]), "seed": drawing.rng.randint(0, 9)}
        )

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return {"output": inputs[0]}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Sample[Any](node.args["fraction"], seed=node.args["seed"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        different = list(rows[0])
        if not different:
            return {"output": rows[0]}
        numbered = table_of(Rows(different), inputs[0].columns)
        kept: Rows = Rows()
        for at, row in enumerate(different):
            if run_operator(self.operator(node, inputs), {"input": [numbered.slice(at, 1)]}).get("output"):
                kept[row] = rows[0][row]
        return {"output": kept}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> None:
        return None


@attrs.frozen
class NumberPair:
    """A record of a class with columns."""

    key: int | None
    n: int | None


@attrs.frozen
class TextPair:
    """The same with a text."""

    key: str | None
    n: int | None


PAIRS: dict[str, Any] = {"NumberPair": NumberPair, "TextPair": TextPair}
_KEY_KINDS = {"NumberPair": "int", "TextPair": "text"}


def stream_of_pairs(record: str, changes: bool) -> Stream:
    """Return a stream of `NumberPair` or `TextPair`."""
    return Stream((Column("key", _KEY_KINDS[record]), Column("n", "int")), changes, record=record)


def drawn_pair(drawing: Drawing, stream: Stream) -> dict[str, str] | None:
    """Return the class of pairs that a stream can be mapped to, and the columns of the key and the number."""
    numbers, texts = stream.of_kind("int", "short"), stream.of_kind("text")
    if not numbers:
        return None
    key = drawing.rng.choice([*numbers, *texts])
    return {"record": "TextPair" if key in texts else "NumberPair", "key": key, "n": drawing.rng.choice(numbers)}


@attrs.frozen
class ToPair:
    """A function from a record to a pair of two of its fields."""

    record: str
    key: str
    n: str

    def __call__(self, record: Any) -> Any:
        """Return the pair."""
        return PAIRS[self.record](field_of(record, self.key), field_of(record, self.n))


@attrs.frozen
class ToPairs(ToPair):
    """A function from a record to pairs: none without a number, two where it is odd."""

    def __call__(self, record: Any) -> Iterator[Any]:
        """Yield the pairs."""
        key, n = field_of(record, self.key), field_of(record, self.n)
        yield from (PAIRS[self.record](key, each) for each in pairs_of(n))


def pairs_of(n: int | None) -> list[int]:
    """Return the numbers that `ToPairs` makes of one."""
    return [] if n is None else [n] if n % 2 == 0 else [n, n - 1]


class Mapping(NodeKind):
    """`Map` by a function to records of a class, or by an expression to one column; `FlatMap`."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Map, FlatMap)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        if rng.random() < 0.25 and stream.plain and not stream.is_loose:
            return Node("map", (name,), {"way": "column", "column": rng.choice(stream.plain).name})
        pair = drawn_pair(drawing, stream)
        return pair and Node("map", (name,), {"way": rng.choice(["pair", "pairs"]), **pair})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        if node.args["way"] == "column":
            column = attrs.evolve(inputs[0].column(node.args["column"]), name="value")
            return {"output": Stream((column,), inputs[0].changes, record=f"value of {column.kind}")}
        return {"output": stream_of_pairs(node.args["record"], inputs[0].changes)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        if args["way"] == "column":
            return Map[Any, Any](pc.field(args["column"]))
        if args["way"] == "pair":
            return Map[Any, PAIRS[args["record"]]](ToPair(args["record"], args["key"], args["n"]))
        return FlatMap[Any, PAIRS[args["record"]]](ToPairs(args["record"], args["key"], args["n"]))

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream, args = inputs[0], node.args
        if args["way"] == "column":
            at = stream.place(args["column"])
            return {"output": reference.flat_map(rows[0], lambda row: [(row[at],)])}
        key, n = stream.places([args["key"], args["n"]])
        if args["way"] == "pair":
            return {"output": reference.flat_map(rows[0], lambda row: [(row[key], row[n])])}
        return {"output": reference.flat_map(rows[0], lambda row: [(row[key], each) for each in pairs_of(row[n])])}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        args, table = node.args, tables[0]
        if args["way"] == "column":
            return {"output": f'SELECT "{args["column"]}" AS value FROM {table}'}
        kind = "VARCHAR" if args["record"] == "TextPair" else "BIGINT"
        pair = f'SELECT "{args["key"]}"::{kind} AS key, "{args["n"]}"::BIGINT AS n FROM {table}'
        if args["way"] == "pair":
            return {"output": pair}
        return {
            "output": f"SELECT * FROM ({pair}) WHERE n IS NOT NULL UNION ALL SELECT key, n - 1 FROM ({pair}) WHERE n % 2 <> 0"
        }


@attrs.frozen
class Computed:
    """A column that `Select` computes from another one.

    `copy` is the same value, `odd` an odd number, `text` the text or `none`, and `cut` a number up to 2, or -1.
    """

    column: Column
    way: str

    @property
    def name(self) -> str:
        """The name of the new column."""
        return f"{self.column.name}_{self.way}"

    @property
    def result(self) -> Column:
        """The new column."""
        if self.way == "copy":
            return attrs.evolve(self.column, name=self.name)
        return Column(self.name, "text" if self.way == "text" else "int", has_nulls=self.way == "odd" and self.column.has_nulls)

    @property
    def expression(self) -> Any:
        """The same as an expression."""
        column = col(self.column.name)
        return {
            "copy": column,
            "odd": column * 2 + 1,
            "text": column.fill_null("none"),
            "cut": when(column <= 2).then(column).otherwise(-1),
        }[self.way]

    def value(self, value: Any) -> Any:
        """Return the value that is computed from one."""
        if self.way == "copy":
            return value
        if self.way == "odd":
            return None if value is None else value * 2 + 1
        if self.way == "text":
            return "none" if value is None else value
        return value if value is not None and value <= 2 else -1

    @property
    def sql(self) -> str:
        """The same in SQL."""
        name = f'"{self.column.name}"'
        return {
            "copy": name,
            "odd": f"{name}::BIGINT * 2 + 1",
            "text": f"coalesce({name}, 'none')",
            "cut": f"CASE WHEN {name} <= 2 THEN {name} ELSE -1 END::BIGINT",
        }[self.way]


_WAYS = {"int": ("copy", "odd", "cut"), "text": ("copy", "text"), "short": ("copy", "odd")}


class Selecting(NodeKind):
    """`Select`, which keeps columns and computes others."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Select,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        if stream.is_loose:
            return None
        every = [Computed(column, rng.choice(_WAYS.get(column.kind, ("copy",)))) for column in stream.columns]
        taken = names_of(stream.columns)
        computed = [each for each in rng.sample(every, rng.randint(0, len(every))) if each.name not in taken]
        keep = rng.sample(taken, rng.randint(0 if computed else 1, len(taken)))
        return Node("select", (name,), {"keep": tuple(keep), "computed": tuple(computed), "all": len(keep) == len(taken)})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        stream, computed = inputs[0], node.args["computed"]
        kept = stream.columns if node.args["all"] else tuple(map(stream.column, node.args["keep"]))
        columns = (*kept, *(each.result for each in computed))
        copies = {each.column.name: each.name for each in reversed(computed) if each.way == "copy"}
        copies |= {column.name: column.name for column in kept}
        unique = tuple(copies[name] for name in stream.unique) if set(stream.unique) <= copies.keys() else ()
        record = f"value of {columns[0].kind}" if names_of(columns) == ("value",) else "row"
        return {"output": Stream(columns, stream.changes, unique, record)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        keep = ("*",) if node.args["all"] else node.args["keep"]
        return Select(*keep, columns={each.name: each.expression for each in node.args["computed"]})

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream, computed = inputs[0], node.args["computed"]
        kept = stream.places(names_of(stream.columns) if node.args["all"] else node.args["keep"])
        sources = [(each, stream.place(each.column.name)) for each in computed]
        return {
            "output": reference.flat_map(
                rows[0], lambda row: [(*(row[at] for at in kept), *(each.value(row[at]) for each, at in sources))]
            )
        }

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        kept = ["*"] if node.args["all"] else [f'"{name}"' for name in node.args["keep"]]
        computed = [f'{each.sql} AS "{each.name}"' for each in node.args["computed"]]
        return {"output": f"SELECT {', '.join([*kept, *computed])} FROM {tables[0]}"}


class Uniting(NodeKind):
    """`Union` of streams with the same columns, in any order, and of numbers of other widths; or with some missing."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Union,)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        some_missing = rng.random() < 0.2
        like = [other for other, stream in drawing.streams.items() if _fit(drawing.streams[name], stream, some_missing)]
        names = (name, *rng.choices(like, k=rng.choice([1, 1, 2]))) if like else ()
        streams = [drawing.streams[each] for each in names]
        is_alike = all(_fit(one, other, some_missing) for one in streams for other in streams)
        return Node("union", names, {"some_missing": some_missing}) if names and is_alike else None

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        names = list(dict.fromkeys(name for stream in inputs for name in names_of(stream.columns)))
        columns = tuple(_joint([stream.column(name) for stream in inputs if name in names_of(stream.columns)]) for name in names)
        lacking = {name for name in names for stream in inputs if name not in names_of(stream.columns)}
        columns = tuple(attrs.evolve(each, has_nulls=each.has_nulls or each.name in lacking) for each in columns)
        changes = any(stream.changes for stream in inputs)
        record = inputs[0].record if inputs[0].record in PAIRS or len(columns) > 1 else f"value of {columns[0].kind}"
        return {"output": Stream(columns, changes, record=record, is_loose=inputs[0].is_loose)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Union[Any](len(inputs), allow_missing_columns=node.args["some_missing"])

    def input_ports(self, node: Node) -> Sequence[str]:
        return [f"input_{number}" for number in range(len(node.inputs))]

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        columns = self.streams(node, inputs)["output"].columns

        def aligned(stream: Stream) -> Any:
            places = [stream.place(name) if name in names_of(stream.columns) else None for name in names_of(columns)]
            kinds = [column.of for column in columns]
            return lambda row: [
                tuple(None if at is None else _as_kind(row[at], kind) for at, kind in zip(places, kinds, strict=True))
            ]

        return {
            "output": reference.union(
                [reference.flat_map(some, aligned(stream)) for some, stream in zip(rows, inputs, strict=True)]
            )
        }

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        return {"output": " UNION ALL BY NAME ".join(f"SELECT * FROM {table}" for table in tables)}


class Unnesting(NodeKind):
    """`Unnest` of a column of lists."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Unnest,)

    def draw(self, drawing: Drawing) -> Node | None:
        rng = drawing.rng
        fitting = [name for name, stream in drawing.streams.items() if stream.of_kind("list") and not stream.is_loose]
        if not fitting:
            return None
        name = rng.choice(fitting)
        return Node("unnest", (name,), {"column": rng.choice(drawing.streams[name].of_kind("list")), "outer": rng.random() < 0.5})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        name = node.args["column"]
        columns = tuple(Column(name, "int") if column.name == name else column for column in inputs[0].columns)
        record = "value of int" if names_of(columns) == ("value",) else "row"
        return {"output": Stream(columns, inputs[0].changes, record=record)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Unnest(node.args["column"], outer=node.args["outer"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        at, none = inputs[0].place(node.args["column"]), (None,) if node.args["outer"] else ()

        def each(row: Any) -> list[Any]:
            return [(*row[:at], item, *row[at + 1 :]) for item in row[at] or none]

        return {"output": reference.flat_map(rows[0], each)}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        name = node.args["column"]
        lists = f'CASE WHEN coalesce(len("{name}"), 0) = 0 THEN [NULL] ELSE "{name}" END' if node.args["outer"] else f'"{name}"'
        columns = [f'unnest({lists}) AS "{name}"' if each == name else f'"{each}"' for each in names_of(inputs[0].columns)]
        return {"output": f"SELECT {', '.join(columns)} FROM {tables[0]}"}


_WIDTHS = ({"short", "int"}, {"real", "float"}, {"decimal", "total"}, {"short", "float"})


def _fit(one: Stream, other: Stream, some_missing: bool) -> bool:
    """Return whether `Union` takes two streams."""
    if (
        one.record in PAIRS
        or other.record in PAIRS
        or one.is_loose
        or other.is_loose
        or "value" in (*names_of(one.columns), *names_of(other.columns))
    ):
        return _shape(one) == _shape(other)
    kinds = {column.name: column.kind for column in one.columns}
    others = {column.name: column.kind for column in other.columns}
    both = kinds.keys() & others.keys()
    if not both or not (some_missing or kinds.keys() == others.keys()):
        return False
    return all(kinds[name] == others[name] or {kinds[name], others[name]} in _WIDTHS for name in both)


def _joint(columns: Sequence[Column]) -> Column:
    """Return the column that has the values of several."""
    widest = max(
        columns,
        key=lambda column: (
            ["short", "int", "real", "float", "decimal", "total"].index(column.kind)
            if column.kind in ("int", "float", "total")
            else -1
        ),
    )
    return attrs.evolve(
        widest, has_nulls=any(each.has_nulls for each in columns), is_finite=all(each.is_finite for each in columns)
    )


def _as_kind(value: Any, kind: Any) -> Any:
    """Return a value as a column of a type has it: integers of a column of floats are floats."""
    return float(value) if kind.is_float and value is not None else value


def _shape(stream: Stream) -> Any:
    return names_of(stream.columns), tuple(column.kind for column in stream.columns), stream.record, stream.is_loose
