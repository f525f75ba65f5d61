"""The base of all operators: an attrs class with ports, handlers and a lifecycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast, get_args

import attrs

from dagflow.errors.choices import one_of
from dagflow.model.component import Component
from dagflow.model.context import OperatorContext
from dagflow.model.errors.dag import ClassWrong
from dagflow.model.ports import PROXIES, InputPort, OutputPort, Port, forms_handled, ports_of

OnError = Literal["fail", "skip", "route"]


@attrs.frozen
class ErrorRecord:
    """What the `errors` port carries: a record that an operator could not handle, and why.

    `file_path` and `position` (bytes from the file's start) say where the record was read, None when unknown; `record` is its
    text form, cut at 1,000 characters.
    """

    operator: str
    window: int
    file_path: str | None
    position: int | None
    error: str
    record: str


@attrs.define(slots=False, eq=False)
class Operator(Component):
    """What every operator is derived from. Subclasses are attrs classes; their fields are their properties.

    >>> import attrs
    >>> from dagflow import InputPort, Operator, OutputPort
    >>> from dagflow.testing import run_operator
    >>> @attrs.define
    ... class Longest(Operator):
    ...     least: int
    ...     input = InputPort[str]()
    ...     output = OutputPort[str]()
    ...
    ...     @input.process
    ...     def each(self, line: str) -> None:
    ...         if len(line) >= self.least:
    ...             self.output.emit(line)
    >>> run_operator(Longest(least=3), {"input": ["ab", "abc"]})["output"]
    ['abc']

    Attributes:
        on_error: what becomes of a record whose handler raises: `fail` ends the run, `skip` counts it in the report, `route`
            emits it on the port `errors`.
        partitionable: False for operators that must not run as several copies.
        partition_key_fixed: True for operators that come to a wrong result with another key than that of `partition_key`, so that
            `partition_by` may not set one.
        follows_event_time: True for keyed operators that run in every window, also where no records come: they are told of event
            time (`context.event_time`), and tell what they have seen of it (`context.saw`).
        partitioner: how the operator is partitioned, unless `DAG.set_attributes` says otherwise.
    """

    partitionable: ClassVar[bool] = True
    partition_key_fixed: ClassVar[bool] = False
    follows_event_time: ClassVar[bool] = False
    partitioner: ClassVar[Any] = None

    errors = OutputPort[ErrorRecord]()

    on_error: OnError = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnError)))

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, port in vars(cls).items():
            if isinstance(port, PROXIES):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"port {name!r} is a {type(port).__name__}, but an operator handles and emits records itself",
                    help=f"write {name} = {type(port).__name__.removeprefix('Proxy')}[…](), or derive the class from Module",
                )

    def __reduce__(self) -> Any:
        """Pickles fields and type arguments only: what `setup` makes never travels."""
        cls = getattr(type(self), "_dagflow_frozen_from", type(self))
        return _remake, (cls, fields_of(self), getattr(self, "__orig_class__", None))

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return the forms in which this instance handles `port`, of `record`, `stream` and `batch`; see `when` of InputPort."""
        return forms_handled(self, port)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """The forms in which an output port can emit when the input is handled in form `handled`: of `record`, `batch`."""
        return frozenset({"batch" if handled == "batch" else "record"})

    def partition_key(self, port: str) -> Any:
        """What records of an input port are partitioned by, where that depends on properties; None: what the port declares.

        A function of the record, the name of a column, or a tuple of names. `partition_by`, where it is set, comes first.
        """

    def ahead(self, port: str) -> tuple[Operator, str] | None:
        """What makes few records of many where they come from, before they cross an exchange to an input port. None: nothing.

        An operator with the ports `input` and `output`, and the input port of this one (keyed like the first) that takes what it
        emits. The result must be the same without it: it is left out where no exchange stands or `on_error` is `route`.
        """

    def keeps(self, state: str) -> bool:
        """Whether this instance keeps what its class declares as `State` under a name; override where properties tell."""
        return True

    def state_properties(self) -> tuple[str, ...]:
        """The properties without which what is kept over windows means nothing: a launch that has others cannot go on with it."""
        return ()

    def waits_for_sources(self) -> str | None:
        """With which of its properties nothing is ever emitted unless all sources tell a watermark; None: with none."""
        return None

    def input_paths(self) -> list[str]:
        """The files and folders that this operator's tasks read; for sources."""
        return []

    def output_folders(self) -> list[str]:
        """The folders that this operator's attempt files go to; for sinks."""
        return []

    def private_folders(self) -> list[str]:
        """Folders that this operator's attempt files go to besides, which are no datasets: they get no ledger."""
        return []

    def written_schema(self) -> list[tuple[str, str]] | None:
        """The columns of what a sink writes, as `(name, Arrow type)`: what the ledger of its output folder says of the rows.

        None: those of the records that arrive, any of which may be null; no columns where their type is known only when they do.
        """
        return [("value", "binary")]

    def agree(self, items: Sequence[Any], before: Any, context: OperatorContext) -> Any:
        """Called on the driver's instance (not set up) when a window has work items for it, before the plan is published.

        What it returns, plain data or None, is published with the plan: all tasks of the window find it as `context.agreed`.
        `before`: what was agreed for the window before; None at first.
        """
        return before

    def written_form(self) -> dict[str, Any]:
        """How a sink's files hold the rows, as far as their names do not say: see `SetSchema.written` of `dagflow.ledger`."""
        return {}

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """The columns of an output port's batches, `(name, Arrow type)`, where `agreed` says what its type does not."""
        return None

    def column_names(self, port: str) -> Sequence[str] | None:
        """The names of all columns of an output port's batches, where properties say them that its type does not."""
        said = self.emitted_columns(port, None)
        return None if said is None else [name for name, _ in said]

    def needed_columns(self, port: str) -> Mapping[str, Sequence[str]]:
        """By property, the columns that records of an input port must have: a DAG in which they do not is refused."""
        return {}

    def columns_told(self, port: str) -> str | None:
        """How `dagflow plan` tells where the columns of an output port come from, whose type does not say them."""
        return None

    def setup(self, context: OperatorContext) -> None:
        """Called once, before the first window: makes what cannot travel (connections, buffers)."""

    def begin_window(self, window: int) -> None:
        """Called before a window's first record; may emit. The operators behind it have begun the window by then."""

    def end_window(self) -> None:
        """Called after a window's last record; may still emit."""

    def committed(self, window: int) -> None:
        """Called on the driver's instance after the window's decision is durable; may be called again after a crash."""

    def show(self, lines: list[str], window: int) -> None:
        """Called on the driver's instance with what the tasks have noted (`context.note`), after the decision, once a launch."""

    def teardown(self) -> None:
        """Called at the end, also after errors."""


@attrs.define(slots=False, eq=False)
class InputOperator(Operator):
    """An operator that nothing leads to: it makes the records. Runs on the driver, for the whole run.

    What it must remember over windows it declares as `State`: the state after a window is saved with the window's plan.
    """

    partitionable: ClassVar[bool] = False

    def check_inputs(self, context: OperatorContext) -> None:
        """Looks whether what it reads is there; called before anything of a launch is made. Raises what `setup` would raise."""

    def emit_tuples(self) -> None:
        """Emits some records, or none when there are none now. Called again and again until the window is closed."""
        raise NotImplementedError

    def is_exhausted(self) -> bool:
        """Whether no more records will come in this launch. Asked after a call of `emit_tuples` that emitted nothing."""
        return True

    def tells_watermark(self) -> bool:
        """Whether `watermark` may ever know one; override where properties say that it does not."""
        return type(self).watermark is not InputOperator.watermark

    def watermark(self) -> int | None:
        """Up to which event time all records have come, in microseconds since the epoch; None: nothing is known of that.

        Asked after each window has been filled. It never goes back: a smaller answer than an earlier one does not count. A
        window in which it has advanced is made also when there is nothing else to do.
        """
        return None


def fields_of(operator: object) -> dict[str, Any]:
    """The properties of an operator: its attrs fields that its constructor takes, by name."""
    return {a.name: getattr(operator, a.name) for a in attrs.fields(cast("Any", type(operator))) if a.init}


def _remake(cls: type[Operator], fields: dict[str, Any], orig_class: Any) -> Operator:
    operator: Operator = cls.__new__(cls)
    aliases = {a.name: a.alias or a.name for a in attrs.fields(cls)}
    operator.__init__(**{aliases[name]: value for name, value in fields.items()})  # type: ignore[misc]
    if orig_class is not None:
        operator.__dict__["__orig_class__"] = orig_class
    return operator


def ports_of_instance(operator: Operator) -> Iterator[Port]:
    """The bound ports of an operator in the order of their declaration."""
    for name in ports_of(type(operator)):
        yield getattr(operator, name)


__all__ = [
    "ErrorRecord",
    "InputOperator",
    "InputPort",
    "OnError",
    "Operator",
    "fields_of",
    "ports_of_instance",
]
