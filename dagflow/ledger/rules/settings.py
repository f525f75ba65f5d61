"""Rules of SetSchema, SetTransform and SetSource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dagflow.ledger.columns import is_widened
from dagflow.ledger.events import LedgerEntry, SchemaField, SetSchema, SetSource, SetTransform
from dagflow.ledger.rules.rule import ChainState, Violation, rule


def _schemas(before: ChainState, entry: LedgerEntry) -> tuple[dict[str, SchemaField], dict[str, SchemaField]]:
    """The fields in effect, and those that the entry sets; both empty for other entries."""
    if not isinstance(entry.event, SetSchema):
        return {}, {}
    old = () if before.schema is None else before.schema.schema
    return {field.name: field for field in old}, {field.name: field for field in entry.event.schema}


@rule("DF560", "A transform has at least one input")
def transform_has_inputs(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """A dataset without inputs is a root."""
    if isinstance(entry.event, SetTransform) and not entry.event.inputs:
        yield Violation("inputs", "at least one", "none")


@rule("DF561", "A transform names each input once")
def transform_inputs_once(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Positions are kept by input."""
    if isinstance(entry.event, SetTransform):
        for name, count in Counter(entry.event.inputs).items():
            if count > 1:
                yield Violation("inputs", f"{name} once", f"{count} times")


@rule("DF562", "A transform names its inputs by the ids of their datasets")
def transform_inputs_named(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """An id stays when a dataset is moved."""
    if isinstance(entry.event, SetTransform) and "" in entry.event.inputs:
        yield Violation("inputs", "ids of datasets", "an empty one")


@rule("DF563", "A SetTransform changes the transform in effect")
def transform_changes(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Settings are written only when they change."""
    if isinstance(entry.event, SetTransform) and entry.event == before.transform:
        yield Violation("event", "another transform", "the one in effect")


@rule("DF564", "A SetSource changes the source of its name")
def source_changes(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Settings are written only when they change."""
    if isinstance(entry.event, SetSource) and entry.event == before.sources.get(entry.event.name):
        yield Violation("event", f"another source {entry.event.name!r}", "the one in effect")


@rule("DF565", "A SetSchema changes the schema in effect")
def schema_changes(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Settings are written only when they change."""
    if isinstance(entry.event, SetSchema) and entry.event == before.schema:
        yield Violation("event", "another schema", "the one in effect")


@rule("DF566", "A schema names each field once")
def schema_fields_once(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Columns are found by name."""
    if isinstance(entry.event, SetSchema):
        for name, count in Counter(field.name for field in entry.event.schema).items():
            if count > 1:
                yield Violation("schema", f"{name} once", f"{count} times")


@rule("DF567", "A new schema keeps all fields")
def schema_keeps_fields(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows that are there keep their values."""
    old, new = _schemas(before, entry)
    for name in old:
        if isinstance(entry.event, SetSchema) and name not in new:
            yield Violation(f"schema.{name}", old[name].type, None)


@rule("DF568", "A new schema keeps the types of fields, or has wider ones, unless all rows are replaced then")
def schema_keeps_types(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows that are there can be read with the new types."""
    old, new = _schemas(before, entry)
    if isinstance(entry.event, SetSchema) and entry.event.replaces:
        return
    for name, field in new.items():
        if name in old and field.type != old[name].type and not is_widened(old[name].type, field.type):
            yield Violation(f"schema.{name}.type", old[name].type, field.type)


@rule("DF569", "Fields that a new schema adds are optional: rows that are there have no value for them")
def schema_adds_optional(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Rows that are there have no value for what is new."""
    old, new = _schemas(before, entry)
    for name, field in new.items():
        if before.schema is not None and name not in old and not field.optional:
            yield Violation(f"schema.{name}.optional", True, False)


@rule("DF570", "A new schema leaves optional fields optional and required ones required")
def schema_keeps_optionality(before: ChainState, entry: LedgerEntry) -> Iterator[Violation]:
    """Readers rely on the fields that are required."""
    old, new = _schemas(before, entry)
    for name, field in new.items():
        if name in old and field.optional != old[name].optional:
            yield Violation(f"schema.{name}.optional", old[name].optional, field.optional)
