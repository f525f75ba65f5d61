"""Kinds of nodes whose results cover all input: aggregates, rankings and joins."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import pyarrow as pa

from dagflow import Operator
from operators import (
    Average,
    Count,
    Deduplicate,
    Distinct,
    GroupBy,
    HashJoin,
    Join,
    Max,
    Min,
    Sort,
    Sum,
    TopN,
    Tumbling,
    agg,
    col,
    window,
)
from tests.laws import reference
from tests.laws.columns import Column, Columns, Row, Rows, field_of, names_of
from tests.laws.nodes import Drawing, Node, NodeKind, Stream, quoted
from tests.laws.stateless import PAIRS, stream_of_pairs

Aggregate = tuple[str, str, str | None]
"""An aggregate: the name of its result, its function, and its column."""


SHARE = {"share": reference.SHARE}
OF_ROWS = ("first", "last", "arg_min", "arg_max")
"""Functions that take a value of the first row or the last one."""


def unique_by(names: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """Return columns that have each value once, if they can be the keys of a table."""
    return tuple(names) if all(column.identifies for column in columns if column.name in names) else ()


def result_column(name: str, function: str, column: Column | None) -> Column:
    """Return the column of the results of an aggregate."""
    if column is None or function in ("count", "count_distinct"):
        return Column(name, "int", has_nulls=False)
    if function in ("arg_min", "arg_max"):
        return attrs.evolve(column, name=name, has_nulls=True)
    if function in ("collect", "quantile", "stddev"):
        return Column(name, "list" if function == "collect" else "float")
    kind = (
        {"tiny": "int", "unsigned": "int", "short": "int", "real": "float", "decimal": "total"}.get(column.kind, column.kind)
        if function == "sum"
        else column.kind
    )
    return attrs.evolve(column, name=name, kind="float" if function == "mean" else kind)


def aggregate_sql(function: str, column: Column | None) -> str:
    """Return an aggregate in SQL. Sums of floats and means are exact there too."""
    if column is None:
        return "count(*)"
    name = f'"{column.name}"'
    some = f"FILTER (WHERE {name} IS NOT NULL)"
    if function == "collect":
        return f"list({name} ORDER BY {name}) {some}"
    if function in ("quantile", "stddev"):
        texts, kind = ("_of_texts", "VARCHAR") if column.of.text.startswith("decimal") else ("", "DOUBLE")
        return f"nullif(exact_{function}{texts}(list({name}::{kind}) {some}), '')::DOUBLE"
    if column.of.is_float and function in ("sum", "mean"):
        both = f"bool_or({name} = 'inf'::DOUBLE) AND bool_or({name} = '-inf'::DOUBLE)"
        exact = f"exact_{function}(list({name}::DOUBLE) {some})"
        return f"CASE WHEN bool_or(isnan({name})) OR ({both}) THEN 'nan'::DOUBLE ELSE {exact} END"  # a NaN of Python becomes null
    if function == "mean":
        return f"exact_mean_of_texts(list({name}::VARCHAR) {some})"
    if function == "sum":
        return f"sum({name})::{'DECIMAL(38, 2)' if column.of.text.startswith('decimal') else 'BIGINT'}"
    return f"count(DISTINCT {name})" if function == "count_distinct" else f"{function}({name})"


def row_sql(function: str, column: Column | None, order: Sequence[str]) -> str:
    """Return the value of a column in the first row or the last one, in SQL, for which NaN is larger than all numbers, too."""
    assert column is not None
    way = "ASC" if function in ("first", "arg_min") else "DESC"
    some = f'FILTER (WHERE "{order[0]}" IS NOT NULL)' if function.startswith("arg_") else ""
    columns = ", ".join(f'"{name}" {way} NULLS LAST' for name in order)
    return f'first("{column.name}" ORDER BY {columns}) {some}'


def functions_of(column: Column) -> list[str]:
    """Return the aggregates that a column can have."""
    return [
        "count",
        *(["min", "max"] if column.of.is_plain else []),
        *(["sum", "sum", "mean"] if column.of.is_number else []),
    ]


def functions_of_all(column: Column, rng: random.Random) -> list[str]:
    """Return the aggregates of `GroupBy` only that a column can have: they need all its values, or rows."""
    return [
        *(["count_distinct", rng.choice(OF_ROWS)] if column.of.is_plain else []),
        *(["quantile", "stddev"] if column.of.is_number else []),
        *(["collect"] if column.of.arrow == pa.int64() else []),
    ]


class Grouping(NodeKind):
    """`GroupBy` with any aggregates, by any columns or none."""

    operators: ClassVar[tuple[type[Operator], ...]] = (GroupBy,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        keys = drawing.some(stream.plain, 0, 2)
        aggregates: list[Aggregate] = []
        for letter in "abc"[: rng.randint(0 if keys else 1, 3)]:
            column = rng.choice([None, *stream.columns, *stream.columns])
            function = "count" if column is None else rng.choice([*functions_of(column), *functions_of_all(column, rng)])
            aggregates.append((f"{letter}{drawing.number}", function, column and column.name))
        orders = {name: drawing.some(stream.plain, 1, 2) for name, function, _ in aggregates if function in OF_ROWS}
        return Node("group", (name,), {"keys": keys, "aggregates": aggregates, "orders": orders, "combiner": rng.random() < 0.7})

    def _orders(self, node: Node, stream: Stream) -> dict[str, tuple[str, ...]]:
        """Return the columns that decide the order of rows, for each aggregate that has one: then all that are read, by name."""
        orders: dict[str, tuple[str, ...]] = node.args.get("orders", {})
        read = {column for _, what, column in node.args["aggregates"] if column is not None and what != "count"}
        ties = sorted({*read, *(name for some in orders.values() for name in some)} - {*node.args["keys"]})
        return {name: tuple(dict.fromkeys([*some, *ties])) for name, some in orders.items()}

    def _columns(self, node: Node, stream: Stream) -> list[Column | None]:
        return [None if column is None else stream.column(column) for _, _, column in node.args["aggregates"]]

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        stream, keys = inputs[0], node.args["keys"]
        results = zip(node.args["aggregates"], self._columns(node, stream), strict=True)
        columns = (*map(stream.column, keys), *(result_column(name, what, column) for (name, what, _), column in results))
        return {"output": Stream(columns, True, unique_by(keys, columns))}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        options: dict[str, dict[str, Any]] = {
            name: {"order_by" if what in ("first", "last") else "by": node.args["orders"][name]} if what in OF_ROWS else SHARE
            for name, what, _ in node.args["aggregates"]
            if what in (*OF_ROWS, "quantile")
        }
        aggregates = {
            name: agg.count() if column is None else getattr(agg, what)(column, **options.get(name, {}))
            for name, what, column in node.args["aggregates"]
        }
        return GroupBy(*node.args["keys"], **aggregates, combiner=node.args["combiner"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream = inputs[0]
        aggregates = [(what, None if column is None else stream.place(column)) for _, what, column in node.args["aggregates"]]
        orders = self._orders(node, stream)
        places = [stream.places(orders.get(name, ())) for name, _, _ in node.args["aggregates"]]
        return {"output": reference.grouped(rows[0], stream.places(node.args["keys"]), aggregates, places)}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        keys, aggregates = node.args["keys"], node.args["aggregates"]
        orders = self._orders(node, inputs[0])
        made = [
            f'{row_sql(what, column, orders[name]) if what in OF_ROWS else aggregate_sql(what, column)} AS "{name}"'
            for (name, what, _), column in zip(aggregates, self._columns(node, inputs[0]), strict=True)
        ]
        by = ", ".join(str(place + 1) for place in range(len(keys)))
        end = f"GROUP BY {by}" if keys else "HAVING count(*) > 0"  # without rows there is not even one group
        return {"output": f"SELECT {', '.join([*(quoted([key]) for key in keys), *made])} FROM {tables[0]} {end}"}


_SECOND = 1_000_000
_MINUTE, _DAY = 60 * _SECOND, 86_400 * _SECOND


class Windowing(Grouping):
    """`GroupBy` with a time window in the key, of rows with a date or a time: windows side by side, or overlapping.

    Rows with a window beyond the years that Python has are bad rows, which are skipped.
    """

    def draw(self, drawing: Drawing) -> Node | None:
        node, rng = super().draw(drawing), drawing.rng
        if node is None:
            return None
        stream = drawing.streams[node.inputs[0]]
        times = stream.of_kind("day", "time", "zoned")
        read = {name for _, _, name in node.args["aggregates"]} | {each for some in node.args["orders"].values() for each in some}
        if not times or read & {"window_start", "window_end"}:
            return None
        column = rng.choice(times)
        sizes = [_DAY, 3 * _DAY, 400 * _DAY]
        if stream.column(column).kind != "day":
            sizes += [10 * _MINUTE, 60 * _MINUTE, 7 * _SECOND + 1]
        size = rng.choice(sizes)
        unit = _DAY if stream.column(column).kind == "day" else 1
        slide = max(unit, size // unit * 2 // rng.choice([2, 2, 4, 5]) * unit)
        offset = rng.choice([0, 0, 1, -1, 4]) * rng.choice([_DAY, max(unit, _MINUTE)])
        keys = [name for name in node.args["keys"] if name not in ("window_start", "window_end")]
        keys.insert(rng.randint(0, len(keys)), "window_start")
        args = {**node.args, "keys": tuple(keys), "column": column, "size": size, "slide": min(slide, size), "offset": offset}
        return attrs.evolve(node, kind="windows", args=args)

    def _with_windows(self, node: Node, stream: Stream) -> Stream:
        """Return the stream of rows with the columns of their windows."""
        time = stream.column(node.args["column"])
        others = tuple(column for column in stream.columns if column.name not in ("window_start", "window_end"))
        bounds = tuple(attrs.evolve(time, name=name) for name in ("window_start", "window_end"))
        return attrs.evolve(stream, columns=(*others, *bounds))

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        keyed = super().streams(self._keyed(node), [self._with_windows(node, inputs[0])])["output"]
        unique = unique_by(node.args["keys"], keyed.columns)
        return {"output": attrs.evolve(keyed, unique=unique)}

    def _keyed(self, node: Node) -> Node:
        """Return the node that groups rows which have both columns of a window."""
        keys = [
            each for name in node.args["keys"] for each in (("window_start", "window_end") if name == "window_start" else (name,))
        ]
        return attrs.evolve(node, args={**node.args, "keys": tuple(keys)})

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        seconds = [dt.timedelta(microseconds=args[name]) for name in ("size", "slide", "offset")]
        time_window = window(args["column"], seconds[0], slide=seconds[1], offset=seconds[2])
        grouped = super().operator(node, inputs)
        assert isinstance(grouped, GroupBy)
        keys = [time_window if name == "window_start" else name for name in args["keys"]]
        return GroupBy(*keys, **grouped.aggregates, combiner=args["combiner"], on_error="skip")

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        args, stream = node.args, inputs[0]
        at = stream.place(args["column"])
        kept = stream.places([column.name for column in stream.columns if column.name not in ("window_start", "window_end")])

        def with_windows(row: Row) -> list[Row]:
            windows = reference.windows_of(row[at], args["size"], args["slide"], args["offset"])
            return [(*reference.picked(row, kept), *each) for each in windows or ()]

        some = reference.flat_map(rows[0], with_windows)
        return super().rows(self._keyed(node), [self._with_windows(node, stream)], [some])

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        args = node.args
        kind = inputs[0].column(args["column"]).of.sql
        size, slide, offset = (f"to_microseconds({args[name]})" for name in ("size", "slide", "offset"))
        time = f'"{args["column"]}"'
        zone = "TIMESTAMPTZ" if kind == "TIMESTAMPTZ" else "TIMESTAMP"
        last = f"time_bucket({slide}, {time}::{zone}, {zone} '1970-01-01 00:00:00' + {offset})"
        most = -(-args["size"] // args["slide"])
        every = f"list_transform(range({most}), lambda nth_: {last} - to_microseconds(nth_ * {args['slide']}))"
        inside = f"list_filter({every}, lambda start_: start_ + {size} > {time}::{zone})"
        bounds = f"{zone} '0001-01-01 00:00:00'", f"{zone} '9999-12-31 23:59:59.999999'"
        held = f"list_min({inside}) >= {bounds[0]} AND list_max({inside}) + {size} <= {bounds[1]}"
        others = [quoted([column.name]) for column in inputs[0].columns if column.name not in ("window_start", "window_end")]
        each = f"unnest(CASE WHEN {time} IS NULL THEN [NULL] ELSE {inside} END) AS start_"
        starts = f"SELECT {', '.join([*others, each])} FROM {tables[0]}"
        both = f"start_::{kind} AS window_start, (start_ + {size})::{kind} AS window_end"
        table = f"(SELECT * EXCLUDE (start_), {both} FROM ({starts} WHERE {time} IS NULL OR ({held})))"
        return super().sql(self._keyed(node), [self._with_windows(node, inputs[0])], [table])


_OBJECTS = {"int": int, "text": str, "day": dt.date, "bool": bool}
"""The kinds of columns whose values are keys or results of `Tumbling`, which have the types of its records."""


class Tumbled(Windowing):
    """`Tumbling` without a lateness: one aggregate by a key, or of all records, whose results are records `WindowValue`."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Tumbling,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        times = stream.of_kind("day", "time", "zoned")
        if not times:
            return None
        time = rng.choice(times)
        taken = (time, "window_start", "window_end", "value", "count", "start", "stop")
        keys = [name for name in stream.of_kind(*_OBJECTS) if name not in taken]
        columns = [stream.column(name) for name in keys]
        column = rng.choice(columns) if columns else None
        functions = [what for what in functions_of(column) if what not in ("count", "mean")] if column else []
        what = rng.choice(["count", *functions])
        args = {
            "keys": (rng.choice(keys), "window_start") if keys and rng.random() < 0.8 else ("window_start",),
            "aggregates": [("value", what, None if what == "count" else column and column.name)],
            "orders": {},
            "column": time,
            "size": (size := rng.choice([_DAY, 3 * _DAY, 400 * _DAY, 10 * _MINUTE])),
            "slide": size,
            "offset": 0,
            "is_function": rng.random() < 0.4,
        }
        return Node("tumbling", (name,), args)

    def _bare(self, node: Node, stream: Stream) -> tuple[Stream, Node]:
        """Return the stream with times of microseconds, which have a null where the record is a bad one, and the node for it."""
        time = attrs.evolve(stream.column(node.args["column"]), kind="time")
        aggregates = [*node.args["aggregates"], ("count", "count", node.args["aggregates"][0][2])]
        columns = tuple(time if column.name == time.name else column for column in stream.columns)
        return attrs.evolve(stream, columns=columns), attrs.evolve(node, args={**node.args, "aggregates": aggregates})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        stream, bare = self._bare(node, inputs[0])
        *key, _, _, value, count = super().streams(bare, [stream])["output"].columns
        has_key = attrs.evolve(key[0], name="key") if key else Column("key", "int")
        bounds = (Column("start", "time", has_nulls=False), Column("stop", "time", has_nulls=False))
        columns = (has_key, *bounds, value, count, Column("firing", "int", has_nulls=False))
        kinds = f"WindowValue of {has_key.kind} and {value.kind}"
        return {"output": Stream(columns, True, unique_by(["key", "start"], columns), kinds)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args, stream = node.args, inputs[0]
        (_, what, of), names = args["aggregates"][0], [name for name in args["keys"] if name != "window_start"]
        key: Any = int | None if not names else _OBJECTS[stream.column(names[0]).kind] | None
        value: Any = int if of is None else _OBJECTS[stream.column(of).kind] | None

        def named(name: str) -> Any:
            return Field(name) if args["is_function"] else name

        return Tumbling[Any, key, value](
            dt.timedelta(microseconds=args["size"]),
            time=named(args["column"]),
            by=named(names[0]) if names else None,
            aggregate=what,
            of=None if of is None else named(of),
            on_error="skip",
        )

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        at = inputs[0].place(node.args["column"])

        def with_time(row: Row) -> list[Row]:
            return [] if row[at] is None else [(*row[:at], as_time(row[at]), *row[at + 1 :])]

        stream, bare = self._bare(node, inputs[0])
        found = super().rows(bare, [stream], [reference.flat_map(rows[0], with_time)])["output"]
        has_key = len(node.args["keys"]) > 1
        return {"output": Rows({(*(row if has_key else (None, *row)), 0): n for row, n in found.items()})}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        stream, bare = self._bare(node, inputs[0])
        time = f'"{node.args["column"]}"'
        utc = f"({time} AT TIME ZONE 'UTC')" if inputs[0].column(node.args["column"]).kind == "zoned" else time
        table = f"(SELECT * REPLACE ({utc}::TIMESTAMP AS {time}) FROM {tables[0]} WHERE {time} IS NOT NULL)"
        grouped = super().sql(bare, [stream], [table])["output"]
        names = [name for name in node.args["keys"] if name != "window_start"]
        key = f'"{names[0]}"' if names else "NULL::BIGINT"
        results = "window_start AS start, window_end AS stop, value, count, 0::BIGINT AS firing"
        return {"output": f"SELECT {key} AS key, {results} FROM ({grouped})"}


@attrs.frozen
class Field:
    """A function that returns a field of a record."""

    name: str

    def __call__(self, record: Any) -> Any:
        return field_of(record, self.name)


def as_time(value: Any) -> dt.datetime:
    """Return a date or a datetime as a datetime of UTC without a zone."""
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return value.replace(tzinfo=None)


TOTALS: dict[str, Any] = {"count": Count, "sum": Sum, "min": Min, "max": Max, "mean": Average}


class Totalling(Grouping):
    """`Count`, `Sum`, `Min`, `Max` and `Average`: `GroupBy` with one aggregate.

    Results are records `KeyValue` where one column is named, and rows where a tuple names several, or one.
    """

    operators: ClassVar[tuple[type[Operator], ...]] = tuple(TOTALS.values())

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        keys = drawing.some(stream.plain, 1, 2)
        column = rng.choice(stream.columns)
        function = rng.choice(functions_of(column))
        makes_rows = len(keys) > 1 or rng.random() < 0.2
        if not keys or (makes_rows and "value" in keys):
            return None
        aggregates = [("value", function, None if function == "count" else column.name)]
        args = {"keys": keys, "rows": makes_rows, "aggregates": aggregates, "combiner": rng.random() < 0.7}
        return Node("total", (name,), args)

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        if node.args["rows"]:
            return super().streams(node, inputs)
        key, value = super().streams(node, inputs)["output"].columns
        columns = (attrs.evolve(key, name="key"), value)
        return {"output": Stream(columns, True, unique_by(["key"], columns), f"KeyValue of {key.kind} and {value.kind}")}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        (_, what, column), keys = node.args["aggregates"][0], node.args["keys"]
        of = [] if column is None else [column]
        by = tuple(keys) if node.args["rows"] else keys[0]
        made: Operator = TOTALS[what](*of, by=by, combiner=node.args["combiner"])
        return made

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        if node.args["rows"]:
            return super().sql(node, inputs, tables)
        (_, what, _), (key,), (column,) = node.args["aggregates"][0], node.args["keys"], self._columns(node, inputs[0])
        return {"output": f'SELECT "{key}" AS key, {aggregate_sql(what, column)} AS value FROM {tables[0]} GROUP BY 1'}


class Differing(NodeKind):
    """`Distinct` by some columns or all."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Distinct,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        keys = drawing.some(stream.plain, 0 if stream.is_plain else 1, 3)
        if not keys and not stream.is_plain:
            return None
        return Node("distinct", (name,), {"keys": keys, "combiner": rng.random() < 0.7})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        keys = node.args["keys"] or names_of(inputs[0].columns)
        columns = tuple(map(inputs[0].column, keys))
        return {"output": Stream(columns, inputs[0].changes, unique_by(keys, columns))}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        return Distinct(*node.args["keys"], combiner=node.args["combiner"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        keys = node.args["keys"] or names_of(inputs[0].columns)
        return {"output": reference.distinct(rows[0], inputs[0].places(keys))}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        keys = node.args["keys"] or names_of(inputs[0].columns)
        return {"output": f"SELECT DISTINCT {quoted(keys)} FROM {tables[0]}"}


class Deduplicating(NodeKind):
    """`Deduplicate`: of whole rows, or by a key, the first or the last row."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Deduplicate,)
    takes_records: ClassVar[bool] = True

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream, combiner = drawing.streams[name], rng.random() < 0.7
        if rng.random() < 0.3 or not stream.is_plain or stream.is_loose:
            return Node("deduplicate", (name,), {"by": (), "combiner": combiner})
        by, order_by = drawing.some(stream.plain, 1, 2), drawing.some(stream.plain, 0, 2)
        keep = rng.choice(["first", "last"])
        return Node("deduplicate", (name,), {"by": by, "order_by": order_by, "keep": keep, "combiner": combiner})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        stream, by = inputs[0], node.args["by"]
        unique = unique_by(by or names_of(stream.columns), stream.columns)
        return {"output": attrs.evolve(stream, changes=bool(by) or stream.changes, unique=unique)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        if not args["by"]:
            return Deduplicate[Any](combiner=args["combiner"])
        return Deduplicate[Any](by=args["by"], keep=args["keep"], order_by=args["order_by"] or None, combiner=args["combiner"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream, args = inputs[0], node.args
        if not args["by"]:
            return {"output": Rows(dict.fromkeys(rows[0], 1))}
        by, order_by = stream.places(args["by"]), stream.places(args["order_by"])
        return {"output": reference.first_of_each(rows[0], by, order_by, stream.ties, last=args["keep"] == "last")}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        stream, args = inputs[0], node.args
        if not args["by"]:
            return {"output": f"SELECT DISTINCT * FROM {tables[0]}"}
        columns = [*map(stream.column, args["order_by"]), *(stream.columns[at] for at in stream.ties)]
        order = order_sql([(column, args["keep"] == "last") for column in columns])
        window = f"row_number() OVER (PARTITION BY {quoted(args['by'])} ORDER BY {order})"
        return {"output": f"SELECT * FROM {tables[0]} QUALIFY {window} = 1"}


def order_sql(columns: Sequence[tuple[Column, bool]]) -> str:
    """Return the order of columns, each with whether it descends: NaN and then nulls come last in either case."""
    parts = []
    for column, descends in columns:
        name = f'"{column.name}"'
        if column.of.is_float:
            parts.append(f"{name} IS NULL, coalesce(isnan({name}), false)")
        parts.append(f"{name} {'DESC' if descends else 'ASC'} NULLS LAST")
    return ", ".join(parts)


def order_text(order: Sequence[tuple[str, bool]]) -> list[str]:
    """Return columns, each with whether it descends, as operators take them."""
    return [f"-{name}" if descends else name for name, descends in order]


def order_of_rows(order: Sequence[tuple[str, bool]], stream: Stream, nulls: str) -> str:
    """Return the same in SQL, and then all columns of a stream. `nulls`: first or last."""
    terms = [f'"{name}" {"DESC" if descends else "ASC"} NULLS {nulls}' for name, descends in order]
    return ", ".join([*terms, order_sql([(stream.columns[at], False) for at in stream.ties])])


class Topping(NodeKind):
    """`TopN`, of each key or of all."""

    operators: ClassVar[tuple[type[Operator], ...]] = (TopN,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        if not stream.is_plain:
            return None
        args = {"n": rng.randint(1, 4), "of": rng.choice(stream.plain).name, "by": drawing.some(stream.plain, 0, 2)}
        order = [(column, rng.random() < 0.5) for column in drawing.some(stream.plain, 1, 2)] if rng.random() < 0.4 else []
        return Node("top", (name,), {**args, "order": order, "smallest": rng.random() < 0.5, "combiner": rng.random() < 0.7})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return {"output": attrs.evolve(inputs[0], changes=True)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        if args["order"]:
            return TopN[Any](args["n"], by=args["by"] or None, order_by=order_text(args["order"]), combiner=args["combiner"])
        return TopN[Any](args["n"], args["of"], by=args["by"] or None, smallest=args["smallest"], combiner=args["combiner"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream, args = inputs[0], node.args
        if args["order"]:
            order = [(stream.place(name), descends) for name, descends in args["order"]]
            return {"output": reference.top_in_order(rows[0], args["n"], stream.places(args["by"]), order, stream.ties)}
        places = stream.place(args["of"]), stream.places(args["by"]), stream.ties
        return {"output": reference.top(rows[0], args["n"], *places, smallest=args["smallest"])}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        stream, args = inputs[0], node.args
        by = f"PARTITION BY {quoted(args['by'])} " if args["by"] else ""
        if args["order"]:
            order = order_of_rows(args["order"], stream, "LAST")
            return {"output": f"SELECT * FROM {tables[0]} QUALIFY row_number() OVER ({by}ORDER BY {order}) <= {args['n']}"}
        of = stream.column(args["of"])
        has_value = f'"{of.name}" IS NOT NULL' + (f' AND NOT isnan("{of.name}")' if of.of.is_float else "")
        order = order_sql([(of, not args["smallest"]), *((stream.columns[at], False) for at in stream.ties)])
        qualified = f"row_number() OVER ({by}ORDER BY {order}) <= {args['n']}"
        return {"output": f"SELECT * FROM {tables[0]} WHERE {has_value} QUALIFY {qualified}"}


class Sorting(NodeKind):
    """`Sort` by some columns, with a limit or without: which rows stand. Their order in files has tests of its own."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Sort,)

    def draw(self, drawing: Drawing) -> Node | None:
        name, rng = drawing.stream(), drawing.rng
        stream = drawing.streams[name]
        if not stream.is_plain:
            return None
        by = [(column, rng.random() < 0.5) for column in drawing.some(stream.plain, 1, 2)]
        args = {"by": by, "limit": rng.choice([None, 1, 2, 4]), "nulls": rng.choice(["first", "last"])}
        return Node("sort", (name,), {**args, "combiner": rng.random() < 0.7})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        return {"output": attrs.evolve(inputs[0], changes=True)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        return Sort[Any](order_text(args["by"]), limit=args["limit"], nulls=args["nulls"], combiner=args["combiner"])

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        stream, args = inputs[0], node.args
        order = [(stream.place(name), descends) for name, descends in args["by"]]
        first = args["nulls"] == "first"
        return {"output": reference.first_in_order(rows[0], args["limit"], order, stream.ties, nulls_first=first)}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        stream, args = inputs[0], node.args
        order = order_of_rows(args["by"], stream, args["nulls"])
        limit = "" if args["limit"] is None else f" LIMIT {args['limit']}"
        return {"output": f"SELECT * FROM {tables[0]} ORDER BY {order}{limit}"}


HOWS = ("inner", "left", "right", "full", "semi", "anti")
_INTEGERS = ("tiny", "unsigned", "short", "int", "wide")


class Joining(NodeKind):
    """`HashJoin` of rows, of every kind."""

    operators: ClassVar[tuple[type[Operator], ...]] = (HashJoin,)
    ports: ClassVar[tuple[str, ...]] = ("left", "right")

    def draw(self, drawing: Drawing) -> Node | None:
        rng = drawing.rng
        names = drawing.stream(), drawing.stream()
        left, right = (drawing.streams[name] for name in names)
        how = rng.choice(HOWS)
        is_alike = _INTEGERS if how not in ("right", "full") else ()
        pairs = [
            (one.name, other.name)
            for one in left.plain
            for other in right.plain
            if one.kind == other.kind or (one.kind in is_alike and other.kind in is_alike)
        ]
        if not pairs:
            return None
        key = [rng.choice(pairs)]
        more = [pair for pair in pairs if pair[0] != key[0][0] and pair[1] != key[0][1]]
        if more and rng.random() < 0.3:
            key.append(rng.choice(more))
        by, right_by = zip(*key, strict=True)
        node = Node("join", names, {"how": how, "by": by, "right_by": right_by})
        columns = names_of(self.streams(node, [left, right])["output"].columns)
        return node if len(columns) == len(set(columns)) else None  # other names need another suffix

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        (left, right), args = inputs, node.args
        changes, how = left.changes or right.changes, args["how"]
        if how in ("semi", "anti"):
            return {"output": attrs.evolve(left, changes=True, record="row")}
        others = [column for column in right.columns if column.name not in args["right_by"]]
        names = names_of(left.columns)
        lefts = [_missing(column) if how in ("right", "full") else column for column in left.columns]
        rights = [
            attrs.evolve(
                _missing(column) if how in ("left", "full") else column,
                name=f"{column.name}_right" if column.name in names else column.name,
            )
            for column in others
        ]
        if how in ("right", "full"):
            keys = dict(zip(args["by"], map(right.column, args["right_by"]), strict=True))
            lefts = [_either(column, keys[column.name]) if column.name in keys else column for column in lefts]
        return {"output": Stream((*lefts, *rights), changes or how != "inner")}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args = node.args
        declared = ", ".join(f"{column.name}: {column.of.text}" for column in inputs[1].columns)
        return HashJoin[Any, Any, Any](args["by"], right_by=args["right_by"], how=args["how"], right_columns=declared)

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        (left, right), args = inputs, node.args
        by, right_by = left.places(args["by"]), right.places(args["right_by"])
        widths = len(left.columns), len(right.columns)
        return {"output": reference.joined(rows[0], rows[1], by, right_by, args["how"], widths)}

    def _condition(self, node: Node) -> str:
        pairs = zip(node.args["by"], node.args["right_by"], strict=True)
        return " AND ".join(f'l."{one}" = r."{other}"' for one, other in pairs)

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        (left, right), args = inputs, node.args
        on = self._condition(node)
        if args["how"] in ("semi", "anti"):
            exists = f"EXISTS (SELECT * FROM {tables[1]} r WHERE {on})"
            return {"output": f"SELECT * FROM {tables[0]} l WHERE {'NOT ' if args['how'] == 'anti' else ''}{exists}"}
        keys = dict(zip(args["by"], args["right_by"], strict=True))
        columns = [
            f'coalesce(l."{name}", r."{keys[name]}") AS "{name}"'
            if name in keys and args["how"] in ("right", "full")
            else f'l."{name}"'
            for name in names_of(left.columns)
        ]
        results = names_of(self.streams(node, inputs)["output"].columns)[len(columns) :]
        others = [name for name in names_of(right.columns) if name not in args["right_by"]]
        columns += [f'r."{name}" AS "{result}"' for name, result in zip(others, results, strict=True)]
        return {"output": f"SELECT {', '.join(columns)} FROM {tables[0]} l {args['how'].upper()} JOIN {tables[1]} r ON {on}"}


class Matching(Joining):
    """`Join` with a key or without one, and a further condition: a column of the left side is at most one of the right side."""

    operators: ClassVar[tuple[type[Operator], ...]] = (Join,)

    def draw(self, drawing: Drawing) -> Node | None:
        node = super().draw(drawing)
        if node is None:
            return None
        left, right = (drawing.streams[name] for name in node.inputs)
        args = {**node.args}
        if drawing.rng.random() < 0.3:
            args |= {"by": (), "right_by": ()}
        pairs = [
            (one.name, other.name)
            for one in left.columns
            for other in right.columns
            if one.kind == other.kind
            and one.kind in (*_INTEGERS, "text", "day", "decimal")
            and other.name not in args["right_by"]
        ]
        node = attrs.evolve(node, kind="match", args={**args, "pair": drawing.rng.choice(pairs) if pairs else None})
        joined = attrs.evolve(node, args={**node.args, "how": "inner"})  # the condition is about the columns of both sides
        columns = names_of(self.streams(joined, [left, right])["output"].columns)
        return node if len(columns) == len(set(columns)) else None

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        args, (left, right), where = node.args, inputs, None
        if args["pair"] is not None:
            one, other = args["pair"]
            where = col(one) <= col(f"{other}_right" if other in names_of(left.columns) else other)
        declared = ", ".join(f"{column.name}: {column.of.text}" for column in right.columns)
        return Join(dict(zip(args["by"], args["right_by"], strict=True)), args["how"], where, right_columns=declared)

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        (left, right), args = inputs, node.args

        def holds(row: Row, other: Row) -> bool:
            if args["pair"] is None:
                return True
            one, another = row[left.place(args["pair"][0])], other[right.place(args["pair"][1])]
            return one is not None and another is not None and bool(one <= another)

        by, right_by = left.places(args["by"]), right.places(args["right_by"])
        widths = len(left.columns), len(right.columns)
        return {"output": reference.joined(rows[0], rows[1], by, right_by, args["how"], widths, holds)}

    def _condition(self, node: Node) -> str:
        pair = node.args["pair"]
        some = [super()._condition(node)] if node.args["by"] else []
        return " AND ".join([*some, *([] if pair is None else [f'l."{pair[0]}" <= r."{pair[1]}"'])]) or "true"


def _missing(column: Column) -> Column:
    return attrs.evolve(column, has_nulls=True)


def _either(column: Column, other: Column) -> Column:
    """Return the column of a key that comes from either side; of rows of one side only, it has the nulls of that side."""
    return attrs.evolve(column, has_nulls=True, is_finite=column.is_finite and other.is_finite)


@attrs.frozen
class Combine:
    """A function of a record of each side: the number of the left one, unless there is none, and the key of the other."""

    record: str

    def __call__(self, left: Any, right: Any) -> Any:
        """Return a pair."""
        number = None if left is None else field_of(left, "n")
        return PAIRS[self.record](None if right is None else field_of(right, "key"), number)


class Combining(NodeKind):
    """`HashJoin` of records, which a function combines."""

    operators: ClassVar[tuple[type[Operator], ...]] = (HashJoin,)
    ports: ClassVar[tuple[str, ...]] = ("left", "right")

    def draw(self, drawing: Drawing) -> Node | None:
        pairs = [name for name, stream in drawing.streams.items() if stream.record in PAIRS]
        if not pairs:
            return None
        names = drawing.rng.choice(pairs), drawing.rng.choice(pairs)
        record = drawing.streams[names[1]].record
        return Node("combine", names, {"how": drawing.rng.choice(HOWS[:4]), "by": "n", "record": record})

    def streams(self, node: Node, inputs: Sequence[Stream]) -> dict[str, Stream]:
        changes = any(stream.changes for stream in inputs) or node.args["how"] != "inner"
        return {"output": stream_of_pairs(node.args["record"], changes)}

    def operator(self, node: Node, inputs: Sequence[Stream]) -> Operator:
        left, right, record = PAIRS[inputs[0].record], PAIRS[inputs[1].record], PAIRS[node.args["record"]]
        return HashJoin[left, right, record]("n", how=node.args["how"], combine=Combine(node.args["record"]))

    def rows(self, node: Node, inputs: Sequence[Stream], rows: Sequence[Rows]) -> dict[str, Rows]:
        marked = [reference.flat_map(each, lambda row: [(*row, True)]) for each in rows]  # tells a side that is there
        results = reference.joined(marked[0], marked[1], [1], [1], node.args["how"], (3, 3))

        def pair(row: Any) -> Any:
            _, n, has_left, key, _ = row
            return [(key, n if has_left else None)]

        return {"output": reference.flat_map(results, pair)}

    def sql(self, node: Node, inputs: Sequence[Stream], tables: Sequence[str]) -> dict[str, str]:
        return {"output": f"SELECT r.key, l.n FROM {tables[0]} l {node.args['how'].upper()} JOIN {tables[1]} r ON l.n = r.n"}
