"""The base of all operators: an attrs class with ports, handlers and a lifecycle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, cast, get_args

import attrs

from dagflow.model.errors.dag import ClassWrong
from dagflow.model.operator.component import Component
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import (
    MARKS,
    NET,
    NET_CHANGES,
    PROXIES,
    InputPort,
    OutputPort,
    Port,
    forms_handled,
    handlers_of,
    ports_of,
)
from dagflow.model.operator.protocols import (
    KeepsCurrent,
    Keyed,
    LimitsRejects,
    ReadsFiles,
    RejectLimit,
    SchemaAware,
    Stateful,
    WritesFiles,
)
from dagflow.model.operator.state import WindowState
from dagflow.model.operator.validators import one_of, records_or_share, share_or_count

OnError = Literal["fail", "skip", "route"]
Scope = Literal["rows", "window", "all"]
"""The input that a result covers: a row; one window of the run, however the input was cut; all input so far."""


@attrs.frozen
class ErrorRecord:
    """A record that an operator could not handle, and the reason, as the port `errors` emits it.

    `file_path` and `position` (bytes from the start of the file) locate the record, None where unknown. `record` is its text,
    cut at 1,000 characters.
    """

    operator: str
    window: int
    file_path: str | None
    position: int | None
    error: str
    record: str


@attrs.define(slots=False, eq=False)
class Operator(Component, Keyed, KeepsCurrent, Stateful, SchemaAware, ReadsFiles, WritesFiles, LimitsRejects):
    """The base of every operator. Subclasses are attrs classes whose fields are the operator's properties.

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
        on_error: the policy for a record whose handler raises. `fail` ends the run, `skip` counts the record in the report,
            `route` emits it on the port `errors`.
        max_rejects: the largest number of records that the operator may reject in a window over all tasks, or the largest share
            of those that came (`"1%"`). With more, the run ends before the window is committed. None sets no limit.
        partitionable: False if the operator must not run as several copies.
        partition_key_fixed: True if another key than that of `partition_key` would give wrong results, so that `partition_by` is
            refused.
        mixes_partitions: True if rows of any partition may be handled in any other: where the inputs come from partitions that
            are not related, the planner brings them together by an exchange.
        scope: the input that the operator's results cover. `rows`: what it emits is a function of single rows. `window`: the rows
            of one window, which its author wants although windows are cut by size and time. `all`: all input. None: nothing is
            said, and an operator that keeps `WindowState` or emits in `end_window` is taken to mean all input. A subclass may
            make it a property.
        takes_changes: True if the operator also handles rows that are taken back (`context.retracts`). Functions of single rows
            handle them without knowing. A class with a handler of net changes (`InputPort.net`) has it.
        emits_changes: whether it may take back what it has emitted (`OutputPort.retract`), so that its streams are changing ones:
            True always, False never; None: if one of its inputs is.
        selects_rows: True if what each of its ports emits are rows that have arrived at one, each at most once: then columns that
            identify a row still do.
        follows_event_time: True if a keyed operator runs in every window, even without records. It gets the event time
            (`context.event_time`), and reports the times it has seen (`context.saw`).
        waits_for_emission: True if a keyed operator keeps what it gets, and emits it only where `context.emits`. It tells how
            many changes it keeps back (`context.hold`), and runs at the next emission point even without records.
        partitioner: the partitioner of the operator, unless `DAG.set_attributes` sets another.

    Every operator has the protocols `Keyed`, `KeepsCurrent`, `Stateful`, `SchemaAware`, `ReadsFiles`, `WritesFiles` and
    `LimitsRejects`, and overrides the methods that apply to it. docs/reference/protocols.md says which gives which ability.
    """

    partitionable: ClassVar[bool] = True
    partition_key_fixed: ClassVar[bool] = False
    mixes_partitions: ClassVar[bool] = False
    scope: ClassVar[Scope | None] = None
    takes_changes: ClassVar[bool] = False
    emits_changes: ClassVar[bool | None] = None
    selects_rows: ClassVar[bool] = False
    follows_event_time: ClassVar[bool] = False
    waits_for_emission: ClassVar[bool] = False
    partitioner: ClassVar[Any] = None

    errors = OutputPort[ErrorRecord]()

    on_error: OnError = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnError)))
    max_rejects: int | str | None = attrs.field(default=None, kw_only=True, validator=records_or_share)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, port in vars(cls).items():
            if isinstance(port, PROXIES):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"port {name!r} is a {type(port).__name__}, but an operator handles and emits records itself",
                    help=f"write {name} = {type(port).__name__.removeprefix('Proxy')}[…](), or derive the class from Module",
                )
        if any(mark.form == NET for value in vars(cls).values() for mark in getattr(value, MARKS, ())):
            cls.takes_changes = vars(cls).get("takes_changes", True)
            setattr(cls, NET_CHANGES, WindowState(factory=dict))
        elif NET_CHANGES in dir(cls) and "takes_changes" not in vars(cls):  # another handler may have taken its place
            cls.takes_changes = cls.takes_changes and any(NET in forms for forms in handlers_of(cls).values())

    def __reduce__(self) -> Any:
        """Pickle fields and type arguments only: what `setup` makes never travels."""
        cls = getattr(type(self), "_dagflow_frozen_from", type(self))
        return _remake, (cls, fields_of(self), getattr(self, "__orig_class__", None))

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return the forms in which this instance handles `port`: `record`, `stream`, `batch` or `net`; see InputPort."""
        return forms_handled(self, port)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return the forms, `record` or `batch`, in which an output port can emit when the input is handled in form `handled`."""
        return frozenset({"record", "batch"} if handled == NET else {"batch" if handled == "batch" else "record"})

    def setup(self, context: OperatorContext) -> None:
        """Create whatever cannot be pickled, such as connections and buffers. Called once, before the first window."""

    def begin_window(self, window: int) -> None:
        """Begin a window, before its first record. May emit: the operators downstream have begun the window by then."""

    def end_window(self) -> None:
        """End a window, after its last record. May still emit."""

    def committed(self, window: int) -> None:
        """React to a committed window. Called on the driver's instance once the decision is durable, and again after a crash."""

    def show(self, lines: list[str], window: int) -> None:
        """Show the lines that the tasks have noted (`context.note`). Called on the driver, once the window is decided."""

    def teardown(self) -> None:
        """Release what `setup` made. Called at the end, also after errors."""


@attrs.define(slots=False, eq=False)
class InputOperator(Operator):
    """An operator without inputs, which creates records. It runs on the driver, for the whole run.

    It declares what it must remember over windows as `State`, which is saved with the plan of each window.
    """

    partitionable: ClassVar[bool] = False

    def check_inputs(self, context: OperatorContext) -> None:
        """Check that the inputs exist, before the launch creates anything. Raises what `setup` would raise."""

    def emit_tuples(self) -> None:
        """Emit some records, or none when there are none now. Called repeatedly until the window is closed."""
        raise NotImplementedError

    def is_exhausted(self) -> bool:
        """Return True if this launch gets no more records. Called after an `emit_tuples` that emitted nothing."""
        return True

    def tells_watermark(self) -> bool:
        """Return False if `watermark` always returns None. Override it where that depends on properties."""
        return type(self).watermark is not InputOperator.watermark

    def watermark(self) -> int | None:
        """Return the event time up to which all records have arrived, in microseconds since the epoch; None while unknown.

        Called after each window has been filled. A watermark never goes back: a smaller one than before is ignored. A window in
        which it has advanced is run even without records.
        """
        return None


def fields_of(operator: object) -> dict[str, Any]:
    """Return the properties of an operator by name: the attrs fields that its constructor takes."""
    return {a.name: getattr(operator, a.name) for a in attrs.fields(cast("Any", type(operator))) if a.init}


def limits_of(operator: Operator) -> list[RejectLimit]:
    """Return all limits of an operator's rejected records: its own, and `max_rejects`."""
    limits = list(operator.reject_limits())
    if operator.max_rejects is not None:
        count, share = share_or_count(operator.max_rejects)
        limits.append(RejectLimit(name="max_rejects", max_count=count, max_share=share, property="max_rejects"))
    return limits


def _remake(cls: type[Operator], fields: dict[str, Any], orig_class: Any) -> Operator:
    operator: Operator = cls.__new__(cls)
    aliases = {a.name: a.alias or a.name for a in attrs.fields(cls)}
    operator.__init__(**{aliases[name]: value for name, value in fields.items()})  # type: ignore[misc]
    if orig_class is not None:
        operator.__dict__["__orig_class__"] = orig_class
    return operator


def ports_of_instance(operator: Operator) -> Iterator[Port]:
    """Yield the bound ports of an operator in the order of their declaration."""
    for name in ports_of(type(operator)):
        yield getattr(operator, name)


__all__ = [
    "ErrorRecord",
    "InputOperator",
    "InputPort",
    "OnError",
    "Operator",
    "fields_of",
    "limits_of",
    "ports_of_instance",
]
