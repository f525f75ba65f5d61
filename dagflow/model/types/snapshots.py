"""Snapshots of records and values: bounded copies that show later whether a value was changed in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any

import attrs

SAMPLES = 32
"""The number of values of a kind that are looked after in a window."""
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
_ELEMENTS = 64  # of a list, a set or a dict that are looked at
_DEPTH = 6


@attrs.frozen(repr=False)
class _Part:
    """The beginning of a larger value, and what tells whether the rest has changed: its length, and its last elements."""

    length: int
    first: Any
    last: Any = None

    def __repr__(self) -> str:
        return f"{repr(self.first)[:-1]}, … ({self.length:,} in all)"


@attrs.frozen(repr=False)
class _Object:
    kind: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


def is_immutable(value: Any) -> bool:
    """Return True for a number, a text, bytes or None, which cannot change."""
    return type(value) in _ATOMS


@attrs.frozen
class ValueSample:
    """A value, and what it held before."""

    value: Any
    before: Any

    @classmethod
    def of(cls, value: Any) -> tuple[ValueSample, ...]:
        """Return a sample of a value as it is now; none where it cannot change."""
        return () if is_immutable(value) else (cls(value, snapshot(value)),)

    def has_changed(self) -> bool:
        """Return whether the value was changed in place. It counts as unchanged where `==` cannot tell."""
        try:
            return bool(snapshot(self.value) != self.before)
        except Exception:  # noqa: BLE001  # `==` of any class
            return False


def snapshot(value: Any, depth: int = _DEPTH) -> Any:
    """Return what a value holds now. Another snapshot of it is equal, unless it was changed meanwhile.

    A snapshot is cheap rather than complete: it has the first and last elements of long lists, and follows lists, dicts, sets and
    the fields of attrs classes and dataclasses, but no other objects.

    >>> row = {"name": "ada", "seen": [1, 2]}
    >>> before = snapshot(row)
    >>> snapshot(row) == before
    True
    >>> row["seen"].append(3)
    >>> snapshot(row) == before, before
    (False, {'name': 'ada', 'seen': [1, 2]})
    """
    kind: Any = type(value)
    if kind in _ATOMS or not depth:
        return value
    if kind is dict:
        if len(value) > _ELEMENTS:
            head = dict(islice(value.items(), _ELEMENTS))
            return _Part(len(value), {key: snapshot(each, depth - 1) for key, each in head.items()})
        return {key: each if type(each) in _ATOMS else snapshot(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > 2 * _ELEMENTS:
            first, last = ([snapshot(each, depth - 1) for each in value[at]] for at in (_HEAD, _TAIL))
            return _Part(len(value), first, last)
        return [each if type(each) in _ATOMS else snapshot(each, depth - 1) for each in value]
    if isinstance(value, set | frozenset):
        return frozenset(value) if len(value) <= _ELEMENTS else _Part(len(value), "{…}")
    if kind is bytearray:
        return _Part(len(value), bytes(value[:_ELEMENTS]), bytes(value[-_ELEMENTS:]))
    if (fields := _fields(kind)) is not None:
        names, values_of = fields
        return _Object(kind.__qualname__, {n: snapshot(each, depth - 1) for n, each in zip(names, values_of(value), strict=True)})
    return value


_HEAD, _TAIL = slice(None, _ELEMENTS), slice(-_ELEMENTS, None)


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]] | None:
    """Return the names of the fields of an attrs class or dataclass, and a function that gets their values."""
    fields = getattr(kind, "__attrs_attrs__", None)
    names = tuple(f.name for f in fields) if fields is not None else tuple(getattr(kind, "__dataclass_fields__", ()))
    if not names:
        return None
    getter = attrgetter(*names)
    return names, getter if len(names) > 1 else lambda value: (getter(value),)
