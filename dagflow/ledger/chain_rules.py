"""Rules of all entries: their numbers, links, times, and what they carry."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dagflow.ledger import rule_errors as errors
from dagflow.ledger.events import (
    DERIVATIVE,
    ROOT,
    AddData,
    Carried,
    ExecuteQuery,
    LedgerEntry,
    Seed,
    SetSource,
    SetTransform,
    UnknownEvent,
    kind_of,
)
from dagflow.ledger.rule import Before, Broken, rule

KINDS_OF_EVENTS = {AddData: ROOT, SetSource: ROOT, ExecuteQuery: DERIVATIVE, SetTransform: DERIVATIVE}


@rule(errors.FirstEntryNotSeed, "ODF 1")
def first_is_seed(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A chain says whose it is."""
    if before.previous is None and not isinstance(entry.event, Seed):
        yield Broken("event", "Seed", kind_of(entry.event))


@rule(errors.SeedAgain, "ODF 2")
def one_seed(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """… once."""
    if before.previous is not None and isinstance(entry.event, Seed):
        yield Broken("event", "no Seed", f"Seed of {entry.event.dataset_id}")


@rule(errors.LinkBroken, "ODF 3, 25")
def linked(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """So a change of any entry shows in the next."""
    expected = None if before.previous is None else before.previous.hash
    if entry.prev_hash != expected:
        yield Broken("prev_hash", expected, entry.prev_hash)


@rule(errors.SequenceBroken, "ODF 4")
def numbered(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Numbers are what entries are published under."""
    expected = 0 if before.previous is None else before.previous.seq + 1
    if entry.seq != expected:
        yield Broken("seq", expected, entry.seq)


@rule(errors.TimeWentBack, "ODF 5")
def time_goes_on(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Equal is fine; append keeps to it when the clock does not."""
    if before.previous is not None and entry.system_time < before.previous.system_time:
        yield Broken("system_time", f"at least {before.previous.system_time}", entry.system_time)


@rule(errors.FormatWentBack, "ours")
def format_goes_on(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """So the newest entry alone tells whether this dagflow may append."""
    if before.previous is not None and entry.format < before.previous.format:
        yield Broken("format", f"at least {before.previous.format}", entry.format)


@rule(errors.CarriedWrong, "ours, for the skip list that RFC-014 leaves open")
def carried_on(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """So what is in effect is found by one read."""
    expected = (Carried() if before.previous is None else before.previous.carried).after(entry.seq, entry.event)
    for field in attrs.fields(Carried):
        wanted, found = getattr(expected, field.name), getattr(entry.carried, field.name)
        # what newer versions carry beside, they know how to change
        if field.name != "unknown" and wanted != found:
            yield Broken(f"carried.{field.name}", wanted, found)


@rule(errors.EventNotOfKind, "ODF hole 3, 8.2")
def event_of_kind(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows of a derivative dataset come from its inputs only."""
    if isinstance(entry.event, Seed):
        if entry.event.dataset_kind not in (ROOT, DERIVATIVE):
            yield Broken("event.dataset_kind", f"{ROOT} or {DERIVATIVE}", entry.event.dataset_kind)
    elif before.seed is not None and not isinstance(entry.event, UnknownEvent):
        kind = KINDS_OF_EVENTS.get(type(entry.event), before.seed.dataset_kind)
        if kind != before.seed.dataset_kind:
            yield Broken("event", f"an event of a {before.seed.dataset_kind} dataset", kind_of(entry.event))
