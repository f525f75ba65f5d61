"""Pickling by value: what an application's module holds means the same in a process that cannot import it.

cloudpickle takes classes and functions along, but not what their annotations name, and refers to new names and aliases of types
by their module.
"""

from __future__ import annotations

import io
import types
import typing
from typing import Any

import attrs
import cloudpickle
import typing_extensions

from dagflow.model.types.columns import owner_of
from dagflow.model.types.comparison import evaluated


def dumps(value: Any) -> bytes:
    """Pickle a value by value. `pickle.loads` reads it."""
    return _dumps(value, Pickler)


def dumps_in_process(value: Any) -> bytes:
    """Pickle a value for this process, with references to its modules."""
    return _dumps(value, CodePickler)


def _dumps(value: Any, pickler: type[CodePickler]) -> bytes:
    with io.BytesIO() as file:
        pickler(file).dump(value)
        return file.getvalue()


class CodePickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Keeps the file names of code, which cloudpickle 3.1.3 replaces by `<dynamic-code>`.

    Errors name the user's file and line by them, and an `==` that attrs or dataclasses wrote is recognized by them.
    """

    def reducer_override(self, obj: Any) -> Any:
        """Reduce code objects with their file name, all else as cloudpickle does."""
        if isinstance(obj, types.CodeType):
            arguments = self.dispatch_table[types.CodeType](obj)[1]
            return _code, ("".join(obj.co_filename), *arguments)  # a copy, as cloudpickle does: interning changes no byte
        return super().reducer_override(obj)


class Pickler(CodePickler):
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


def _code(file_name: str, *arguments: Any) -> types.CodeType:
    return types.CodeType(*arguments).replace(co_filename=file_name)


def _evaluate_fields(cls: Any) -> None:
    """Put types in the place of string annotations, as `attrs.resolve_types` does: strings would name nothing there."""
    for field in attrs.fields(cls):
        if isinstance(field.type, str):
            object.__setattr__(field, "type", evaluated(field.type, owner_of(cls, field.name)))


def _alias(name: str, value: Any, type_params: tuple[Any, ...]) -> Any:
    make: Any = typing_extensions.TypeAliasType  # type checkers know aliases that are written out only
    return make(name, value, type_params=type_params)
