"""Errors of a DAG: one class per cause. Each names both ends and the user's lines."""

from __future__ import annotations

from dagflow.errors import DagError
from dagflow.errors.base import error


@error("DF010")
class DagErrors(DagError):
    """Several problems of one DAG, reported together."""

    problems: tuple[DagError, ...]

    def message(self) -> str:
        head = f"{len(self.problems)} problems in the DAG"
        return "\n\n".join([head, *(f"{p.code} {p.message()}" for p in self.problems)])


@error("DF001")
class DuplicateName(DagError):
    """Two operators, modules or streams share a name."""

    kind: str
    name: str
    first: str
    second: str
    template = "two {kind}s are called {name!r}\n  first   {first}\n  second  {second}\n  help: give one of them another name"
    example = {"kind": "operator", "name": "reader", "first": "app.py:12", "second": "app.py:15"}


@error("DF002")
class EmptyName(DagError):
    """An operator, module or stream has no usable name."""

    kind: str
    name: object
    where: str
    example = {"kind": "operator", "name": "", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"{self.name!r} is not a valid name for a{'n' if self.kind[0] in 'aeiou' else ''} {self.kind} ({self.where})\n"
            "  help: a name is not empty, and consists of letters, digits, '_', '-' and blanks"
        )


@error("DF004")
class ForeignPort(DagError):
    """A stream names a port of an operator that is not in this DAG.

    `kind`: what names the port, a stream or something else; `is_own`: true for a port of the module that fills this DAG.
    """

    stream: str
    port: str
    where: str
    kind: str = "stream"
    is_own: bool = False
    example = {"stream": "lines", "port": "reader.messages", "where": "app.py:12"}

    def message(self) -> str:
        if self.is_own:
            name = self.port.rpartition(".")[2]
            return (
                f"{self.kind} {self.stream!r} names port {self.port} of the module itself, which is not in its own DAG ({self.where})\n"
                f"  help: bind it to a port inside the module: self.{name}.set(operator.port)"
            )
        return (
            f"{self.kind} {self.stream!r} names port {self.port}, whose operator is not in this DAG ({self.where})\n"
            "  help: add the operator with dag.add_operator(name, operator) first, and use the ports of the operator that it returns"
        )


@error("DF005")
class PortTaken(DagError):
    """Two streams lead into one input port."""

    port: str
    first: str
    second: str
    first_where: str
    second_where: str
    template = (
        "two streams lead into {port}\n"
        "  {first!r}  {first_where}\n"
        "  {second!r}  {second_where}\n"
        "  help: an input port takes one stream: merge the two with Union, or give the operator a second input port"
    )
    example = {
        "port": "sink.input",
        "first": "lines",
        "second": "errors",
        "first_where": "app.py:12",
        "second_where": "app.py:13",
    }


@error("DF006")
class SourceTaken(DagError):
    """Two streams start at one output port."""

    port: str
    first: str
    second: str
    first_where: str
    second_where: str
    template = (
        "two streams start at {port}\n"
        "  {first!r}  {first_where}\n"
        "  {second!r}  {second_where}\n"
        "  help: one stream may have many sinks: add the sink to {first!r}"
    )
    example = {
        "port": "reader.messages",
        "first": "lines",
        "second": "copies",
        "first_where": "app.py:12",
        "second_where": "app.py:13",
    }


@error("DF007")
class PropertyRefused(DagError):
    """The properties of an operator or module are invalid."""

    operator: str
    reason: str
    where: str
    kind: str = "operator"
    template = "{kind} {operator!r} has invalid properties: {reason}\n  {where}"
    example = {"operator": "top", "reason": "n is 0, but must be an integer, 1 or more", "where": "app.py:12"}
    general_remedy = "change the property in the application, or set it: -D operator.NAME.PROPERTY=VALUE"


@error("DF008")
class NotPartitionable(DagError):
    """An operator with `partitionable = False` would get several partitions."""

    operator: str
    reason: str
    where: str
    template = (
        "operator {operator!r} is not partitionable, but {reason}\n"
        "  {where}\n"
        "  help: use one partition, or remove the line `partitionable = False` from its class"
    )
    example = {"operator": "console", "reason": "its partitioner asks for 4 partitions", "where": "app.py:12"}


@error("DF009")
class InputUnconnected(DagError):
    """An input port that is not optional has no stream. `through`: the module's port that leads there."""

    port: str
    type: str
    where: str
    through: str = ""
    template = (
        "input port {port} ({type}) is not connected\n"
        "  {where}\n"
        "  help: dag.add_stream(name, source, {through:?{through}|{port}})"
    )
    example = {"port": "sink.input", "type": "str", "where": "app.py:12"}


@error("DF011")
class OutputUnconnected(DagError):
    """An output port that is not optional has no stream. `through`: the module's port that it leads to."""

    port: str
    type: str
    where: str
    through: str = ""
    template = (
        "output port {port} ({type}) must be connected, but is not\n"
        "  {where}\n"
        "  help: dag.add_stream(name, {through:?{through}|{port}}, sink)"
    )
    example = {"port": "split.rest", "type": "str", "where": "app.py:12"}


@error("DF012")
class PortTypeError(DagError, TypeError):
    """A stream joins ports of different types."""

    stream: str
    source: str
    source_type: str
    source_where: str
    sink: str
    sink_type: str
    sink_where: str
    difference: str
    stream_where: str
    help: str = ""
    example = {
        "stream": "lines",
        "source": "reader.messages",
        "source_type": "ReaderRecord[str]",
        "source_where": "app.py:10",
        "sink": "sink.input",
        "sink_type": "int",
        "sink_where": "app.py:11",
        "difference": "ReaderRecord[str] is not int",
        "stream_where": "app.py:12",
        "help": "put Map(…) between them, which makes an int of each record",
    }

    def message(self) -> str:
        width = max(len(self.source), len(self.sink))
        types = max(len(self.source_type), len(self.sink_type))
        text = (
            f"stream {self.stream!r} joins ports of different types ({self.stream_where})\n"
            f"  from {self.source:<{width}}  {self.source_type:<{types}}  {self.source_where}\n"
            f"  to   {self.sink:<{width}}  {self.sink_type:<{types}}  {self.sink_where}\n"
            f"  difference: {self.difference}"
        )
        return text + (f"\n  help: {self.help}" if self.help else "")


@error("DF013")
class Cycle(DagError):
    """The streams form a cycle."""

    path: tuple[str, ...]
    where: tuple[str, ...]
    template = "the streams form a cycle: {path: → }\n  {where:\n  }\n  help: a DAG has no cycles: remove one of these streams"
    example = {"path": ("a", "b", "a"), "where": ("a.output → b.input  app.py:12", "b.output → a.input  app.py:13")}


@error("DF014")
class StreamWithoutSink(DagError):
    """A stream has no sink."""

    stream: str
    where: str
    template = (
        "stream {stream!r} has no sink ({where})\n  help: name at least one input port: dag.add_stream({stream!r}, source, sink)"
    )
    example = {"stream": "lines", "where": "app.py:12"}


@error("DF025")
class FormatUnknown(DagError):
    """The names of files do not tell their format."""

    reason: str
    where: str
    template = (
        "dag.read(): {reason} ({where})\n"
        "  help: say which it is: dag.read(…, format='csv'), json_lines, parquet, avro, or a format with options"
    )
    example = {"reason": "files in 'logs/' may have any format", "where": "app.py:12"}


@error("DF015")
class RootNotInput(DagError):
    """An operator gets no records, and is not an input operator."""

    operator: str
    type: str
    where: str
    template = (
        "operator {operator!r} ({type}) gets no records: nothing is connected to it, and it is not an input operator\n"
        "  {where}\n"
        "  help: connect one of its input ports, or derive its class from InputOperator"
    )
    example = {"operator": "filter", "type": "Filter", "where": "app.py:12"}


@error("DF016")
class EmptyDag(DagError):
    """The application has no operators."""

    application: str
    template = (
        "application {application!r} has no operators\n"
        "  help: populate_dag(dag, conf) adds them with dag.add_operator(name, operator)"
    )
    example = {"application": "demo"}


@error("DF017")
class UnknownName(DagError, LookupError):
    """The DAG does not have an operator, port, stream or attribute of that name."""

    kind: str
    name: str
    known: tuple[str, ...]
    where: str = ""
    template = "there is no {kind} {name!r}{where:? ({where})}.{name:~known|{known:? Known: {known}.}}"
    example = {"kind": "operator", "name": "filtr", "known": ("filter", "sink"), "where": "app.py:12"}
    general_remedy = "use one of the known names"


@error("DF018")
class ClassWrong(DagError, TypeError):
    """The class of an operator is not declared correctly."""

    operator: str
    reason: str
    help: str
    template = "class {operator}: {reason}\n  help: {help}"
    example = {
        "operator": "Mine",
        "reason": "it declares path but is not an attrs class",
        "help": "write @attrs.define above class Mine",
    }


@error("DF060")
class NetHandlerWrong(ClassWrong):
    """A handler of net changes has others beside it, would not get all rows that are equal, or expects rows of one sign."""

    example = {
        "operator": "Totals",
        "reason": "port 'input' has @input.net and @input.process, but only add() would be called (app.py:12)",
        "help": "remove @input.process, or write @input.net(when=…) for the instances that it is for",
    }


@error("DF019")
class PortUnbound(DagError):
    """`emit` was called outside of a window. `doing`: the method that called it."""

    port: str
    operator: str
    doing: str = ""
    template = (
        "{operator:?{operator}|an operator}.{port}: emit() works only within a window: in begin_window(), handlers, "
        "emit_tuples() and end_window()"
        "{doing:?, not in {doing}|\n  help: in a test, use dagflow.testing.run_operator}"
    )
    example = {"port": "output", "operator": "Mine"}


@error("DF023")
class NotAPartitioner(DagError, TypeError):
    """The partitioner of an operator is not a partitioner."""

    operator: str
    got: str
    where: str
    template = (
        "the partitioner of operator {operator!r} is {got}, which has no method define_partitions() ({where})\n"
        "  help: partitioner=StatelessPartitioner(4) for four partitions, from dagflow.scaling; None for none;\n"
        "        or any object with define_partitions(partitions, context)"
    )
    example = {"operator": "reader", "got": "4", "where": "app.py:12"}


@error("DF047")
class ColumnNeeded(DagError):
    """An operator needs a column that the incoming records do not have. `property`: the property that names it."""

    port: str
    property: str
    column: str
    known: tuple[str, ...]
    where: str
    template = (
        "{property} of port {port} names column {column!r}, which its records do not have "
        "({where}).{column:~known|{known:? Known: {known}.| They have no columns.}}\n"
        "  help: name one of their columns, or request this one from the reader (columns=…)"
    )
    example = {"port": "count.input", "property": "by", "column": "contry", "known": ("country", "city"), "where": "app.py:12"}


@error("DF057")
class ColumnsRefused(DagError, TypeError):
    """An operator cannot take the columns of the incoming records. `reason`: the message of its error."""

    port: str
    reason: str
    where: str
    template = "port {port} cannot take its records ({where}): {reason}"
    example = {
        "port": "sink.input",
        "reason": "JsonLinesWriter: column 'key' is of type binary, which JSON does not support",
        "where": "app.py:12",
    }
    general_remedy = "convert the column before it comes there, or leave it out"


@error("DF059")
class ChangesRefused(DagError, TypeError):
    """A stream whose rows may be taken back leads to an operator that cannot follow.

    Attributes:
        port: the input port; `operator`: the class of its operator, `where`: its line.
        by: the operator that takes rows back; `by_where`: its line.
        is_sink: nothing follows the operator.
    """

    port: str
    operator: str
    by: str
    where: str
    by_where: str
    is_sink: bool
    example = {
        "port": "writer.input",
        "operator": "RecordWriter",
        "by": "totals",
        "where": "app.py:14",
        "by_where": "app.py:12",
        "is_sink": True,
    }

    def message(self) -> str:
        what = (
            "would keep rows that are taken back"
            if self.is_sink
            else "emits what follows from many rows, and cannot take it back"
        )
        return "\n".join(
            [
                f"{self.operator} {what}: port {self.port} ({self.where})",
                f"  {self.by!r} takes back rows that it has emitted, where its results change ({self.by_where})",
                "  help: "
                + (
                    "use a sink of files or tables without a mode, which keeps the current result; write the rows of a table\n"
                    "        by key, mode='upsert', keys=[…]; or write each change to a log or to files: mode='changelog'"
                    if self.is_sink
                    else f"let the operator handle the net changes of a window, in a method marked @{self.port.rpartition('.')[2]}.net"
                ),
            ]
        )


@error("DF049")
class WatermarkMissing(DagError):
    """An operator waits for the watermark of its sources, and one of them has none.

    Attributes:
        properties: the operator's properties that make it wait.
    """

    operator: str
    properties: str
    source: str
    where: str
    template = (
        "{operator!r} would never emit anything: with {properties} it waits for the watermark of its sources, "
        "but {source!r} has none ({where})\n"
        "  help: change one of these properties, or give the source a watermark "
        "(FileSplitterInput(event_time='modified'); watermark() of your own)"
    )
    example = {"operator": "tumbling", "properties": "out_of_orderness=none", "source": "files", "where": "app.py:12"}


@error("DF030")
class ProxyUnset(DagError):
    """A port of a module is not bound to a port inside the module."""

    port: str
    type: str
    where: str
    example = {"port": "lines.output", "type": "Lines", "where": "app.py:12"}

    def message(self) -> str:
        name = self.port.rpartition(".")[2]
        return (
            f"port {self.port} of a module is not bound to a port inside it ({self.where})\n"
            f"  help: in {self.type}.populate_dag(), bind it: self.{name}.set(operator.port)"
        )


@error("DF031")
class ModuleBroken(DagError):
    """The `populate_dag()` of a module raised an exception."""

    module: str
    type: str
    error: str
    frames: str
    where: str
    template = "module {module!r}: {type}.populate_dag() failed: {error}{frames:?\n{frames}}\n  {where}"
    example = {
        "module": "lines",
        "type": "Lines",
        "error": "KeyError: 'path'",
        "frames": "  at app.py:20 in populate_dag",
        "where": "app.py:12",
    }
    general_remedy = "fix the line that is named last"
