"""The state from which a writer continues: a function of one data entry, however long the chain is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from dagflow.ledger.events import (
    AddData,
    Checkpoint,
    DataEvent,
    DataFile,
    DataSlice,
    EntryRef,
    ExecuteQuery,
    InputSlice,
    KeptFiles,
    LedgerEntry,
    OffsetInterval,
    SourceState,
    Txn,
)

SAME: Final[Any] = object()
"""For a checkpoint: the one before still holds."""


@attrs.frozen(kw_only=True)
class ResumeState:
    """The state of a dataset, which makes the next data event with all that must be carried.

    Attributes:
        at: the last data entry; None before the first.
        last_offset: of the newest row; None when there are no rows.
        checkpoint, watermark, sources: as the last data entry states them.
        inputs: for each input of a derivative dataset, what the next query begins with (only `prev_…` and the watermark).
        windows: the newest window committed, by application.

    >>> ResumeState().next_offset, ResumeState(last_offset=0).next_offset
    (0, 1)
    """

    at: EntryRef | None = None
    last_offset: int | None = None
    checkpoint: Checkpoint | None = None
    watermark: int | None = None
    sources: Mapping[str, SourceState] = attrs.field(factory=dict)
    inputs: Mapping[str, InputSlice] = attrs.field(factory=dict)
    windows: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def next_offset(self) -> int:
        """The offset of the next row: ask this, and never whether `last_offset` is true (0 is an offset)."""
        return 0 if self.last_offset is None else self.last_offset + 1

    def is_advanced_by(self, event: DataEvent) -> bool:
        """Return whether an event advances more than the checkpoint: rows, the watermark, a source or an input."""
        if event.new_data is not None or event.new_watermark != self.watermark:
            return True
        if isinstance(event, AddData):
            return event.sources != self.sources
        return any(each.new_block is not None for each in event.inputs)

    def data_slice(
        self,
        files: Sequence[tuple[str, int, int, str]],
        *,
        schema_hash: str,
        logical_hash: str | None = None,
        replaces: bool = False,
        kept: Sequence[KeptFiles] = (),
    ) -> DataSlice | None:
        """Return the slice of new files, given as `(path, rows, size, hash)` in the order of their rows.

        Files without rows are left out; None when no rows are left: no data is an absent slice. `replaces`: the rows take the
        place of all earlier ones but those that are `kept` (see `LedgerReader.files_kept`); where none take their place, the
        first file says so, if there is one.
        """
        made = []
        start = offset = self.next_offset
        for path, rows, size, physical_hash in files:
            if rows:
                interval = OffsetInterval(offset, offset + rows - 1)
                made.append(DataFile(path=path, rows=rows, size=size, physical_hash=physical_hash, interval=interval))
                offset += rows
        if not made and not (replaces and start):
            return None
        if not made and files:
            path, rows, size, physical_hash = files[0]
            interval = OffsetInterval(start, start - 1)
            made.append(DataFile(path=path, rows=rows, size=size, physical_hash=physical_hash, interval=interval))
        return DataSlice(
            interval=OffsetInterval(start, offset - 1),
            files=tuple(made),
            schema_hash=schema_hash,
            logical_hash=logical_hash,
            replaces=replaces,
            kept=tuple(kept),
        )

    def add_data(
        self,
        txn: Txn,
        new_data: DataSlice | None = None,
        *,
        checkpoint: Checkpoint | None = SAME,
        watermark: int | None = None,
        sources: Iterable[SourceState] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> AddData:
        """Return the next event of a root dataset: what is not given is carried; a smaller watermark does not count."""
        return AddData(
            txn=txn,
            prev_offset=self.last_offset,
            new_data=new_data,
            prev_checkpoint=None if self.checkpoint is None else self.checkpoint.hash,
            new_checkpoint=self.checkpoint if checkpoint is SAME else checkpoint,
            new_watermark=_newer(self.watermark, watermark),
            sources={**self.sources, **{each.name: each for each in sources}},
            extra=extra or {},
        )

    def execute_query(
        self,
        txn: Txn,
        inputs: Iterable[InputSlice],
        new_data: DataSlice | None = None,
        *,
        checkpoint: Checkpoint | None = SAME,
        watermark: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ExecuteQuery:
        """Return the next event of a derivative dataset; `inputs` come from `Ledger.slice_after`, in the order of the transform.

        The watermark is the smallest of the inputs' carried ones unless given; it never goes back.
        """
        inputs = tuple(inputs)
        if watermark is None:
            watermark = smallest_watermark(each.watermark for each in inputs)
        return ExecuteQuery(
            txn=txn,
            inputs=inputs,
            prev_offset=self.last_offset,
            new_data=new_data,
            prev_checkpoint=None if self.checkpoint is None else self.checkpoint.hash,
            new_checkpoint=self.checkpoint if checkpoint is SAME else checkpoint,
            new_watermark=_newer(self.watermark, watermark),
            extra=extra or {},
        )


def resume(entry: LedgerEntry | None) -> ResumeState:
    """Return the state after a data entry, from that entry alone; None: from the beginning."""
    event = None if entry is None else entry.data
    if entry is None or event is None:
        return ResumeState()
    return ResumeState(
        at=entry.ref,
        last_offset=event.last_offset,
        checkpoint=event.new_checkpoint,
        watermark=event.new_watermark,
        sources=event.sources if isinstance(event, AddData) else {},
        inputs={each.dataset_id: carried(each) for each in event.inputs} if isinstance(event, ExecuteQuery) else {},
        windows=entry.carried.windows,
    )


def carried(each: InputSlice) -> InputSlice:
    """Return the slice of an input without anything new, for the next entry."""
    return InputSlice(
        dataset_id=each.dataset_id, prev_block=each.last_block, prev_offset=each.last_offset, watermark=each.watermark
    )


def fold(entries: Iterable[LedgerEntry]) -> ResumeState:
    """Return the state after all entries, from what each of them adds: what `resume` must equal. For tests and `verify`."""
    state = ResumeState()
    for entry in entries:
        event = entry.data
        if event is None:
            continue
        inputs = {}
        for each in event.inputs if isinstance(event, ExecuteQuery) else ():
            last = state.inputs.get(each.dataset_id, InputSlice(dataset_id=each.dataset_id))
            inputs[each.dataset_id] = attrs.evolve(
                last,
                prev_block=last.prev_block if each.new_block is None else each.new_block,
                prev_offset=last.prev_offset if each.new_offset is None else each.new_offset,
                watermark=_newer(last.watermark, each.watermark),
            )
        state = ResumeState(
            at=entry.ref,
            last_offset=state.last_offset if event.new_data is None else event.new_data.interval.end,
            checkpoint=event.new_checkpoint,
            watermark=_newer(state.watermark, event.new_watermark),
            sources={**state.sources, **(event.sources if isinstance(event, AddData) else {})},
            inputs=inputs,
            windows={**state.windows, event.txn.app_id: event.txn.window_id},
        )
    return state


def smallest_watermark(watermarks: Iterable[int | None]) -> int | None:
    """Return the watermark of what is made of several inputs: the smallest of theirs. Unknown (None) for one of them: unknown.

    Given are the carried ones of all inputs: one that is idle still counts with what it said last, so the result never jumps.

    >>> smallest_watermark([30, 10, 20]), smallest_watermark([30, None]), smallest_watermark([])
    (10, None, None)
    """
    known = list(watermarks)
    return min((each for each in known if each is not None), default=None) if None not in known else None


def _newer(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)
