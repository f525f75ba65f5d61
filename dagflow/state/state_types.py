"""What states are declared as, and whether a value is that: a wrong one is refused before it is committed for good."""

from __future__ import annotations

from typing import Any

from dagflow.model.map_state import MapState, type_arguments
from dagflow.model.records import excerpt
from dagflow.model.state import State
from dagflow.model.typecheck import fits
from dagflow.model.types import type_name
from dagflow.state.errors import StateMistyped


def state_type(declared: State[Any]) -> str:
    """What a state is declared as; without a type of its own, that of the value that it begins with.

    >>> state_type(State(0)), state_type(State[int | None](None)), state_type(MapState[str, int]()), state_type(State(None))
    ('int', 'int | None', 'MapState[str, int]', 'Any')
    """
    if isinstance(declared, MapState):
        return f"MapState[{', '.join(type_name(each) for each in type_arguments(declared))}]"
    named = type_arguments(declared)[0]
    if named is not Any:
        return type_name(named)
    begin = declared.initial()
    return "Any" if begin is None else type_name(type(begin))


def misfit(value: Any, declared: State[Any]) -> str | None:
    """Why a value is not of a declared type; None if it is."""
    named = type_arguments(declared)
    if isinstance(declared, MapState):
        for key, each in value.items():
            if not (fits(key, named[0]) and fits(each, named[1])):
                return f"it holds {excerpt(key)}: {excerpt(each)}"
        return None
    begin = declared.initial()
    tp = named[0] if named[0] is not Any or begin is None else type(begin)
    return None if fits(value, tp) else f"it holds {excerpt(value)}"


def checked(value: Any, declared: State[Any], operator: str, state: str) -> Any:
    """The value, if it is what was declared. Raises StateMistyped."""
    wrong = misfit(value, declared)
    if wrong is not None:
        raise StateMistyped(operator=operator, state=state, declared=state_type(declared), got=wrong)
    return value
