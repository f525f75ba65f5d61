"""Pickling by value: what an application's module holds means the same in a process that cannot import it.

cloudpickle takes classes and functions along, but not what their annotations name, and refers to new names and aliases of types
by their module.
"""

from __future__ import annotations

import io
import typing
from typing import Any

import attrs
import cloudpickle
import typing_extensions

from dagflow.model.types.columns import owner_of
from dagflow.model.types.comparison import evaluated


def dumps(value: Any) -> bytes:
    """Pickle a value. `pickle.loads` reads it."""
    with io.BytesIO() as file:
        Pickler(file).dump(value)
        return file.getvalue()


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Takes along what annotations, new names and aliases of types mean."""

    def reducer_override(self, obj: Any) -> Any:
        """Reduce types whose meaning pickle would lose; called before an object's own `__reduce__`."""
        if isinstance(obj, type):
            if "__attrs_attrs__" in vars(obj):
                _evaluate_fields(obj)
        elif isinstance(obj, typing.NewType):
            return typing.NewType, (obj.__name__, obj.__supertype__)
        elif type(obj).__name__ == "TypeAliasType":
            return _alias, (obj.__name__, obj.__value__, obj.__type_params__)
        return super().reducer_override(obj)


def _evaluate_fields(cls: Any) -> None:
    """Put types in the place of string annotations, as `attrs.resolve_types` does: strings would name nothing there."""
    for field in attrs.fields(cls):
        if isinstance(field.type, str):
            object.__setattr__(field, "type", evaluated(field.type, owner_of(cls, field.name)))


def _alias(name: str, value: Any, type_params: tuple[Any, ...]) -> Any:
    make: Any = typing_extensions.TypeAliasType  # type checkers know aliases that are written out only
    return make(name, value, type_params=type_params)
