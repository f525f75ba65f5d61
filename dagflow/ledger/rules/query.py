"""Rules of ExecuteQuery entries: their inputs, and the watermarks of these."""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger.events import ExecuteQuery, InputSlice, LedgerEntry
from dagflow.ledger.rules.rule import ChainState, Violation, rule


def _inputs(entry: LedgerEntry) -> Iterator[tuple[str, InputSlice]]:
    if isinstance(entry.event, ExecuteQuery):
        for number, each in enumerate(entry.event.inputs):
            yield f"inputs[{number}]", each


@rule("DF550", "An ExecuteQuery needs a SetTransform before it")
def transform_known(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Without a transform, inputs and output are not related."""
    if isinstance(entry.event, ExecuteQuery) and before.transform is None:
        yield Violation("event", "a SetTransform before it", "ExecuteQuery")


@rule("DF551", "An ExecuteQuery names all inputs of the transform, in its order")
def inputs_as_declared(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The entry carries the positions of all inputs, also of those with nothing new."""
    if isinstance(entry.event, ExecuteQuery) and before.transform is not None:
        inputs = tuple(each.dataset_id for each in entry.event.inputs)
        if inputs != before.transform.inputs:
            yield Violation("inputs", before.transform.inputs, inputs)


@rule("DF552", "prev_block of an input is the last entry of it that was processed; absent for a new input")
def input_entry_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """No entry of an input is processed twice, or left out."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        expected = None if last is None else last.last_block
        if each.prev_block != expected:
            yield Violation(f"{field}.prev_block", _text(expected), _text(each.prev_block))


@rule("DF553", "prev_offset of an input is the last row of it that was processed; absent for a new input")
def input_offset_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """No row of an input is processed twice, or left out."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        expected = None if last is None else last.last_offset
        if each.prev_offset != expected:
            yield Violation(f"{field}.prev_offset", expected, each.prev_offset)


@rule("DF554", "new_block of an input is after prev_block, or absent when there is nothing new")
def input_entry_new(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An input with nothing new has no new_block, rather than an equal one."""
    for field, each in _inputs(entry):
        if each.new_block is not None and each.prev_block is not None and each.new_block.seq <= each.prev_block.seq:
            yield Violation(f"{field}.new_block", f"absent, or after {each.prev_block}", _text(each.new_block))


@rule("DF555", "new_offset of an input is after prev_offset, or absent when there are no new rows")
def input_offset_new(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An input with no new rows has no new_offset, rather than an equal or a smaller one."""
    for field, each in _inputs(entry):
        least = 0 if each.prev_offset is None else each.prev_offset + 1
        if each.new_offset is not None and each.new_offset < least:
            yield Violation(f"{field}.new_offset", f"absent, or at least {least}", each.new_offset)


@rule("DF556", "New rows of an input come with the entry that they were read up to")
def input_rows_have_entry(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows come with the entries that hold them."""
    for field, each in _inputs(entry):
        if each.new_offset is not None and each.new_block is None:
            yield Violation(f"{field}.new_block", f"the entry of row {each.new_offset}", None)


@rule("DF557", "The watermark of an input is carried, and never smaller")
def input_watermark_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An input that is idle keeps its watermark."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        if last is not None and last.watermark is not None and (each.watermark is None or each.watermark < last.watermark):
            yield Violation(f"{field}.watermark", f"at least {last.watermark}", each.watermark)


@rule("DF558", "A watermark does not advance beyond the smallest of the inputs' carried watermarks")
def watermark_behind_inputs(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An input whose watermark is not known yet holds the output's where it is."""
    event = entry.event
    if isinstance(event, ExecuteQuery) and event.new_watermark is not None:
        known = [each.watermark for each in event.inputs if each.watermark is not None]
        last = None if before.event is None else before.event.new_watermark
        limit = min(known) if known and len(known) == len(event.inputs) else None
        allowed = max((each for each in (last, limit) if each is not None), default=None)
        if allowed is None or event.new_watermark > allowed:
            yield Violation("new_watermark", None if allowed is None else f"at most {allowed}", event.new_watermark)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
