"""The common base of operators and modules: attrs classes with ports in their bodies."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.errors.wording import did_you_mean
from dagflow.model.errors.classes import ConstructorWritten
from dagflow.model.errors.dag import ClassWrong
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.ports import Port, ports_of
from dagflow.model.operator.state import StateField
from dagflow.model.types.comparison import own_annotations


@functools.cache
def _check_constructor(cls: Any) -> None:
    """Raise ConstructorWritten for an `__init__` that cannot be called with the fields, as copies are made."""
    code = getattr(cls.__init__, "__code__", None)
    if code is None or code.co_filename.startswith("<attrs generated"):
        return
    names = [field.alias or field.name for field in attrs.fields(cls) if field.init]
    try:
        inspect.signature(cls.__init__).bind(None, **dict.fromkeys(names))
    except TypeError as error:
        where = f"{shown(code.co_filename)}:{code.co_firstlineno}"
        raise ConstructorWritten(cls.__qualname__, str(error), where) from None


class _NoAttribute(AttributeError):
    """The error of a name that a component does not have. Its text is made when it is shown: most only answer `hasattr`."""

    def __str__(self) -> str:
        """Return the text with the names of the ports."""
        text, cls, name = self.args
        ports = tuple(ports_of(cls))
        near = did_you_mean(name, [*ports, *(field.name for field in attrs.fields(cls))])
        return f"{text}.{near} Its ports: {', '.join(ports) or 'none'}"

    def __reduce__(self) -> Any:
        """Travel as text: the class may not be known elsewhere."""
        return AttributeError, (str(self),)


class Component:
    """A class whose fields are properties and whose body declares ports. It refuses mistakes when it is created or used."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, annotation in own_annotations(cls).items():
            value = cls.__dict__.get(name)
            if isinstance(value, Port | StateField) and "ClassVar" not in str(annotation):
                what, kind = "port" if isinstance(value, Port) else "state", type(value).__name__
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"{what} {name!r} is annotated, which makes it a field",
                    help=f"write the {what} without annotation: {name} = {kind}[…](…)",
                )

    def __new__(cls, *args: object, **kwargs: object) -> Any:  # Any: mypy takes the constructor's signature from attrs
        """Refuse classes that lack `@attrs.define`."""
        if "__attrs_attrs__" not in cls.__dict__:
            fields = [n for n, text in own_annotations(cls).items() if "ClassVar" not in str(text)]
            if fields and not hasattr(cls, "_dagflow_frozen_from"):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"it declares {', '.join(fields)} but is not an attrs class",
                    help=f"write @attrs.define above class {cls.__name__}",
                )
        made_of: Any = cls
        _check_constructor(made_of)
        return super().__new__(cls)

    if not TYPE_CHECKING:  # type checkers know what is there

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with the names of the ports."""
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=self) if name.startswith("_") else _NoAttribute(text, type(self), name)

    def check(self) -> None:
        """Check rules between fields. Raises ValueError with a text for the user. Called once, when the DAG is checked."""
