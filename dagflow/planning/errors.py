"""Errors of a DAG that cannot be planned: partitions, forms and DataFrame operators."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import DagError, RunError
from dagflow.errors.base import error


@error("DF020")
class NotSupported(DagError, NotImplementedError):
    """This version does not run such a DAG."""

    what: str
    where: str
    help: str
    template = "{what} ({where})\n  help: {help}"
    example = {
        "what": "operator 'sort' works on DataFrames, which the local runner does not do",
        "where": "app.py:12",
        "help": "use --runner spark",
    }


@error("DF022")
class MergeMissing(DagError, TypeError):
    """An operator in partitions keeps State, and does not say how the values of several partitions are merged."""

    operator: str
    type: str
    states: tuple[str, ...]
    lines: tuple[str, ...]
    where: str
    example = {
        "operator": "total",
        "type": "Total",
        "states": ("sum",),
        "lines": ("sum = State(0, merge=sum)",),
        "where": "app.py:12",
    }

    def message(self) -> str:
        lines = [
            f"operator {self.operator!r} keeps State {', '.join(map(repr, self.states))} in partitions, whose number changes from window",
            f"  to window: it must say how the values of several become one ({self.where})",
            f"  help: in class {self.type}, write",
            *(f"    {line}" for line in self.lines),
        ]
        if any("merge=merged" in line for line in self.lines):
            lines.append("  where merged(values) makes one value of a list of them")
        return "\n".join(lines)


@error("DF024")
class MapStateNotKeyed(DagError, TypeError):
    """An operator in partitions has a MapState, but its input is not partitioned by key."""

    operator: str
    type: str
    states: tuple[str, ...]
    lines: tuple[str, ...]
    where: str
    template = (
        "operator {operator!r} keeps MapState {states!r} in partitions, but its input is not partitioned by key ({where})\n"
        "  help: partition it, so that each partition has the entries of its keys: "
        "InputPort[…](partition_by=…) in class {type};\n"
        "        or keep each whole, as a State, and say how the values of several partitions become one:\n"
        "    {lines:\n    }\n"
        "  where merged(values) makes one value of a list of them"
    )
    example = {
        "operator": "total",
        "type": "Total",
        "states": ("sums",),
        "lines": ("sums = State(dict, merge=merged)",),
        "where": "app.py:12",
    }


@error("DF040")
class UnrelatedPartitions(DagError):
    """An operator is to be parallel with operators whose partitions are not related.

    Attributes:
        ports: its input ports, each with the operator whose partitions its records come from.
    """

    operator: str
    ports: tuple[tuple[str, str], ...]
    where: str
    example = {"operator": "union", "ports": (("union.input_0", "reader"), ("union.input_1", "events")), "where": "app.py:12"}

    def message(self) -> str:
        lines = "\n".join(f"  {port}  gets records from the partitions of {head!r}" for port, head in self.ports)
        one = self.ports[-1][0]
        return (
            f"operator {self.operator!r} cannot be parallel with operators whose partitions are not related ({self.where})\n{lines}\n"
            f"  help: let an exchange bring them together: dag.set_attributes(operator, partition_by=…) where equal keys must meet,\n"
            f"        partitioner=StatelessPartitioner(n) where they need not; or partition_parallel=False for port {one}"
        )


@error("DF045")
class ColumnsUnknown(DagError):
    """The columns of a port of a DataFrame operator are not declared."""

    operator: str
    class_name: str
    port: str
    type: str
    where: str
    template = (
        "operator {operator!r} works on DataFrames, but nothing says the columns of its port {port}: {type} has none ({where})\n"
        "  help: name the classes of its records, {class_name}[In, Out](…), or give the columns: {port}_schema={{'name': "
        "'string', …}}"
    )
    example = {"operator": "sort", "class_name": "SparkOperator", "port": "input", "type": "Any", "where": "app.py:12"}


@error("DF046")
class BodyPartitioned(DagError):
    """A DataFrame operator has settings for partitions, which Spark decides itself."""

    operator: str
    asked: str
    where: str
    template = (
        "operator {operator!r} cannot have {asked}: Spark itself partitions the rows of a DataFrame operator ({where})\n"
        "  help: remove it. To bring equal keys together, call frame.repartition(…) in the body"
    )
    example = {"operator": "sort", "asked": "partition_by", "where": "app.py:12"}


@error("DF048")
class TypeNotInSpark(DagError, TypeError):
    """A column of a DataFrame operator has a type that Spark does not support.

    Attributes:
        what: `its input` or `its declared output`.
        instead: a type that Spark has and that holds the same values; empty where there is none.
    """

    operator: str
    what: str
    column: str
    type: str
    instead: str = ""
    where: str = ""
    example = {
        "operator": "sort",
        "what": "its input",
        "column": "size",
        "type": "uint64",
        "instead": "decimal128(20, 0)",
        "where": "app.py:12",
    }

    def message(self) -> str:
        place = f" ({self.where})" if self.where else ""
        advice = f"declare {self.instead}" if self.instead else "convert the column before, or leave it out"
        return (
            f"operator {self.operator!r}: {self.what} has column {self.column!r} as {self.type}, which Spark does not support{place}\n"
            f"  help: {advice}" + (": what arrives is converted" if self.instead and self.what == "its input" else "")
        )


@error("DF058")
class ScopeNotWritten(DagError):
    """The results of operators would cover a part of the input only: that of one window, or of one launch.

    Attributes:
        operators: the name, the class and the line of each.
        why: what makes it a part.
    """

    CONTINUOUS: ClassVar[str] = "a continuous launch cuts its input into windows by time and size"
    LAUNCHED: ClassVar[str] = "earlier launches have read other input, which is not read again"
    operators: tuple[tuple[str, str, str], ...]
    why: str
    example = {"operators": (("count", "Count", "app.py:12"),), "why": LAUNCHED}

    def message(self) -> str:
        lines = [f"results would cover a part of the input only: {self.why}"]
        lines += [f"  operator {name!r} ({kind}, {where})" for name, kind, where in self.operators]
        kind = self.operators[0][1]
        return "\n".join(
            [
                *lines,
                f'  help: for results of each part, write scope="window": {kind}(…, scope="window"), or in a class of your own the line',
                '        scope = "window". For results of all input, read it in one launch (dagflow launch --fresh), or keep what is',
                "        needed over windows in a MapState",
            ]
        )


@error("DF080")
class EmissionMissing(DagError):
    """A continuous launch would write results whole with each window: nothing says when they are emitted.

    Attributes:
        sinks: the name, the class and the line of each.
    """

    sinks: tuple[tuple[str, str, str], ...]
    example = {"sinks": (("totals", "CsvWriter", "app.py:12"),)}

    def message(self) -> str:
        lines = ["a result would be written whole with each window of a continuous launch"]
        lines += [f"  sink {name!r} ({kind}, {where})" for name, kind, where in self.sinks]
        return "\n".join(
            [
                *lines,
                "  help: say how often it is emitted: --every 1min; --every 0 writes it with each window. Tables with",
                '        mode="upsert" and changelogs get only what has changed, and where rows stay, mode="append" does',
            ]
        )


@error("DF801", kw_only=True, is_fatal=True)
class NotHeld(RunError, TypeError):
    """A record of a changing stream cannot be kept until the next emission point."""

    type: str
    record: str
    template = (
        "a {type} cannot be kept until the next emission point, when its stream reaches the sink: {record}\n"
        "  help: put a Map before the sink that makes dicts of plain values, or records of an attrs class: def row(record) -> Row"
    )
    example = {"type": "set", "record": "{1, 2}"}


@error("DF803", kw_only=True, is_fatal=True)
class RowsShareKeys(RunError, ValueError):
    """Rows of a changing stream stand that are equal in the columns by which a sink would take them back."""

    keys: tuple[str, ...]
    rows: int
    row: str
    template = (
        "{rows} rows stand with the same {keys}, by which the sink would find them: one is {row}\n"
        "  help: name keys that identify a row: the columns that the rows are grouped by, for example;\n"
        "  or keep one row of each key: put Deduplicate(by=…) before the sink; or, of a table, find rows by all columns: keys='*'"
    )
    example = {"keys": ("country",), "rows": 2, "row": "{'country': 'se', 'shop': 'a', 'sold': 4}"}
