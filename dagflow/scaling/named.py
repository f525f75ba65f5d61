"""Partitioners by the strings that configuration has for them."""

from __future__ import annotations

import importlib
from typing import Any

from dagflow.scaling.partitioner import StatelessPartitioner

EXPECTED = "a number of partitions, MODULE.CLASS or MODULE.CLASS:NUMBER of a partitioner, 'self' for the operator itself, or none"


def partitioner_named(text: Any) -> Any:
    """Return the partitioner that a string stands for: a number, or a class with or without a number. Objects stay.

    >>> partitioner_named("4")
    StatelessPartitioner(partition_count=4)
    >>> partitioner_named("dagflow.scaling.StatelessPartitioner:3")
    StatelessPartitioner(partition_count=3)
    >>> partitioner_named("none") is None
    True

    Raises ValueError with a reason.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return StatelessPartitioner(text)
    if not isinstance(text, str):
        return text
    text = text.strip()
    if text.lower() in ("none", "null", ""):
        return None
    if text == "self":
        return text
    if text.lstrip("-").isdigit():
        return StatelessPartitioner(int(text))
    name, _, argument = text.partition(":")
    module, _, class_name = name.rpartition(".")
    if not module:
        raise ValueError(f"{name!r} does not name a module")
    try:
        factory = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(str(error)) from error
    try:
        return factory() if not argument else factory(int(argument) if argument.lstrip("-").isdigit() else argument)
    except Exception as error:
        raise ValueError(f"{name}({argument}) raised {type(error).__name__}: {error}") from error
