"""Conditions on the properties of an operator, for `when=` of its handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Condition = Callable[[Any], bool]


def is_function(name: str) -> Condition:
    """Return the condition that a property is a function of the record."""
    return lambda operator: callable(getattr(operator, name))


def is_expression(name: str) -> Condition:
    """Return the condition that a property is an expression over batches, which is not callable."""
    return lambda operator: getattr(operator, name) is not None and not callable(getattr(operator, name))


def no_function(*names: str) -> Condition:
    """Return the condition that no property is a function of the record: each is the name of a column, or None."""
    return lambda operator: not any(callable(getattr(operator, name)) for name in names)
