"""What the classes of operators and modules have in common: attrs classes with ports in their bodies."""

from __future__ import annotations

import sys
from typing import Any

from dagflow.errors.dag import ClassWrong
from dagflow.model.ports import Port


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations in the body of `cls` itself, unevaluated where they can be."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return dict(annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF))
    return dict(vars(cls).get("__annotations__", {}))


class Declared:
    """A class whose fields are properties and whose ports stand in its body; mistakes there are told when it is made or used."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in own_annotations(cls):
            if isinstance(cls.__dict__.get(name), Port):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"port {name!r} is annotated, which makes it a field",
                    help=f"write the port without annotation: {name} = {type(cls.__dict__[name]).__name__}[…]()",
                )

    def __new__(cls, *args: object, **kwargs: object) -> Any:  # Any: mypy takes the constructor's signature from attrs
        """Refuses classes that forgot `@attrs.define`."""
        if "__attrs_attrs__" not in cls.__dict__:
            fields = [n for n, text in own_annotations(cls).items() if "ClassVar" not in str(text)]
            if fields and not hasattr(cls, "_dagflow_frozen_from"):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"it declares {', '.join(fields)} but is no attrs class",
                    help=f"write @attrs.define above class {cls.__name__}",
                )
        return super().__new__(cls)

    def check(self) -> None:
        """Rules between fields. Raises ValueError with a text for the user; called once, when the DAG is checked."""
