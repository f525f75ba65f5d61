"""Operators whose ports follow from their properties: `Union` has `count` inputs, `Split` an output per predicate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from dagflow import Operator


def fixed(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> Any:
    """Refuse another value of a property that ports follow from: streams are connected to these ports already."""
    if value != getattr(instance, attribute.name):
        raise ValueError(f"{attribute.name} decides which ports there are: set it where the operator is made, in populate_dag()")
    return value


@attrs.define
class OwnPorts(Operator):
    """An operator whose instances have ports of their own: each is of a class made with the ports of `_own_ports`.

    Ports are connected when the DAG is filled, so the properties that they follow from cannot be changed later.
    """

    _made_from: ClassVar[type | None] = None

    def __attrs_post_init__(self) -> None:
        make, key = self._own_ports()
        cls: Any = type(self)
        object.__setattr__(self, "__class__", _class_with(cls, make, key))

    def _own_ports(self) -> tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]:
        """Return a function that makes ports and their handlers by name, and its arguments."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        make, (cls, *rest) = super().__reduce__()
        return make, (cls._made_from or cls, *rest)


@functools.cache
def _class_with(cls: Any, make: Callable[..., dict[str, Any]], key: tuple[Any, ...]) -> type[OwnPorts]:
    body = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "_made_from": cls}
    derived: Any = type(cls.__name__, (cls,), {**body, **make(*key)})
    derived.__parameters__ = cls.__parameters__  # Filter[str] has subscripted the class that this one stands for
    return derived  # type: ignore[no-any-return]  # it is one
