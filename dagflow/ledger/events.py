"""The values in entries: frozen, with the names of RFC-014, and times in microseconds since the epoch (UTC).

They do not validate themselves: the rules for the fields of an entry and of earlier entries are in `rules`. Every class
has `unknown`: fields that a newer dagflow wrote, kept when the value is written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

MAX_OFFSET = 2**63 - 1
ROOT = "root"
DERIVATIVE = "derivative"


@attrs.frozen
class OffsetInterval:
    """The offsets of rows from `start` to `end`, both included.

    >>> OffsetInterval(10, 19).rows
    10
    """

    start: int
    end: int
    unknown: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)

    @property
    def rows(self) -> int:
        """The number of offsets in it."""
        return self.end - self.start + 1


@attrs.frozen(order=True)
class EntryRef:
    """A permanent reference to an entry of a ledger: its number and its hash.

    >>> str(EntryRef(7, "sha256:0123456789abcdef"))
    '7 (sha256:01234567…)'
    """

    seq: int
    hash: str
    unknown: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, order=False)

    def __str__(self) -> str:
        algorithm, _, digest = self.hash.partition(":")
        return f"{self.seq} ({algorithm}:{digest[:8]}…)"


@attrs.frozen(kw_only=True)
class DataFile:
    """A file of a slice.

    Attributes:
        path: relative to the dataset's folder, with `/`.
        rows: how many records it holds: at least one, or none where a file without rows takes the place of all.
        size: bytes.
        physical_hash: hash of its bytes, as `algorithm:hex`.
        interval: the offsets of its rows.
    """

    path: str
    rows: int
    size: int
    physical_hash: str
    interval: OffsetInterval
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class KeptFiles:
    """Files of earlier entries that stay where an entry replaces others.

    Attributes:
        schema: the number of the SetSchema under which they were written.
        files: in the order of their rows, as the entries that added them have them.
    """

    schema: int
    files: tuple[DataFile, ...]
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class DataSlice:
    """The rows that an entry adds: files that follow each other in the order of offsets.

    Attributes:
        interval: the offsets of all rows.
        files: at least one, unless the entry only replaces files.
        schema_hash: of the schema in effect, see `schema_hash`.
        logical_hash: of the values, however they are written; absent where the writer's bytes are reproducible themselves.
        replaces: whether these rows take the place of all earlier ones but those that are kept. What is replaced is no longer
            content of the dataset.
        kept: the earlier files that stay, by the schema that they were written under, in the order of their rows.
    """

    interval: OffsetInterval
    files: tuple[DataFile, ...]
    schema_hash: str
    logical_hash: str | None = None
    replaces: bool = False
    kept: tuple[KeptFiles, ...] = ()
    unknown: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def kept_files(self) -> list[DataFile]:
        """The earlier files that stay, in the order of their rows."""
        return [file for each in self.kept for file in each.files]

    @property
    def size(self) -> int:
        """The bytes of the files that the entry adds."""
        return sum(file.size for file in self.files)


@attrs.frozen(kw_only=True)
class Checkpoint:
    """The state of an application after a window, by the hash of the record that has it: in a run, the window's decision.

    `size`: of the record, where it is known.
    """

    hash: str
    size: int = 0
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SourceState:
    """The position in a source: `kind` names the writer of `value`, which only that writer interprets.

    >>> SourceState(name="logs", kind="dagflow/scanner", value="sha256:…").name
    'logs'
    """

    name: str
    kind: str
    value: str
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Txn:
    """The writer of a commit, by which a repeated commit is recognised.

    Attributes:
        app_id: the application, the same over restarts; two pipelines have two.
        window_id: the window of the application, from 0, ascending; a window's number always stands for the same plan.
        attempt_id: the attempt, by which a writer recognises its own entry after a lost answer.
    """

    app_id: str
    window_id: int
    attempt_id: str
    unknown: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)


@attrs.frozen(kw_only=True)
class InputSlice:
    """The part of one input that was read: the entries `(prev_block, new_block]`, the rows `(prev_offset, new_offset]`.

    Previous positions are carried always; new ones are absent when there is nothing new, never equal to the previous.

    Attributes:
        watermark: the newest watermark seen of this input, carried.
    """

    dataset_id: str
    prev_block: EntryRef | None = None
    new_block: EntryRef | None = None
    prev_offset: int | None = None
    new_offset: int | None = None
    watermark: int | None = None
    unknown: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def last_block(self) -> EntryRef | None:
        """The last entry that was processed."""
        return self.prev_block if self.new_block is None else self.new_block

    @property
    def last_offset(self) -> int | None:
        """The last row that was processed."""
        return self.prev_offset if self.new_offset is None else self.new_offset

    def joined(self, after: InputSlice) -> InputSlice:
        """Return the slice that begins with this one and ends with one that follows it."""
        block, offset = after.last_block, after.last_offset
        return attrs.evolve(
            after,
            prev_block=self.prev_block,
            new_block=None if block == self.prev_block else block,
            prev_offset=self.prev_offset,
            new_offset=None if offset == self.prev_offset else offset,
        )

    @property
    def rows(self) -> int:
        """The number of new rows.

        >>> InputSlice(dataset_id="d", new_offset=0).rows, InputSlice(dataset_id="d", prev_offset=0).rows
        (1, 0)
        """
        if self.new_offset is None:
            return 0
        return self.new_offset + 1 if self.prev_offset is None else self.new_offset - self.prev_offset


@attrs.frozen(kw_only=True)
class Seed:
    """Begins a ledger, with its dataset and its kind: `root` (from outside sources) or `derivative` (from other datasets)."""

    dataset_id: str
    dataset_kind: str = ROOT
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SchemaField:
    """A column: its type as Arrow spells it."""

    name: str
    type: str
    optional: bool = False
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SetSchema:
    """The schema of all slices after it, whole.

    Attributes:
        written: how files hold the rows, as far as their names do not say: `kind` (`csv`, `json`, `parquet`), and of CSV
            `delimiter`, `quote`, `null` and `header`. Columns that name folders are not in the files.
        replaces: whether the next slice takes the place of all rows that are there, so that fields may get any types.
    """

    schema: tuple[SchemaField, ...]
    written: Mapping[str, Any] = attrs.field(factory=dict)
    replaces: bool = False
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SetTransform:
    """The origin of a derivative dataset: the ids of its inputs in their order, and the application that makes it."""

    inputs: tuple[str, ...]
    plan_hash: str
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    engine_version: str | None = None
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SetSource:
    """A source of a root dataset's rows; several sources have several names."""

    name: str
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    merge: str = "append"
    unknown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class AddData:
    """Progress of a root dataset. It repeats values that did not change, so that the next entry needs only this one.

    Attributes:
        prev_offset: end of the last slice that was not empty, also here where there is no data; absent before the first.
        prev_checkpoint: hash of the last data entry's checkpoint.
        new_watermark: stands on every entry once it was set, and never goes back.
        sources: the states of all sources, by name.
        extra: for applications that build upon the ledger; plain JSON without floats.
    """

    txn: Txn
    prev_offset: int | None = None
    new_data: DataSlice | None = None
    prev_checkpoint: str | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: int | None = None
    sources: Mapping[str, SourceState] = attrs.field(factory=dict)
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    unknown: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def last_offset(self) -> int | None:
        """The newest row after it."""
        return self.prev_offset if self.new_data is None else self.new_data.interval.end


@attrs.frozen(kw_only=True)
class ExecuteQuery:
    """Progress of a derivative dataset: the processed parts of its inputs, and the result. See `AddData`."""

    txn: Txn
    inputs: tuple[InputSlice, ...]
    prev_offset: int | None = None
    new_data: DataSlice | None = None
    prev_checkpoint: str | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: int | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    unknown: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def last_offset(self) -> int | None:
        """The newest row after it."""
        return self.prev_offset if self.new_data is None else self.new_data.interval.end


@attrs.frozen
class UnknownEvent:
    """An event that a newer dagflow wrote: it can be read and copied, but nothing is appended after it."""

    kind: str
    unknown: Mapping[str, Any]


DataEvent: TypeAlias = AddData | ExecuteQuery
Event: TypeAlias = Seed | SetSchema | SetTransform | SetSource | AddData | ExecuteQuery | UnknownEvent
KINDS: dict[str, type[Any]] = {c.__name__: c for c in (Seed, SetSchema, SetTransform, SetSource, AddData, ExecuteQuery)}


def kind_of(event: Event) -> str:
    """Return the name of an event's kind.

    >>> kind_of(SetSource(name="logs"))
    'SetSource'
    """
    return event.kind if isinstance(event, UnknownEvent) else type(event).__name__


@attrs.frozen(kw_only=True)
class CarriedNumbers:
    """The numbers of the newest entries of the rare kinds up to an entry, carried so that readers need not scan.

    Attributes:
        schema: the newest SetSchema.
        transform: the newest SetTransform.
        data: the newest data entry.
        rows: the newest data entry that added rows.
        replaced: the newest data entry that replaced earlier rows: with it begins the content.
        sources: the newest SetSource by the source's name.
        windows: the newest window committed, by application.
        kinds: all kinds of events up to here, sorted.
    """

    schema: int | None = None
    transform: int | None = None
    data: int | None = None
    rows: int | None = None
    replaced: int | None = None
    sources: Mapping[str, int] = attrs.field(factory=dict)
    windows: Mapping[str, int] = attrs.field(factory=dict)
    kinds: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = attrs.field(factory=dict)

    def after(self, seq: int, event: Event) -> CarriedNumbers:
        """Return the numbers that the next entry carries."""
        changes: dict[str, Any] = {}
        if isinstance(event, SetSchema):
            changes["schema"] = seq
        elif isinstance(event, SetTransform):
            changes["transform"] = seq
        elif isinstance(event, SetSource):
            changes["sources"] = {**self.sources, event.name: seq}
        elif isinstance(event, AddData | ExecuteQuery):
            changes["data"] = seq
            changes["windows"] = {**self.windows, event.txn.app_id: event.txn.window_id}
            if event.new_data is not None:
                changes["rows"] = seq
                if event.new_data.replaces:
                    changes["replaced"] = seq
        if kind_of(event) not in self.kinds:
            changes["kinds"] = tuple(sorted({*self.kinds, kind_of(event)}))
        return attrs.evolve(self, **changes)


@attrs.frozen(kw_only=True)
class LedgerEntry:
    """One entry of a ledger.

    Attributes:
        seq: its number, from 0.
        prev_hash: the hash of the entry before; absent in the first.
        system_time: when it was made, microseconds since the epoch; never before the entry before.
        event: what happened.
        carried: where to find what is in effect here.
        format: the version of the encoding.
        hash: of its stored bytes; known of entries that were read or appended.
    """

    seq: int
    prev_hash: str | None = None
    system_time: int
    event: Event
    carried: CarriedNumbers
    format: int
    unknown: Mapping[str, Any] = attrs.field(factory=dict)
    hash: str = attrs.field(default="", eq=False, metadata={"stored": False})

    @property
    def ref(self) -> EntryRef:
        """The number and hash of the entry."""
        return EntryRef(self.seq, self.hash)

    @property
    def data(self) -> DataEvent | None:
        """The event, if it is a data event."""
        return self.event if isinstance(self.event, AddData | ExecuteQuery) else None

    @property
    def content(self) -> list[tuple[int, DataFile]]:
        """The files that the entry keeps and adds, in the order of their rows, each with the number of its SetSchema."""
        data = None if self.data is None else self.data.new_data
        if data is None or self.carried.schema is None:
            return []
        kept = [(each.schema, file) for each in data.kept for file in each.files]
        return kept + [(self.carried.schema, file) for file in data.files]
