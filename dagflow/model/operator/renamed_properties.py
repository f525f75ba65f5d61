"""Old names of properties, which still work and warn what to write."""

from __future__ import annotations

import functools
import warnings
from typing import Any


class RenamedProperty:
    """The old name of a property: `most_rows = RenamedProperty("max_rows")` in the body of an operator or module.

    The old name is accepted by the constructor, as an attribute and in settings. Each use warns (FutureWarning).

    >>> import attrs
    >>> from dagflow import Operator, RenamedProperty
    >>> @attrs.define
    ... class Head(Operator):
    ...     max_rows: int = 10
    ...     most_rows = RenamedProperty("max_rows")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Head(most_rows=5).max_rows
    5
    >>> print(caught[0].message)
    most_rows of Head is now called max_rows: write Head(max_rows=…)
    """

    def __init__(self, now: str) -> None:
        self.now = now
        self.name = "?"

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        self.warn(type(instance).__name__, f"write .{self.now}")
        return getattr(instance, self.now)

    def __set__(self, instance: Any, value: Any) -> None:
        self.warn(type(instance).__name__, f"write .{self.now} = …")
        setattr(instance, self.now, value)

    def warn(self, owner: str, remedy: str) -> None:
        """Warn that an old name has been used."""
        warnings.warn(f"{self.name} of {owner} is now called {self.now}: {remedy}", FutureWarning, stacklevel=3)


def renamed_properties(cls: type) -> dict[str, RenamedProperty]:
    """Return the renamed properties of a class by their old names."""
    attributes = ((name, value) for klass in reversed(cls.__mro__) for name, value in vars(klass).items())
    return {name: value for name, value in attributes if isinstance(value, RenamedProperty)}


def accept_old_names(cls: Any) -> None:
    """Make the constructor of a class accept the old names of its properties."""
    renamed, construct = renamed_properties(cls), cls.__init__
    if not renamed or vars(construct).get("_accepts_old_names"):
        return

    @functools.wraps(construct)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in renamed.keys() & kwargs.keys():
            now = renamed[name].now
            if now in kwargs:
                raise TypeError(f"{name} is the old name of {now}: give {now} only")
            renamed[name].warn(type(self).__name__, f"write {type(self).__name__}({now}=…)")
            kwargs[now] = kwargs.pop(name)
        construct(self, *args, **kwargs)

    vars(init)["_accepts_old_names"] = True
    cls.__init__ = init
