"""The table of all rules. Appending checks them, verifying checks them; each has a function, an error, and a test that needs it.

Of the rules of kamu (facts of the ODF, section 2) some have no counterpart: 22b and 23 (push and polling sources are one kind of
source here), the texts of queries in 21 (an application's plan has a hash instead), 26 and 27 (the newest entry, and files being
there, are no matter of the entry alone: `Ledger.append` and `verify` see to them), and `InputDiverged`, which needs the inputs'
ledgers (`Ledger.verify(inputs=…)`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.ledger.chain_rules import (
    carried_on,
    event_of_kind,
    first_is_seed,
    format_goes_on,
    linked,
    numbered,
    one_seed,
    time_goes_on,
)
from dagflow.ledger.data_rules import (
    checkpoint_carried,
    file_once,
    files_tile,
    interval_in_order,
    offset_carried,
    offset_in_range,
    offsets_sequential,
    path_inside,
    rows_match,
    schema_in_effect,
    schema_known,
    sizes_positive,
    slice_has_files,
    something_added,
    something_executed,
    sources_carried,
    sources_named,
    watermark_goes_on,
    window_new,
)
from dagflow.ledger.errors import LedgerRuleError
from dagflow.ledger.events import LedgerEntry
from dagflow.ledger.query_rules import (
    input_entry_carried,
    input_entry_new,
    input_offset_carried,
    input_offset_new,
    input_rows_have_entry,
    input_watermark_goes_on,
    inputs_as_declared,
    transform_known,
    watermark_behind_inputs,
)
from dagflow.ledger.rule import Before, Rule
from dagflow.ledger.setting_rules import (
    schema_adds_optional,
    schema_changes,
    schema_fields_once,
    schema_keeps_fields,
    schema_keeps_optionality,
    schema_keeps_types,
    source_changes,
    transform_changes,
    transform_has_inputs,
    transform_inputs_named,
    transform_inputs_once,
)

RULES: tuple[Rule, ...] = (
    # the chain
    first_is_seed,
    one_seed,
    linked,
    numbered,
    time_goes_on,
    format_goes_on,
    carried_on,
    event_of_kind,
    # what data entries carry on
    offset_carried,
    checkpoint_carried,
    watermark_goes_on,
    sources_carried,
    sources_named,
    window_new,
    # what they add
    offsets_sequential,
    interval_in_order,
    offset_in_range,
    schema_known,
    schema_in_effect,
    slice_has_files,
    files_tile,
    rows_match,
    path_inside,
    file_once,
    sizes_positive,
    something_added,
    something_executed,
    # inputs
    transform_known,
    inputs_as_declared,
    input_entry_carried,
    input_offset_carried,
    input_entry_new,
    input_offset_new,
    input_rows_have_entry,
    input_watermark_goes_on,
    watermark_behind_inputs,
    # settings
    transform_has_inputs,
    transform_inputs_once,
    transform_inputs_named,
    transform_changes,
    source_changes,
    schema_changes,
    schema_fields_once,
    schema_keeps_fields,
    schema_keeps_types,
    schema_adds_optional,
    schema_keeps_optionality,
)


def broken_rules(before: Before, entry: LedgerEntry) -> Iterator[LedgerRuleError]:
    """All ways in which an entry breaks rules, in the order of the table.

    >>> from dagflow.ledger import Carried, LedgerEntry, SetSource
    >>> entry = LedgerEntry(seq=0, system_time=0, event=SetSource(name="logs"), carried=Carried(), format=1)
    >>> [type(each).__name__ for each in broken_rules(Before(), entry)]
    ['FirstEntryNotSeed', 'CarriedWrong', 'CarriedWrong']
    """
    for each in RULES:
        yield from each.errors(before, entry)


def check_rules(before: Before, entry: LedgerEntry) -> None:
    """Raises the LedgerRuleError of the first rule that an entry breaks."""
    for error in broken_rules(before, entry):
        raise error
