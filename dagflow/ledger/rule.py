"""What a rule is, and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import attrs

from dagflow.ledger.errors import LedgerRuleError
from dagflow.ledger.events import DataEvent, InputSlice, LedgerEntry, Seed, SetSchema, SetSource, SetTransform


class Broken(NamedTuple):
    """How a rule is broken: the field, what it should hold and what it holds."""

    field: str
    expected: object
    actual: object


@attrs.frozen(kw_only=True)
class Before:
    """All that rules may look at beside the entry: what is in effect before it.

    Attributes:
        previous: the entry before, None before the first.
        data: the last data entry.
        seed, schema, transform: what is in effect.
        sources: by name; on append only the source that the event names.
    """

    previous: LedgerEntry | None = None
    data: LedgerEntry | None = None
    seed: Seed | None = None
    schema: SetSchema | None = None
    transform: SetTransform | None = None
    sources: Mapping[str, SetSource] = attrs.field(factory=dict)

    def after(self, entry: LedgerEntry) -> Before:
        """What the next entry finds."""
        event = entry.event
        return attrs.evolve(
            self,
            previous=entry,
            data=self.data if entry.data is None else entry,
            seed=event if isinstance(event, Seed) else self.seed,
            schema=event if isinstance(event, SetSchema) else self.schema,
            transform=event if isinstance(event, SetTransform) else self.transform,
            sources={**self.sources, event.name: event} if isinstance(event, SetSource) else self.sources,
        )

    @property
    def event(self) -> DataEvent | None:
        """The last data event."""
        return None if self.data is None else self.data.data

    def input(self, dataset_id: str) -> InputSlice | None:
        """The last data event's progress of an input."""
        return next((each for each in getattr(self.event, "inputs", ()) if each.dataset_id == dataset_id), None)


Check = Callable[[Before, LedgerEntry], Iterator[Broken]]


@attrs.frozen
class Rule:
    """A rule: its function, its error, and where it comes from (facts of the ODF by number, or ours)."""

    check: Check
    error: type[LedgerRuleError]
    origin: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.check, "__name__", "?")

    @property
    def sentence(self) -> str:
        """The rule in words."""
        return (self.error.__doc__ or "").partition("\n")[0]

    def errors(self, before: Before, entry: LedgerEntry) -> Iterator[LedgerRuleError]:
        """One error for every way in which the entry breaks it."""
        for broken in self.check(before, entry):
            yield self.error(seq=entry.seq, field=broken.field, expected=broken.expected, actual=broken.actual)


def rule(error: type[LedgerRuleError], origin: str) -> Callable[[Check], Rule]:
    """Makes a rule of a function."""
    return lambda check: Rule(check, error, origin)
