"""A `Filter` that asks for windows. A bounded launch with `mode="replace"` takes its input as one window without it."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import attrs

from operators import Filter

T = TypeVar("T")


def every(record: object) -> bool:
    """Select all records."""
    return True


@attrs.define
class OfWindows(Filter[T], Generic[T]):
    """Selects records. What follows depends on windows, since its author wants that: each replaces the one before."""

    scope: ClassVar[Any] = "window"
