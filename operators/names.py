"""Properties that hold names: of columns, topics or subjects; and constructors that take names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs


def one_or_more(value: Iterable[str] | str) -> tuple[str, ...]:
    """Return names as a tuple; one of them may come alone.

    >>> one_or_more("id"), one_or_more(["country", "id"])
    (('id',), ('country', 'id'))
    """
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"takes the name of a column, or a list of them; got {value!r}")
    return tuple(value)


def order_terms(order: Iterable[str]) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """Return the columns of an order, and whether each descends.

    >>> order_terms(["-price", "shop"])
    (('price', 'shop'), (True, False))
    """
    return tuple(name.removeprefix("-") for name in order), tuple(name.startswith("-") for name in order)


def order_problems(setting: str, order: Sequence[str]) -> list[str]:
    """Return what is wrong with an order: it names no column, or one twice."""
    names, problems = order_terms(order)[0], []
    if not all(names) or not names:
        problems.append(f"{setting}={list(order)!r} must name columns: {setting}=['-price', 'shop'], where - descends")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"{setting}={list(order)!r} names the column {twice[0]!r} twice")
    return problems


def names_of_columns(value: Iterable[str] | str) -> frozenset[str]:
    """Return names of columns without an order; one of them may come alone."""
    return frozenset(one_or_more(value))


def a_column(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate the name of a column."""
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} takes the name of a column; got {value!r}{computed_before(value)}")


def computed_before(value: object) -> str:
    """Return how an expression becomes a column; nothing for other values."""
    is_expression = type(value).__name__ == "Expression"
    return f". Compute it before: Select('*', name={value!r}), and give the name" if is_expression else ""


def constructor_arguments(
    cls: Any,
    listed: tuple[str, tuple[Any, ...]],
    columns: tuple[str, dict[str, Any]],
    is_column: Callable[[Any], bool] = lambda value: False,
) -> dict[str, Any]:
    """Return the properties of a class whose constructor takes names in order, and columns by name beside its properties.

    Args:
        cls: the class.
        listed: the property that has the names in order, and these.
        columns: the property that has the columns, and all arguments by name.
        is_column: whether a value under the name of a property is that of a column.

    Raises TypeError where one of the two properties is given as such too.
    """
    arguments = columns[1]
    known = {field.name for field in attrs.fields(cls) if field.init}
    own = {name: value for name, value in arguments.items() if name in known and not is_column(value)}
    others = {name: value for name, value in arguments.items() if name not in own}
    for name, given in (listed, (columns[0], others)):
        if name not in own:
            own[name] = given
        elif given:
            raise TypeError(f"{cls.__name__} got {name}={own[name]!r} and more of them: give all in one place")
    return own
