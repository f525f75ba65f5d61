"""Rules of all entries: their numbers, links, times, and what they carry."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dagflow.ledger.events import (
    DERIVATIVE,
    ROOT,
    AddData,
    CarriedNumbers,
    ExecuteQuery,
    LedgerEntry,
    Seed,
    SetSource,
    SetTransform,
    UnknownEvent,
    kind_of,
)
from dagflow.ledger.rules.rule import ChainState, Violation, rule

KINDS_OF_EVENTS = {AddData: ROOT, SetSource: ROOT, ExecuteQuery: DERIVATIVE, SetTransform: DERIVATIVE}


@rule("DF520", "The first entry is a Seed")
def first_is_seed(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A chain says which dataset it belongs to."""
    if before.previous is None and not isinstance(entry.event, Seed):
        yield Violation("event", "Seed", kind_of(entry.event))


@rule("DF521", "Only the first entry is a Seed")
def one_seed(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A chain belongs to one dataset."""
    if before.previous is not None and isinstance(entry.event, Seed):
        yield Violation("event", "no Seed", f"Seed of {entry.event.dataset_id}")


@rule("DF522", "An entry holds the hash of the one before; the first holds none")
def linked(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A change of any entry shows in the next one."""
    expected = None if before.previous is None else before.previous.hash
    if entry.prev_hash != expected:
        yield Violation("prev_hash", expected, entry.prev_hash)


@rule("DF523", "Entries are numbered 0, 1, 2, … without a gap")
def numbered(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Entries are published under their numbers."""
    expected = 0 if before.previous is None else before.previous.seq + 1
    if entry.seq != expected:
        yield Violation("seq", expected, entry.seq)


@rule("DF524", "The system time of an entry is not before that of the entry before")
def time_not_earlier(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Equal times are allowed: `append` repeats the last time when the clock was set back."""
    if before.previous is not None and entry.system_time < before.previous.system_time:
        yield Violation("system_time", f"at least {before.previous.system_time}", entry.system_time)


@rule("DF525", "The format version of an entry is not below that of the entry before")
def format_not_older(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """The newest entry alone says whether this version of dagflow may append."""
    if before.previous is not None and entry.format < before.previous.format:
        yield Violation("format", f"at least {before.previous.format}", entry.format)


@rule("DF526", "An entry carries the numbers of the newest schema, transform, sources, data and windows up to itself")
def numbers_carried(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """One read finds what is in effect."""
    expected = (CarriedNumbers() if before.previous is None else before.previous.carried).after(entry.seq, entry.event)
    for field in attrs.fields(CarriedNumbers):
        wanted, actual = getattr(expected, field.name), getattr(entry.carried, field.name)
        # newer versions carry further numbers, which only they know how to change
        if field.name != "unknown" and wanted != actual:
            yield Violation(f"carried.{field.name}", wanted, actual)


@rule("DF527", "Root datasets take AddData and SetSource, derivative ones ExecuteQuery and SetTransform")
def event_of_kind(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows of a derivative dataset come from its inputs only."""
    if isinstance(entry.event, Seed):
        if entry.event.dataset_kind not in (ROOT, DERIVATIVE):
            yield Violation("event.dataset_kind", f"{ROOT} or {DERIVATIVE}", entry.event.dataset_kind)
    elif before.seed is not None and not isinstance(entry.event, UnknownEvent):
        kind = KINDS_OF_EVENTS.get(type(entry.event), before.seed.dataset_kind)
        if kind != before.seed.dataset_kind:
            yield Violation("event", f"an event of a {before.seed.dataset_kind} dataset", kind_of(entry.event))
