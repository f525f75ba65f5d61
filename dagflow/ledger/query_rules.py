"""Rules of ExecuteQuery entries: what they say of their inputs."""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger import rule_errors as errors
from dagflow.ledger.events import ExecuteQuery, InputSlice, LedgerEntry
from dagflow.ledger.rule import Before, Broken, rule


def _inputs(entry: LedgerEntry) -> Iterator[tuple[str, InputSlice]]:
    if isinstance(entry.event, ExecuteQuery):
        for number, each in enumerate(entry.event.inputs):
            yield f"inputs[{number}]", each


@rule(errors.TransformMissing, "ODF 16")
def transform_known(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Somebody must have said what is made of what."""
    if isinstance(entry.event, ExecuteQuery) and before.transform is None:
        yield Broken("event", "a SetTransform before it", "ExecuteQuery")


@rule(errors.InputsDiffer, "ODF 17")
def inputs_as_declared(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """All of them, also those with nothing new: their positions are carried here."""
    if isinstance(entry.event, ExecuteQuery) and before.transform is not None:
        found = tuple(each.dataset_id for each in entry.event.inputs)
        if found != before.transform.inputs:
            yield Broken("inputs", before.transform.inputs, found)


@rule(errors.InputEntryNotCarried, "ODF 19, hole 1")
def input_entry_carried(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """No entry of an input is processed twice, or left out."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        expected = None if last is None else last.last_block
        if each.prev_block != expected:
            yield Broken(f"{field}.prev_block", _text(expected), _text(each.prev_block))


@rule(errors.InputOffsetNotCarried, "ODF 19, hole 1")
def input_offset_carried(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """… and no row."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        expected = None if last is None else last.last_offset
        if each.prev_offset != expected:
            yield Broken(f"{field}.prev_offset", expected, each.prev_offset)


@rule(errors.InputEntryNotNew, "ODF 18")
def input_entry_new(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Nothing new is absent, never equal."""
    for field, each in _inputs(entry):
        if each.new_block is not None and each.prev_block is not None and each.new_block.seq <= each.prev_block.seq:
            yield Broken(f"{field}.new_block", f"absent, or after {each.prev_block}", _text(each.new_block))


@rule(errors.InputOffsetNotNew, "ODF 18, hole 2")
def input_offset_new(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Nothing new is absent, never equal, and never less."""
    for field, each in _inputs(entry):
        least = 0 if each.prev_offset is None else each.prev_offset + 1
        if each.new_offset is not None and each.new_offset < least:
            yield Broken(f"{field}.new_offset", f"absent, or at least {least}", each.new_offset)


@rule(errors.InputOffsetWithoutEntry, "ODF 20")
def input_rows_have_entry(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows come with the entries that hold them."""
    for field, each in _inputs(entry):
        if each.new_offset is not None and each.new_block is None:
            yield Broken(f"{field}.new_block", f"the entry of row {each.new_offset}", None)


@rule(errors.InputWatermarkWentBack, "ODF hole 8")
def input_watermark_goes_on(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """An input that is idle keeps its watermark."""
    for field, each in _inputs(entry):
        last = before.input(each.dataset_id)
        if last is not None and last.watermark is not None and (each.watermark is None or each.watermark < last.watermark):
            yield Broken(f"{field}.watermark", f"at least {last.watermark}", each.watermark)


@rule(errors.WatermarkAheadOfInputs, "ODF 8.2, hole 8")
def watermark_behind_inputs(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """An input whose watermark is not known yet holds the output's where it is."""
    event = entry.event
    if isinstance(event, ExecuteQuery) and event.new_watermark is not None:
        known = [each.watermark for each in event.inputs if each.watermark is not None]
        last = None if before.event is None else before.event.new_watermark
        limit = min(known) if known and len(known) == len(event.inputs) else None
        allowed = max((each for each in (last, limit) if each is not None), default=None)
        if allowed is None or event.new_watermark > allowed:
            yield Broken("new_watermark", None if allowed is None else f"at most {allowed}", event.new_watermark)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
