"""A partitioner by the text that configuration has for it."""

from __future__ import annotations

import importlib
from typing import Any

from dagflow.scaling.partitioner import StatelessPartitioner

EXPECTED = "a number of partitions, MODULE.CLASS or MODULE.CLASS:NUMBER of a partitioner, 'self' for the operator itself, or none"


def partitioner_named(given: Any) -> Any:
    """Return the partitioner that a string stands for: a number of partitions, or a class with or without one. Objects stay.

    >>> partitioner_named("4")
    StatelessPartitioner(partition_count=4)
    >>> partitioner_named("dagflow.scaling.StatelessPartitioner:3")
    StatelessPartitioner(partition_count=3)
    >>> partitioner_named("none") is None
    True

    Raises ValueError with a reason.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return StatelessPartitioner(given)
    if not isinstance(given, str):
        return given
    text = given.strip()
    if text.lower() in ("none", "null", ""):
        return None
    if text == "self":
        return text
    if text.lstrip("-").isdigit():
        return StatelessPartitioner(int(text))
    name, _, argument = text.partition(":")
    module, _, cls = name.rpartition(".")
    if not module:
        raise ValueError(f"{name!r} names no module")
    try:
        found = getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError) as error:
        raise ValueError(str(error)) from error
    try:
        return found() if not argument else found(int(argument) if argument.lstrip("-").isdigit() else argument)
    except Exception as error:
        raise ValueError(f"{name}({argument}) raised {type(error).__name__}: {error}") from error
