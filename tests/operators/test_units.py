"""Sizes and durations as text, in the constructor of everything that the library has."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

import operators
from dagflow.config import from_text
from dagflow.config.values import hints
from dagflow.config.values.units import Unit
from operators import KafkaWriter, ParquetWriter, Tumbling

TEXTS = {"bytes": ["64MiB", "4096"], "seconds": ["1h 30min", "500ms", "2"], "milliseconds": ["5s", "200"]}


def properties() -> Iterator[Any]:
    for name in vars(operators)["__all__"]:
        found = getattr(operators, name)
        if inspect.isclass(found) and attrs.has(found):
            for field in attrs.fields(found):
                hint = hints.field_hint(found, field)
                for part in hints.members(hint):
                    for note in hints.unwrap(part)[1]:
                        if isinstance(note, Unit) and field.init:
                            yield pytest.param(field, hint, note.name, id=f"{name}.{field.name}")


@pytest.mark.parametrize(("field", "hint", "unit"), list(properties()))
def test_every_size_and_duration_takes_text_as_configuration_does(field: attrs.Attribute[Any], hint: Any, unit: str) -> None:
    convert: Any = field.converter
    assert convert is not None, f"{field.name} takes no text: write converter=size_of, seconds_of or millis_of"
    for text in TEXTS[unit]:
        assert convert(text) == from_text(hint, text)
    with pytest.raises(ValueError, match="'5 parsecs'"):
        convert("5 parsecs")


def test_constructors_and_assignments_take_text() -> None:
    writer = KafkaWriter("host:1", "topic", timeout="5s", settle="500ms", buffer_bytes="1MiB")
    assert (writer.timeout, writer.settle, writer.buffer_bytes) == (5.0, 0.5, 2**20)
    writer.timeout = "2min"  # type: ignore[assignment]  # mypy takes the field's type here
    assert writer.timeout == 120.0
    assert ParquetWriter("out", max_file_bytes="1GiB").max_file_bytes == 2**30
    assert Tumbling("5min", time="at").size == 300.0
