"""What a property may be, if it is one of a few values: a validator whose message is a sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs


def one_of(choices: Collection[Any]) -> Callable[[object, attrs.Attribute[Any], Any], None]:
    """A validator of a property that is one of these. It raises ValueError.

    >>> @attrs.define
    ... class Sieve:
    ...     mesh: str = attrs.field(validator=one_of(("fine", "coarse")))
    >>> Sieve("big")
    Traceback (most recent call last):
    ...
    ValueError: mesh is 'big', but must be 'fine' or 'coarse'
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in choices:
            *most, last = map(repr, choices)
            known = f"{', '.join(most)} or {last}" if most else last
            raise ValueError(f"{attribute.name} is {value!r}, but must be {known}")

    return validate
