"""The protocols of operators: methods that only some operators have, one protocol for each ability.

`Keyed`, `KeepsCurrent`, `Stateful`, `SchemaAware`, `ReadsFiles`, `WritesFiles` and `LimitsRejects` have defaults, which every
operator inherits: override the methods that apply. The others are structural: an operator that has the methods has the protocol,
and the runtime asks with `isinstance`. For users: docs/reference/protocols.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import attrs

from dagflow.model.operator.stream_columns import StreamColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.model.operator.base import Operator
    from dagflow.model.operator.context import OperatorContext


class Keyed:
    """Operators that need all records with equal keys in one partition."""

    def partition_key(self, port: str) -> Any:
        """Return the key of an input port where it depends on properties; None for the key that the port declares.

        A key is a function of the record, the name of a column, or a tuple of names. The attribute `partition_by`, where it is
        set, takes precedence.
        """

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the partial aggregation that runs before the exchange to an input port; None for none.

        That is an operator with the ports `input` and `output`, and the name of the input port of this operator that takes its
        output; both ports use the same key. The result must be the same without it: it is left out where no exchange is needed,
        or where `on_error` is `route`.
        """


@runtime_checkable
class NamesSources(Protocol):
    """Keyed operators whose rows hold the values of rows that they were made of, not only their key."""

    def source_columns(self, port: str, columns: Sequence[str], made: Sequence[str]) -> dict[str, str] | None:
        """Return columns of an input port, with those of the output that have their values.

        A row of the output was made of the rows that have its values in these columns. Of other operators, these are the columns
        of the key, or all where it selects rows. None: these.

        Args:
            port: the input port.
            columns: those of the rows that arrive there.
            made: those of the output.
        """
        ...


@runtime_checkable
class ComputesKey(Protocol):
    """Operators that name sources, and group rows by columns that they compute: by time windows, for example."""

    def with_key(self, port: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch] | None:
        """Return rows of an input port with these columns, a row several times if it is in several groups; None: as they are.

        Other columns stay. Raises ValueError for a row that is in no group.
        """
        ...


@runtime_checkable
class GroupsByTime(Protocol):
    """Keyed operators that group records by time, too. The trace of a row leads to all records of its key, and says so."""

    @property
    def groups_by_time(self) -> bool:
        """True if they do."""
        ...


class KeepsCurrent:
    """Sinks that keep the current result of a stream whose rows may be taken back, and operators that can give it to them."""

    def behind_current(self) -> tuple[Operator, Operator] | None:
        """Return the operator that the planner puts before this sink where it keeps a current result, and the sink then.

        That is where rows that come may be taken back, or where it `replaces_rows` of operators that cover all input.

        In each window that changes anything, the operator emits on `output` all rows that stand, of those that came at `input`;
        or, for a sink that keeps a changelog, the changes as rows. None for operators that follow changes by themselves, or not
        at all.
        """

    def replaces_rows(self) -> bool:
        """Return whether this sink puts the rows of a window in the place of all earlier ones, because its user says so.

        Its content is then that of one window over all input, of the input of a launch, or of a window, by the operators above.
        """
        return False

    def emitting_result(self) -> Operator | None:
        """Return the operator that takes the place of this one where only a sink follows, which gets all rows that stand.

        It waits for emission points (`waits_for_emission`), and emits all of them then, none taken back. None: the planner keeps
        the rows once more, before the sink.
        """
        return None

    def ordering(self) -> Operator | None:
        """Return the operator that puts the rows of this one in their order before a sink that writes them whole.

        It emits all rows that stand at emission points, of those that this one has emitted. None: the rows have no order.
        """
        return None

    def row_keys(self) -> tuple[str, ...]:
        """Return the columns by which this sink finds a row that is taken back; none where it compares whole rows.

        Two rows that are equal in them may not stand at the same time. Where the DAG does not exclude it, the planner puts an
        operator before the sink that finds such rows.
        """
        return ()

    def content_properties(self) -> tuple[str, ...]:
        """Return the properties that give this sink's content its meaning where rows may be taken back.

        A launch that changes one of them cannot resume: rows would be taken back that stand otherwise.
        """
        return ()


@attrs.frozen
class StateSize:
    """A description of what an operator keeps over windows, and of what bounds it, for `dagflow plan`.

    Attributes:
        kept: the rows or values that are kept: `a row for each group`.
        bounded_by: what bounds them: `the different values of shop`. None: they grow with the input, and a continuous launch
            warns. Empty: they are so few that it need not be said.

    >>> str(StateSize("a row for each group", "the different values of shop")), str(StateSize("all rows"))
    ('a row for each group, bounded by the different values of shop', 'all rows, bounded by nothing')
    """

    kept: str
    bounded_by: str | None = None

    def __str__(self) -> str:
        """Return it as the plan shows it."""
        return self.kept if self.bounded_by == "" else f"{self.kept}, bounded by {self.bounded_by or 'nothing'}"


class Stateful:
    """Operators whose properties decide which state they keep over windows."""

    def keeps_state(self, name: str) -> bool:
        """Return False if this instance does not need a `State` of its class over windows."""
        return True

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give the state its meaning. A launch that changes one of them cannot resume."""
        return ()

    def state_size(self, changing: Collection[str]) -> StateSize | None:
        """Describe what is kept over windows. `changing`: the input ports where rows may be taken back.

        None: `dagflow plan` names the states that the class declares.
        """
        return None

    def waits_for_sources(self) -> str | None:
        """Return the properties under which nothing is emitted before all sources declare a watermark; None without any."""
        return None


@attrs.frozen
class AcceptedType:
    """The type of the records that an operator takes.

    Attributes:
        type: the type.
        name: its description in messages.
        help: the remedy for other records.
    """

    type: Any
    name: str
    help: str


class SchemaAware:
    """Operators that know columns of their records from properties or from their input, not from port types."""

    def agree(self, items: Sequence[Any], before: Any, context: OperatorContext) -> Any:
        """Return the plain data, or None, that all tasks of a window must agree on and find as `context.agreed`.

        Called on the driver's instance (not set up) when a window has work items for it. The result is published with the plan.
        `before` is the result for the window before, None at first.
        """
        return before

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """Return the columns of an output port, `(name, Arrow type)`, where `agreed` declares what the port's type does not."""
        return None

    def declared_columns(self, port: str) -> list[tuple[str, str]] | None:
        """Return columns that an output port has whatever comes, where properties declare them; the input may bring more.

        They are asked for until readers have agreed on columns (`agree`), which they do when the first files come.
        """
        return None

    def column_names(self, port: str) -> Sequence[str] | None:
        """Return the names of all columns of an output port, where properties declare what the port's type does not."""
        columns = self.emitted_columns(port, None)
        return None if columns is None else [name for name, _ in columns]

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return what is known about the rows of an output port, given what is known about those that arrive at input ports.

        None: what the type of the port or `emitted_columns` says. Where an input port has the same type, whatever it is, rows of
        it have its columns too; but which columns identify a row, only this method says.
        """
        return None

    def emitted_type(self, port: str) -> Any:
        """Return the type of the records of an output port, where properties make it another than the port's; None elsewhere.

        `Any` stands for rows, whose columns `result_columns` says: then the operator gets batches wherever its records have
        columns.
        """
        return None

    def accepted_type(self, port: str) -> AcceptedType | None:
        """Return the type of the records that an input port takes, where that is narrower than the port's; None elsewhere.

        The DAG's check refuses streams none of whose records could be of that type.
        """
        return None

    def needed_columns(self, port: str) -> Mapping[str, Sequence[str]]:
        """Return, by property, the columns that records of an input port must have. The DAG's check refuses other records."""
        return {}

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the columns of an input port that the operator needs, for what it emits and what it keeps; None: all of them.

        `wanted` returns those that operators behind an output port need. Names that the rows do not have may be among them.
        """
        return None

    def reading_only(self, port: str, columns: frozenset[str]) -> Any:
        """Return the operator to plan in the place of this one, since nothing behind an output port reads other columns."""
        return self

    def check_columns(self, port: str, schema: pa.Schema) -> None:
        """Raise an error if the operator cannot take records with these columns at an input port. Called by the DAG's check."""

    def describe_columns(self, port: str) -> str | None:
        """Return the words in which `dagflow plan` describes the columns of an output port whose type does not declare them."""
        return None


class ReadsFiles:
    """Operators whose tasks read files."""

    def input_paths(self) -> list[str]:
        """Return the files and folders that the tasks read."""
        return []


class WritesFiles:
    """Operators whose tasks write files with `context.create_file`. Other sinks derive from `dagflow.Sink`."""

    def output_folders(self) -> list[str]:
        """Return the folders of the files: datasets, each with a ledger."""
        return []

    def private_folders(self) -> list[str]:
        """Return folders of further files, which are not datasets and have no ledger."""
        return []

    def written_schema(self) -> list[tuple[str, str]] | None:
        """Return the columns of the files, `(name, Arrow type)`, for the ledger of the output folder.

        None stands for the columns of the records that arrive. Any of these may be null, and they are unknown before records
        arrive where the type of the port does not declare them.
        """
        return [("value", "binary")]

    def added_columns(self) -> dict[str, str]:
        """Return the columns that the files have behind those of the records that arrive, with their Arrow types."""
        return {}

    def written_format(self) -> dict[str, Any]:
        """Return the format of the files, if their names do not show it. See `SetSchema.written` of `dagflow.ledger`."""
        return {}

    def kept_snapshots(self) -> int | None:
        """Return how many replaced snapshots are kept, where the files of a window take the place of all earlier files.

        None: they are added to these.
        """
        return None

    def replaces_partitions(self) -> bool:
        """Return whether the files of a current result only take the place of those in their own folders.

        A file without rows says that its folder has no rows any more.
        """
        return False


OnBreach = Literal["fail", "warn"]


@attrs.frozen(kw_only=True)
class RejectLimit:
    """A limit for the records that an operator rejects in a window: a number of records, or a share of those that came.

    Attributes:
        name: the limit's name in reports.
        max_count: the largest number of rejected records.
        max_share: the largest share of them, from 0 to 1.
        on_breach: `fail` ends the run before the window is committed, `warn` warns and commits it.
        property: the property that sets the limit, for messages.

    >>> limit = RejectLimit(name="clean", max_share=0.01)
    >>> limit.is_breached(rejected=1, records=100), limit.is_breached(rejected=1, records=99)
    (False, True)
    """

    name: str
    max_count: int | None = None
    max_share: float | None = None
    on_breach: OnBreach = "fail"
    property: str = ""

    def is_breached(self, rejected: int, records: int) -> bool:
        """Return whether so many rejected records, of so many that came, are too many."""
        if self.max_count is not None and rejected > self.max_count:
            return True
        from fractions import Fraction  # only here: `import dagflow` does not wait for it

        # the share as it was written: 0.29 * 100 is less than 29 in floating point
        return self.max_share is not None and rejected > Fraction(str(self.max_share)) * records


class LimitsRejects:
    """Operators that expect something of their records: `context.reject` counts the records that fall short.

    The property `max_rejects`, which every operator has, is one more limit.
    """

    def reject_limits(self) -> Sequence[RejectLimit]:
        """Return the limits of rejected records that hold in every window, over all tasks."""
        return ()


@runtime_checkable
class EmitsItems(Protocol):
    """An operator on the driver that emits without an input record: an input operator, or a splitter behind one."""

    def emit_tuples(self) -> None:
        """Emit some records, or none when there are none now."""
        ...


@runtime_checkable
class NamesPosition(Protocol):
    """An input operator whose position the ledgers of the outputs hold."""

    def position_text(self, states: Mapping[str, Any]) -> str:
        """Return the position after a window as text, by the values of `State` that were saved with the window's plan."""
        ...


@runtime_checkable
class WeighsItems(Protocol):
    """An operator that knows how much work its items are. Items are distributed by weight."""

    def item_weight(self, item: Any) -> int:
        """Return the size of a work item, in bytes where they are known."""
        ...


@runtime_checkable
class GroupsItems(Protocol):
    """An operator that may need related items, the blocks of a file for example, in one partition and in order."""

    @property
    def sequential(self) -> bool:
        """True if it does. Its items are never split, and a window starts when the one before is decided."""
        ...

    def item_group(self, item: Any) -> str | None:
        """Return the group whose items stay together; None for an item that may go anywhere."""
        ...


@runtime_checkable
class Splittable(Protocol):
    """An operator whose items may be split while they are read; `dagflow.ranges.SplitsItems` says how."""

    @property
    def splittable(self) -> bool:
        """True if items may be cut anywhere, False if a format or property forbids it."""
        ...


@runtime_checkable
class DividesItems(Protocol):
    """An operator that permits items to be split. Without a `tracker_of`, their bounds are integers or bytes."""

    def can_split(self, item: Any) -> bool:
        """Return True if different tasks may read parts of an item."""
        ...


@runtime_checkable
class HasRange(Protocol):
    """A work item that is a half-open range of its source."""

    start: Any
    stop: Any


@runtime_checkable
class NamesFile(Protocol):
    """A work item that is read from a file."""

    file_path: str


@runtime_checkable
class FollowsBlock(Protocol):
    """A work item that may be read on the stream of the one before it, if one reader gets both."""

    previous_block_id: Any
    """The `block_id` of that item; -1 for none."""


@runtime_checkable
class RereadsRecords(Protocol):
    """A reader that finds a record again by its position, for `dagflow trace --exact`."""

    def record_at(self, item: Any, position: Any) -> bytes | None:
        """Return the bytes of the record in its source; None if no record starts there."""
        ...


@runtime_checkable
class LocatesRows(Protocol):
    """A reader of batches that knows where in the source a row was read."""

    def origin_of(self, row: int) -> Any:
        """Return the `dagflow.scan.RowOrigin` of a row of the batch it has emitted last."""
        ...


DEFAULTS = (Keyed, Stateful, SchemaAware, ReadsFiles, WritesFiles, LimitsRejects)
"""The protocols that every operator inherits."""
