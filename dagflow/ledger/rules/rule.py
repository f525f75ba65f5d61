"""A rule of the ledger, and the state of the chain that it may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import attrs

from dagflow.ledger.errors import LedgerRuleError
from dagflow.ledger.events import DataEvent, InputSlice, LedgerEntry, Seed, SetSchema, SetSource, SetTransform


class Violation(NamedTuple):
    """A field that breaks a rule, the value that it should hold and the one that it holds."""

    field: str
    expected: object
    actual: object


@attrs.frozen(kw_only=True)
class ChainState:
    """The state of the chain before an entry: all that a rule may look at beside the entry.

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

    def after(self, entry: LedgerEntry) -> ChainState:
        """Return the state that the next entry finds."""
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
        """Return the last data event's progress of an input."""
        return next((each for each in getattr(self.event, "inputs", ()) if each.dataset_id == dataset_id), None)


Check = Callable[[ChainState, LedgerEntry], Iterator[Violation]]


@attrs.frozen
class Rule:
    """A rule: its function, the code and the sentence that users see, and its error."""

    check: Check
    code: str
    sentence: str
    error: type[LedgerRuleError] = LedgerRuleError

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.check, "__name__", "?")

    def errors(self, before: ChainState, entry: LedgerEntry) -> Iterator[LedgerRuleError]:
        """Yield one error for each way in which the entry breaks the rule."""
        for field, expected, actual in self.check(before, entry):
            yield self.error(entry.seq, field, expected, actual, rule=self.code, sentence=self.sentence)


def rule(code: str, sentence: str, error: type[LedgerRuleError] = LedgerRuleError) -> Callable[[Check], Rule]:
    """Make a rule of a function, whose docstring says why the rule exists. `error`: the class, where callers catch it by name."""
    return lambda check: Rule(check, code, sentence, error)
