"""The rules of a ledger, as a table: append refuses an entry that breaks one, verify reports it.

Most come from [RFC-014 of the Open Data Fabric](https://docs.kamu.dev/odf/). Some of its rules are not here. Sources are of one
kind, so push and polling sources need no rules of their own. A transform has the hash of a plan instead of the texts of queries.
What does not follow from an entry alone is checked by `append` and `verify`: `InputDiverged`, for instance, needs the ledgers of
the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger.errors import LedgerRuleError
from dagflow.ledger.events import LedgerEntry
from dagflow.ledger.rules import chain, data, query, settings
from dagflow.ledger.rules.rule import ChainState, Rule

RULES: tuple[Rule, ...] = tuple(
    each for module in (chain, data, query, settings) for each in vars(module).values() if isinstance(each, Rule)
)


def broken_rules(before: ChainState, entry: LedgerEntry) -> Iterator[LedgerRuleError]:
    """Return all ways in which an entry breaks rules, in the order of the table.

    >>> from dagflow.ledger import CarriedNumbers, LedgerEntry, SetSource
    >>> entry = LedgerEntry(seq=0, system_time=0, event=SetSource(name="logs"), carried=CarriedNumbers(), format=1)
    >>> [each.rule for each in broken_rules(ChainState(), entry)]
    ['DF520', 'DF526', 'DF526']
    """
    for each in RULES:
        yield from each.errors(before, entry)


def check_rules(before: ChainState, entry: LedgerEntry) -> None:
    """Raise the LedgerRuleError of the first rule that an entry breaks."""
    for error in broken_rules(before, entry):
        raise error
