"""Ports: the typed ends of operators, declared on the class, bound once to each instance."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, get_args, overload

import attrs

from dagflow.model.errors.classes import NotAnOperator
from dagflow.model.errors.dag import PortUnbound
from dagflow.model.operator.call_sites import caller
from dagflow.model.types.columns import cached

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import pyarrow as pa

    from dagflow.model.types.net_changes import NetRows
    from dagflow.model.types.table_keys import TableKeys

OneRecordType = TypeVar("OneRecordType")
OneRecordType_contra = TypeVar("OneRecordType_contra", contravariant=True)

Handler = TypeVar("Handler", bound=Callable[..., None])

RECORD, STREAM, BATCH, NET = "record", "stream", "batch", "net"
IN_COLUMNS = frozenset({BATCH, NET})
"""The forms of handlers for which records travel as batches."""
DAG_OF = "_dag"
"""The name under which operators and modules have the DAG that they were added to."""
MARKS, COMBINES = "__dagflow_handles__", "__dagflow_combines__"
NET_CHANGES = "_net_changes"
"""The `WindowState` in which an operator has, by port, the batches for its handlers of net changes, each with its sign."""

Combine = TypeVar("Combine", bound=Callable[..., Any])
When = Callable[[Any], bool]
Names = Sequence[str] | Callable[[Any], Sequence[str] | None] | None


@attrs.frozen
class HandlerMark:
    """The mark that a decorator puts on a method: the port and form it handles, and a condition on the operator, if any.

    `names`: of the columns by which rows are netted, or a function of the operator that returns them; None: all.
    """

    port: InputPort[Any]
    form: str
    when: When | None = None
    names: Any = None


class Decorator(Protocol):
    """A decorator of handlers: `@input.process`, or `@input.process(when=…)`."""

    @overload
    def __call__(self, handler: Handler, /) -> Handler: ...
    @overload
    def __call__(self, /, *, when: When) -> Callable[[Handler], Handler]: ...


class Port:
    """The base of input and output ports: a name, the operator or module that owns the port, and a type.

    The type is the subscript, `InputPort[str]()`; without one it is `Any`.
    """

    name: str = "?"
    operator: object | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Self: ...
    def __get__(self, instance: object | None, owner: type) -> Self:
        if instance is None:
            return self
        bound = copy.copy(self)
        bound.unbind()
        bound.operator = instance
        instance.__dict__[self.name] = bound  # found before this descriptor from now on
        return bound

    def unbind(self) -> None:
        """Reset what belongs to the class; called on the copy that an instance gets."""

    @property
    def declared_type(self) -> Any:
        """The subscript of the declaration, type variables included; `Any` without one."""
        arguments = get_args(getattr(self, "__orig_class__", None))
        return arguments[0] if arguments else Any

    def __repr__(self) -> str:
        owner = type(self.operator).__name__ if self.operator is not None else "unbound"
        return f"<{type(self).__name__} {owner}.{self.name}>"


class InputPort(Port, Generic[OneRecordType_contra]):
    """An input of an operator.

    Args:
        optional: the port may stay unconnected.
        partition_parallel: True runs the operator in the partitions of the operator upstream (the default behind a partitioned
            operator); False asks for an exchange.
        partition_by: the key. Records with equal keys go to one partition. A function of the record, the name of a column (a
            field of its class, `value` of a bare builtin), or a tuple of names.

    Attributes:
        record_type: the type of the records that arrive, inferred along the streams; `Any` outside a run, and where it is
            unknown.
        columns: names and Arrow types of the columns that arrive at an operator with several inputs, where readers have agreed
            on them and `record_type` does not declare them; otherwise None.
        is_changing: True if rows that arrive may be taken back later.

    The decorators `process`, `stream`, `batch` and `net` mark a method as a handler of the port. An operator may handle a port in
    several forms; the framework calls the one that fits its neighbours. `when`, a function of the operator, restricts a handler
    to the instances for which it returns True:

        @input.batch(when=lambda operator: operator.encoding == "utf-8")

    A handler of net changes, `net`, stands alone: where it applies, the port has no other.
    """

    record_type: Any = Any
    columns: list[tuple[str, str]] | None = None
    is_changing: bool = False

    def __init__(self, *, optional: bool = False, partition_parallel: bool | None = None, partition_by: Any = None) -> None:
        self.optional = optional
        self.partition_parallel = partition_parallel
        self.partition_by = partition_by

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the records that arrive, where `record_type` or `columns` declares them."""
        from dagflow.model.types.forms import schema_of

        if self.columns is None:
            return schema_of(self.record_type)
        import pyarrow as pa

        from dagflow.arrow_types import type_named

        return pa.schema([(name, type_named(kind)) for name, kind in self.columns])

    def records_of(self, batch: pa.RecordBatch) -> list[Any]:
        """Return the records of a batch that has arrived here, as objects of `record_type`."""
        from dagflow.model.types.forms import to_records

        return to_records(batch, self.record_type)

    def batch_of(self, records: Sequence[Any]) -> pa.RecordBatch:
        """Invert `records_of`. Raises TypeError where `record_type` has no Arrow form, and for records that do not fit it."""
        from dagflow.model.types.forms import to_batch

        return to_batch(records, self.record_type)

    def keys_of(
        self, batch: pa.RecordBatch, names: Sequence[str] | None = None, by: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Return keys of a batch that has arrived here, for a `TableState`.

        They are in the column `key`, as bytes: the same for values that are equal in Python. `$group` has the groups by which
        the records were sent here, by the columns in `names`; None: by all (`partition_by="*"`). `by`: the columns by which they
        were sent, where these are not those of the key.
        """
        import pyarrow as pa

        from dagflow.model.types.keyed_rows import GROUP, as_bytes, row_as_bytes

        keys = row_as_bytes(batch) if names is None else as_bytes(batch.select(list(names)))
        return pa.record_batch({"key": keys, GROUP: self.groups_of(batch, names if by is None else by)})

    def table_keys(self, batch: pa.RecordBatch, names: Sequence[str]) -> TableKeys:
        """Return keys of a batch that has arrived here, for a `TableState`: null where one of the columns in `names` is.

        The records were sent here by these columns. Keys are equal where they are in Python, whatever the types of the columns.
        """
        from dagflow.model.types.table_keys import TableKeys

        return TableKeys.of_columns(batch.select(list(names)), self.record_type)

    def groups_of(self, batch: pa.RecordBatch, names: Sequence[str] | None = None) -> np.ndarray[Any, Any]:
        """Return the groups by which the records of a batch were sent here: those of `keys_of`, without the keys."""
        from dagflow.model.types.keyed_rows import sent_groups
        from dagflow.model.types.keys import WHOLE

        return sent_groups(batch, [WHOLE] if names is None else names, self.record_type)

    def net_changes(
        self,
        changes: Sequence[tuple[pa.RecordBatch, int]],
        names: Sequence[str] | None = None,
        by: Sequence[str] | None = None,
    ) -> NetRows | None:
        """Return what batches that were added (1) or taken back (-1) here come to; None without batches.

        Rows are equal where the columns in `names` are, by which they were sent here; None: all columns (`partition_by="*"`).
        `by`: see `keys_of`. An operator that uses it: docs/explanation/changes.md#write-an-operator-that-follows-changes.

        >>> import pyarrow as pa
        >>> rows = InputPort[dict](partition_by="*")
        >>> came, gone = pa.record_batch({"k": ["a", "b", "a"]}), pa.record_batch({"k": ["b"]})
        >>> net = rows.net_changes([(came, 1), (gone, -1)])
        >>> net.rows.to_pylist(), net.counts.tolist()
        ([{'k': 'a'}], [2])
        """
        import numpy as np

        from dagflow.model.types.net_changes import net_changes, one_batch

        if not changes:
            return None
        rows = one_batch([batch for batch, _ in changes])
        signs = np.concatenate([np.full(batch.num_rows, sign) for batch, sign in changes])
        return net_changes(rows, self.keys_of(rows, names, by), signs, self.record_type)

    @property
    def process(self) -> Decorator:
        """Mark `handler(self, record)`, which is called once for each record."""
        return functools.partial(self._marking, RECORD)

    @property
    def stream(self) -> Decorator:
        """Mark `handler(self, records)`, which is called with an iterator over a bounded run of records.

        This is the fastest form for work on single records. Finish with a record before taking the next one: when the handler
        raises, the framework blames the record taken last, and calls the handler again with the same iterator, which resumes
        behind that record. A handler that reads ahead must catch its own errors.
        """
        return functools.partial(self._marking, STREAM)

    @property
    def batch(self) -> Decorator:
        """Mark `handler(self, batch)`, which is called with a `pyarrow.RecordBatch`.

        When it raises and `on_error` skips or routes records, the framework calls it again with parts of the batch, down to the
        rows to blame. What it emitted and kept in its WindowState is undone first; other side effects are not.
        """
        return functools.partial(self._marking, BATCH)

    @overload
    def net(self, handler: Handler, /) -> Handler: ...
    @overload
    def net(self, /, *, names: Names = None, when: When | None = None) -> Callable[[Handler], Handler]: ...
    def net(self, handler: Any = None, /, *, names: Names = None, when: When | None = None) -> Any:
        """Mark `handler(self, net)`, which is called once for a window, before `end_window`, with its `NetRows`.

        The framework keeps what comes until then. Rows that are added and taken back in the window cancel; where none are left,
        the handler is not called. In an append stream all numbers are positive. The handler may emit and retract. When it
        raises, the run ends, whatever `on_error` says: no single record is to blame. A class with such a handler has
        `takes_changes`. The port needs a key, by which equal rows meet; keys for a `TableState` need one of columns.

        `@input.net(names=["shop"])`: rows are equal where these columns are, among which are those of the key. A function of the
        operator may return them. Without `names`, all columns are compared. Other handlers of the port are for instances for
        which `when` does not hold.
        """
        return self._marking(NET, handler, when=when, names=names)

    def combine(self, combine: Combine) -> Combine:
        """Mark `combine(self, one, other)`, which merges two records with the same key before they cross an exchange.

        Which records are combined, and how often, varies: the handler must produce the same result with and without it. It runs
        before the exchange, on an operator that is not set up and has only its properties. It changes neither record. It is left
        out where attributes give the port another key than the operator's own.
        """
        return _marked_as(combine, HandlerMark(self, RECORD), COMBINES)

    def combine_batch(self, combine: Combine) -> Combine:
        """Mark `combine_batch(self, batch)`, which reduces a batch of any records to fewer rows of the same schema.

        It takes precedence over `combine`.
        """
        return _marked_as(combine, HandlerMark(self, BATCH), COMBINES)

    def _marking(self, form: str, handler: Any = None, /, *, when: When | None = None, names: Names = None) -> Any:
        mark = HandlerMark(self, form, when, (names,) if isinstance(names, str) else names)
        return _marked_as(handler, mark) if handler is not None else lambda method: _marked_as(method, mark)


def _marked_as(method: Combine, mark: HandlerMark, attribute: str = MARKS) -> Combine:
    setattr(method, attribute, [*getattr(method, attribute, ()), mark])
    return method


class OutputPort(Port, Generic[OneRecordType]):
    """An output of an operator: `self.output.emit(record)`.

    What a handler emits has the sign of the rows that it is called with: from rows that are taken back follow rows that are taken
    back. `retract` and `retract_batch` take back what was emitted before, in this window or an earlier one (while a handler is
    called with rows that are taken back, they insert). Only operators with `emits_changes` call them.

    Args:
        optional: the port may stay unconnected; what is emitted is then dropped.
        completed_items: True if the operator emits its work items here, each once all of it has been read.
        empty_batches: True if a batch without rows is handed on too: it says that the result has none.
        only_adds: True if rows that were emitted here are never taken back, whatever the operator does at its other outputs.

    Attributes:
        is_connected: True if a stream starts here.
        wants_batches: True if `emit_batch` spares a conversion.
        takes_mixed_batches: True if a batch may hold records of several work items: all operators behind the port in this task
            get batches of `ReaderRecord`, so each row names its block.
    """

    emit: Callable[[OneRecordType], None]
    emit_all: Callable[[Iterable[OneRecordType]], None]
    emit_batch: Callable[[Any], None]
    retract: Callable[[OneRecordType], None]
    retract_batch: Callable[[Any], None]
    is_connected: bool = False
    wants_batches: bool = False
    takes_mixed_batches: bool = False

    def __init__(
        self, *, optional: bool = True, completed_items: bool = False, empty_batches: bool = False, only_adds: bool = False
    ) -> None:
        self.optional = optional
        self.completed_items = completed_items
        self.empty_batches = empty_batches
        self.only_adds = only_adds
        self.unbind()

    def to(self, target: Any, name: str | None = None) -> Any:
        """Connect this port in the DAG of its operator, and return the output port of the operator that the stream leads to.

        Args:
            target: an operator with one input port; or an input port of an operator, as in `orders.to(join.left)`. The operator
                is added to the DAG if it is not there yet.
            name: of the operator in the DAG. None: made from its class.

        Returns the port `output`, or the only one beside `errors` and a reader's `blocks_metadata_output`. None where there is
        none, as of a sink, or several others.
        A port may be connected with several operators. Raises NotAnOperator where its own operator is in no DAG.

        >>> from dagflow import DAG
        >>> from operators import Console, Filter
        >>> dag = DAG()
        >>> dag.read("sales/*.csv").to(Filter(lambda row: row["price"] > 0)).to(Console(), name="show")
        >>> dag
        <DAG application: 4 operators, 3 streams>
        """
        dag = None if self.operator is None else vars(self.operator).get(DAG_OF)
        if dag is None:
            help_ = "add its operator to the DAG first: dag.add_operator(…), or by port.to(…) of another port"
            raise NotAnOperator("a port of an operator in a DAG", repr(self), caller(), help_)
        return dag.connect(self, target, name)

    def unbind(self) -> None:
        """Make `emit` raise PortUnbound, as it works only in a run."""
        self.emit = self.emit_all = self.emit_batch = self.retract = self.retract_batch = self._outside

    def _outside(self, what: object) -> None:
        raise PortUnbound(port=self.name, operator=type(self.operator).__name__ if self.operator is not None else "")


class ProxyInputPort(InputPort[OneRecordType_contra]):
    """An input port of a module, which forwards records to ports inside. Those declare everything but its type."""

    targets: tuple[InputPort[Any], ...] = ()
    where: str = ""

    def __init__(self) -> None:
        super().__init__()

    def set(self, port: InputPort[OneRecordType_contra], *more: InputPort[OneRecordType_contra]) -> None:
        """Forward the records that arrive here to ports of operators or modules inside."""
        self.targets, self.where = (port, *more), caller()


class ProxyOutputPort(OutputPort[OneRecordType]):
    """An output port of a module, which emits what a port inside emits. That port declares everything but its type."""

    targets: tuple[OutputPort[Any], ...] = ()
    where: str = ""

    def __init__(self) -> None:
        super().__init__()

    def set(self, port: OutputPort[OneRecordType]) -> None:
        """Emit here what a port of an operator or module inside emits."""
        self.targets, self.where = (port,), caller()


PROXIES = (ProxyInputPort, ProxyOutputPort)


@cached
def ports_of(cls: type) -> dict[str, Port]:
    """Return all ports of a class by name, in the order of their declaration, base classes first."""
    ports: dict[str, Port] = {}
    for klass in reversed(cls.__mro__):
        for name, value in vars(klass).items():
            if isinstance(value, Port):
                ports[name] = value
            elif name in ports:
                del ports[name]  # a subclass uses the name for something else
    return ports


def input_ports(cls: type) -> dict[str, InputPort[Any]]:
    """Return the input ports of a class by name."""
    return {name: port for name, port in ports_of(cls).items() if isinstance(port, InputPort)}


def output_ports(cls: type) -> dict[str, OutputPort[Any]]:
    """Return the output ports of a class by name."""
    return {name: port for name, port in ports_of(cls).items() if isinstance(port, OutputPort)}


def handlers_of(cls: type) -> dict[str, dict[str, str]]:
    """Return port name → form → method name.

    Methods are looked up in the MRO by name, so that plain overriding works. When a class overrides one form of a port's
    handler, the forms that only its bases define are dropped: an inherited batch handler never bypasses an override.
    """
    return {port: {form: method for form, (method, _) in forms.items()} for port, forms in _marked(cls, MARKS).items()}


def forms_handled(operator: object, port: str) -> frozenset[str]:
    """Return the forms in which an instance handles a port: those of the handlers whose `when` holds for it; `net` alone."""
    cls: Any = type(operator)
    forms = _marked(cls, MARKS).get(port, {})
    handled = frozenset(form for form, (_, mark) in forms.items() if mark.when is None or mark.when(operator))
    return handled & {NET} or handled


def net_mark(operator: object, port: str) -> HandlerMark | None:
    """Return the mark by which an instance handles the net changes of a port, with `names` as names; None where it does not."""
    cls: Any = type(operator)
    mark = _marked(cls, MARKS)[port][NET][1] if NET in forms_handled(operator, port) else None
    return mark and attrs.evolve(mark, names=mark.names(operator) if callable(mark.names) else mark.names)


def handle_net(operator: Any, port: str, handler: Callable[[NetRows], Any]) -> Any:
    """Call a handler of net changes with what a window comes to, and forget the rows. It is not called where nothing is left."""
    from dagflow.model.types.keys import WHOLE, key_of

    bound, mark, said = getattr(operator, port), net_mark(operator, port), operator.partition_key(port)
    key = key_of(bound.partition_by if said is None else said)
    by = key.columns if key is not None and key.columns and key.columns != (WHOLE,) else None
    net = bound.net_changes(getattr(operator, NET_CHANGES).pop(port, ()), mark and mark.names, by)
    return handler(net) if net is not None and len(net.counts) else None


def combiners_of(cls: type) -> dict[str, dict[str, str]]:
    """Return port name → form → name of the method that combines its records; see `handlers_of`."""
    return {port: {form: method for form, (method, _) in forms.items()} for port, forms in _marked(cls, COMBINES).items()}


@functools.cache
def _marked(cls: Any, attribute: str) -> dict[str, dict[str, tuple[str, HandlerMark]]]:
    depth: dict[str, int] = {}  # method name → position in the MRO of the definition in force
    marks: dict[str, dict[str, tuple[str, HandlerMark]]] = {}
    for level, klass in reversed(list(enumerate(cls.__mro__))):
        for name, value in vars(klass).items():
            depth[name] = level
            for mark in getattr(value, attribute, ()):
                marks.setdefault(mark.port.name, {})[mark.form] = name, mark
    nearest = {port: min(depth[method] for method, _ in forms.values()) for port, forms in marks.items()}
    return {
        port: {form: each for form, each in forms.items() if depth[each[0]] == nearest[port]} for port, forms in marks.items()
    }
