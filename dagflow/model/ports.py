"""Ports: the typed ends of operators, declared on the class, bound once to each instance."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, overload

from dagflow.errors.dag import PortUnbound
from dagflow.model.source import caller

if TYPE_CHECKING:
    from typing import Self

    import pyarrow as pa

    from dagflow.model.component import Component

OneRecordType = TypeVar("OneRecordType")
OneRecordType_contra = TypeVar("OneRecordType_contra", contravariant=True)

Handler = TypeVar("Handler", bound=Callable[..., None])

RECORD, STREAM, BATCH = "record", "stream", "batch"
MARKS, COMBINES = "__dagflow_handles__", "__dagflow_combines__"

Combine = TypeVar("Combine", bound=Callable[..., Any])


class Port:
    """What input and output ports share: a name, the operator or module that they belong to, and a type.

    The type is what stands in the brackets, `InputPort[str]()`; without brackets it is `Any`.
    """

    name: str = "?"
    operator: Component | None = None

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
        bound.operator = instance  # type: ignore[assignment]  # only operators and modules have ports
        instance.__dict__[self.name] = bound  # found before this descriptor from now on
        return bound

    def unbind(self) -> None:
        """Called on the copy that an instance gets."""

    @property
    def declared_type(self) -> Any:
        """The type in the brackets of the declaration, type variables included; `Any` without brackets."""
        arguments = get_args(getattr(self, "__orig_class__", None))
        return arguments[0] if arguments else Any

    def __repr__(self) -> str:
        owner = type(self.operator).__name__ if self.operator is not None else "unbound"
        return f"<{type(self).__name__} {owner}.{self.name}>"


class InputPort(Port, Generic[OneRecordType_contra]):
    """Where records enter an operator.

    Args:
        optional: may stay unconnected.
        partition_parallel: True: runs in the partitions of the operator upstream (the default for operators that follow a
            partitioned one); False: asks for an exchange.
        partition_by: records with equal keys go to one partition: a function of the record, the name of a column (of a field
            of its class, `value` of a bare builtin), or a tuple of names.

    Attributes:
        record_type: the type of the records that arrive, as it was solved along the streams; `Any` outside a run, and where it is
            not known.
        columns: of an operator with several inputs, names and Arrow types of what arrives here, where readers have agreed on them
            and `record_type` does not tell; None else.

    A handler is a method marked by one of the decorators; an operator may have several forms of the same handler, the
    framework takes the one that fits its neighbours.
    """

    record_type: Any = Any
    columns: list[tuple[str, str]] | None = None

    def __init__(self, *, optional: bool = False, partition_parallel: bool | None = None, partition_by: Any = None) -> None:
        self.optional = optional
        self.partition_parallel = partition_parallel
        self.partition_by = partition_by

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the records that arrive, where `record_type` or `columns` tells them."""
        from dagflow.model.forms import schema_of

        if self.columns is None:
            return schema_of(self.record_type)
        import pyarrow as pa

        from dagflow.arrow_types import type_named

        return pa.schema([(name, type_named(kind)) for name, kind in self.columns])

    def records_of(self, batch: pa.RecordBatch) -> list[Any]:
        """The records of a batch that has arrived here, as objects of `record_type`."""
        from dagflow.model.forms import to_records

        return to_records(batch, self.record_type)

    def process(self, handler: Handler) -> Handler:
        """Marks `handler(self, record)`: called once a record."""
        return self._mark(handler, RECORD)

    def stream(self, handler: Handler) -> Handler:
        """Marks `handler(self, records)`: called with an iterator over a bounded run of records.

        The fastest form for record-at-a-time work. Take a record, finish with it, take the next: when the handler raises, the
        record taken last is the one to blame, and the framework calls the handler again with the same iterator, which goes on
        behind it. A handler that reads ahead must catch its own errors.
        """
        return self._mark(handler, STREAM)

    def batch(self, handler: Handler) -> Handler:
        """Marks `handler(self, batch)`: called with a `pyarrow.RecordBatch`.

        When it raises and `on_error` lets records pass, it is called again with parts of the batch, down to the rows that are to
        blame; what it had emitted and kept in its WindowState is undone before, what it did elsewhere is not.
        """
        return self._mark(handler, BATCH)

    def combine(self, combine: Combine) -> Combine:
        """Marks `combine(self, one, other)`: makes one record of two with the same key, before they cross an exchange.

        Which records are combined, and how often, is not certain: the handler must come to the same result with and without. It
        runs where the records come from, on an operator that is not set up: only its properties are there. It changes neither of
        the two. It is left out where attributes give the port another key than the operator's own.
        """
        return self._mark(combine, RECORD, COMBINES)

    def combine_batch(self, combine: Combine) -> Combine:
        """Marks `combine_batch(self, batch)`: makes a batch with fewer rows of the same schema, of any records.

        Otherwise as `combine`, which is not used beside it.
        """
        return self._mark(combine, BATCH, COMBINES)

    def _mark(self, method: Combine, form: str, marks: str = MARKS) -> Combine:
        setattr(method, marks, [*getattr(method, marks, ()), (self, form)])
        return method


class OutputPort(Port, Generic[OneRecordType]):
    """Where records leave an operator: `self.output.emit(record)`.

    Args:
        optional: may stay unconnected (then what is emitted goes nowhere).

    Attributes:
        is_connected: whether a stream starts here.
        wants_batches: whether `emit_batch` spares a conversion.
    """

    emit: Callable[[OneRecordType], None]
    emit_all: Callable[[Iterable[OneRecordType]], None]
    emit_batch: Callable[[Any], None]
    is_connected: bool = False
    wants_batches: bool = False

    def __init__(self, *, optional: bool = True) -> None:
        self.optional = optional
        self.unbind()

    def unbind(self) -> None:
        """Makes `emit` say that it works only in a run."""
        self.emit = self.emit_all = self.emit_batch = self._outside

    def _outside(self, what: object) -> None:
        raise PortUnbound(port=self.name, operator=type(self.operator).__name__ if self.operator is not None else "")


class ProxyInputPort(InputPort[OneRecordType_contra]):
    """An input port of a module: what arrives goes on to ports inside. All but its type is said by those."""

    targets: tuple[InputPort[Any], ...] = ()
    where: str = ""

    def __init__(self) -> None:
        super().__init__()

    def set(self, port: InputPort[OneRecordType_contra], *more: InputPort[OneRecordType_contra]) -> None:
        """Says to which ports inside (of operators or modules) the records go that arrive here."""
        self.targets, self.where = (port, *more), caller()


class ProxyOutputPort(OutputPort[OneRecordType]):
    """An output port of a module: what a port inside emits leaves here. All but its type is said by that one."""

    targets: tuple[OutputPort[Any], ...] = ()
    where: str = ""

    def __init__(self) -> None:
        super().__init__()

    def set(self, port: OutputPort[OneRecordType]) -> None:
        """Says which port inside (of an operator or module) the records come from that leave here."""
        self.targets, self.where = (port,), caller()


PROXIES = (ProxyInputPort, ProxyOutputPort)


def ports_of(cls: type) -> dict[str, Port]:
    """All ports of a class, in the order of their declaration, base classes first."""
    found: dict[str, Port] = {}
    for klass in reversed(cls.__mro__):
        for name, value in vars(klass).items():
            if isinstance(value, Port):
                found[name] = value
            elif name in found:
                del found[name]  # hidden by something that is no port
    return found


def input_ports(cls: type) -> dict[str, InputPort[Any]]:
    """The input ports of a class by name."""
    return {name: port for name, port in ports_of(cls).items() if isinstance(port, InputPort)}


def output_ports(cls: type) -> dict[str, OutputPort[Any]]:
    """The output ports of a class by name."""
    return {name: port for name, port in ports_of(cls).items() if isinstance(port, OutputPort)}


def handlers_of(cls: type) -> dict[str, dict[str, str]]:
    """Port name → form → method name, found over the MRO by method name, so that plain overriding works.

    When a class overrides one form of a port's handler, forms that only its bases define say something else by now and are
    dropped: nobody's override is bypassed by an inherited vectorised form.
    """
    return _marked(cls, MARKS)


def combiners_of(cls: type) -> dict[str, dict[str, str]]:
    """Port name → form → name of the method that combines its records; as `handlers_of`."""
    return _marked(cls, COMBINES)


def _marked(cls: type, attribute: str) -> dict[str, dict[str, str]]:
    mro = list(cls.__mro__)
    depth: dict[str, int] = {}  # method name → how deep in the MRO its definition in force stands
    marks: dict[str, dict[str, str]] = {}
    for level, klass in reversed(list(enumerate(mro))):
        for name, value in vars(klass).items():
            depth[name] = level
            for port, form in getattr(value, attribute, ()):
                marks.setdefault(port.name, {})[form] = name
    fresh: dict[str, dict[str, str]] = {}
    for port, forms in marks.items():
        nearest = min(depth[name] for name in forms.values())
        fresh[port] = {form: name for form, name in forms.items() if depth[name] == nearest}
    return fresh


def resumable(records: Iterable[Any]) -> Iterator[Any]:
    """An iterator that tells how many records are left: what stream handlers are given."""
    return iter(records if isinstance(records, list) else list(records))
