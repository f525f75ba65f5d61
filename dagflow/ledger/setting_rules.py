"""Rules of SetSchema, SetTransform and SetSource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dagflow.ledger import rule_errors as errors
from dagflow.ledger.columns import is_widened
from dagflow.ledger.events import LedgerEntry, SchemaField, SetSchema, SetSource, SetTransform
from dagflow.ledger.rule import Before, Broken, rule


def _schemas(before: Before, entry: LedgerEntry) -> tuple[dict[str, SchemaField], dict[str, SchemaField]]:
    """The fields in effect, and those that the entry sets; both empty for other entries."""
    if not isinstance(entry.event, SetSchema):
        return {}, {}
    old = () if before.schema is None else before.schema.schema
    return {field.name: field for field in old}, {field.name: field for field in entry.event.schema}


@rule(errors.TransformWithoutInputs, "ODF 21")
def transform_has_inputs(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """A dataset without inputs is a root."""
    if isinstance(entry.event, SetTransform) and not entry.event.inputs:
        yield Broken("inputs", "at least one", "none")


@rule(errors.TransformInputsTwice, "ODF 21")
def transform_inputs_once(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Positions are kept by input."""
    if isinstance(entry.event, SetTransform):
        for name, count in Counter(entry.event.inputs).items():
            if count > 1:
                yield Broken("inputs", f"{name} once", f"{count} times")


@rule(errors.TransformInputUnnamed, "ODF 21")
def transform_inputs_named(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """An id stays when a dataset is moved."""
    if isinstance(entry.event, SetTransform) and "" in entry.event.inputs:
        yield Broken("inputs", "ids of datasets", "an empty one")


@rule(errors.TransformUnchanged, "as ODF 24")
def transform_changes(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """What changes nothing is not written."""
    if isinstance(entry.event, SetTransform) and entry.event == before.transform:
        yield Broken("event", "another transform", "the one in effect")


@rule(errors.SourceUnchanged, "ODF 22")
def source_changes(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """What changes nothing is not written."""
    if isinstance(entry.event, SetSource) and entry.event == before.sources.get(entry.event.name):
        yield Broken("event", f"another source {entry.event.name!r}", "the one in effect")


@rule(errors.SchemaUnchanged, "ODF 24")
def schema_changes(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """What changes nothing is not written."""
    if isinstance(entry.event, SetSchema) and entry.event == before.schema:
        yield Broken("event", "another schema", "the one in effect")


@rule(errors.SchemaFieldTwice, "ours")
def schema_fields_once(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Columns are found by name."""
    if isinstance(entry.event, SetSchema):
        for name, count in Counter(field.name for field in entry.event.schema).items():
            if count > 1:
                yield Broken("schema", f"{name} once", f"{count} times")


@rule(errors.SchemaFieldRemoved, "ODF 24")
def schema_keeps_fields(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows that are there keep their values."""
    old, new = _schemas(before, entry)
    for name in old:
        if isinstance(entry.event, SetSchema) and name not in new:
            yield Broken(f"schema.{name}", old[name].type, None)


@rule(errors.SchemaFieldRetyped, "ODF 24")
def schema_keeps_types(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """… and their types, or wider ones."""
    old, new = _schemas(before, entry)
    for name, field in new.items():
        if name in old and field.type != old[name].type and not is_widened(old[name].type, field.type):
            yield Broken(f"schema.{name}.type", old[name].type, field.type)


@rule(errors.SchemaFieldRequired, "ODF 24")
def schema_adds_optional(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Rows that are there have no value for what is new."""
    old, new = _schemas(before, entry)
    for name, field in new.items():
        if before.schema is not None and name not in old and not field.optional:
            yield Broken(f"schema.{name}.optional", True, False)


@rule(errors.SchemaOptionalityChanged, "ODF 24")
def schema_keeps_optionality(before: Before, entry: LedgerEntry) -> Iterator[Broken]:
    """Readers rely on it."""
    old, new = _schemas(before, entry)
    for name, field in new.items():
        if name in old and field.optional != old[name].optional:
            yield Broken(f"schema.{name}.optional", old[name].optional, field.optional)
