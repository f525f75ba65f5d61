"""The state of the driver's operators: saved with each window's plan, restored at the next launch.

The plan holds the value of each `State`. For a `MapState`, it names the newest segment of the log that all maps share. This
module also decides which old states code can read that has changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.map_state import KeyedState, MapState, TrackedDict, type_arguments
from dagflow.model.operator.state import State
from dagflow.model.operator.table_state import TableState
from dagflow.model.types.plain_data import decode
from dagflow.state.errors import StateFormatChanged
from dagflow.state.maps import Kept, MapLog, table_of
from dagflow.state.references import PartitionStates
from dagflow.state.segment import MapId, SegmentRef
from dagflow.state.task_states import declared_states, read_states
from dagflow.state.values import checked, decode_map, decode_state, encode_state, format_version, misfit, state_type
from dagflow.storage import Store
from dagflow.storage.records.errors import PlanMismatch

_SEGMENTS = "$segments"  # no encoded value is a dict of just this key
States = dict[str, dict[str, Any]]
"""Encoded states by operator and name."""


class StatesOfPlan(Protocol):
    """The part of a window's plan that driver states are restored from."""

    @property
    def window(self) -> int:
        """The number of the window."""
        ...

    @property
    def states(self) -> dict[str, dict[str, Any]]:
        """The states after the plan, by operator and name."""
        ...

    @property
    def state_types(self) -> dict[str, dict[str, str]]:
        """The declared types of these states."""
        ...


class DriverStates:
    """The states of operators that live for the whole run.

    Args:
        operators: the operators by name.
        maps: the log of the maps; nothing has been saved in it or restored from it yet.
    """

    def __init__(self, operators: Mapping[str, Operator], maps: MapLog) -> None:
        self._declared = {name: states for name, each in operators.items() if (states := declared_states(each))}
        self._operators = {name: operators[name] for name in self._declared}
        self._log = maps
        self._inline: States | None = None
        self._changed: set[str] = set()

    def types(self) -> dict[str, dict[str, str]]:
        """Return the declared types of the states, by operator and name."""
        return types_of(self._operators)

    def begin(self) -> None:
        """Record the states, if nothing was saved yet. Called before a window is filled."""
        if self._inline is None:
            self._inline = self._plain()

    def save(self, window: int) -> States:
        """Save the changes of maps, and return the states for a window's plan. Raises StateNotPlain, StorageError."""
        inline = self._plain()
        before = self._inline or {}
        ref = self._log.save(window, self._maps())
        self._changed = {name for name, values in inline.items() if values != before.get(name)} | {
            name for name, _ in self._log.changed
        }
        self._inline = inline
        reference = {_SEGMENTS: None if ref is None else attrs.asdict(ref)}
        return {
            name: {state: reference if isinstance(d, KeyedState) else inline[name][state] for state, d in declared.items()}
            for name, declared in self._declared.items()
        }

    def has_changed(self, operator: str) -> bool:
        """Return whether the last saved window changed a state of an operator."""
        return operator in self._changed

    def restore(self, last: StatesOfPlan | None) -> list[str]:
        """Restore the states after a window; return warnings about dropped states.

        Raises PlanMismatch for a state of another type, StateFormatChanged, SegmentMissing, SegmentDamaged.
        """
        if last is None:
            self._log.restore(None, -1, ())
            return []
        map_ids = [
            (name, state)
            for name, declared in self._declared.items()
            for state, each in declared.items()
            if isinstance(each, KeyedState) and _is_ref(last.states.get(name, {}).get(state))
        ]
        contents = self._log.restore(newest_segment(last.states), last.window, map_ids)
        dropped = []
        for name, values in last.states.items():
            for state, data in values.items():
                was = last.state_types.get(name, {}).get(state, "Any")
                declared = self._declared.get(name, {}).get(state)
                if declared is None:
                    dropped.append(f"{state!r} of operator {name!r} ({was})")
                    continue
                if isinstance(declared, TableState) and _is_ref(data):
                    _check_format(self._log.store, name, state, declared, was)
                    self._operators[name].__dict__[state] = table_of(self._log.log, (name, state), declared)
                    continue
                old = _FormerState(self._log.store, name, state, was, last.window)
                value = self._operators[name].__dict__[state] = old.restored(declared, data, contents.get((name, state)))
                if isinstance(value, TrackedDict):
                    value.watch()
        return _dropped(last, dropped)

    def _plain(self) -> States:
        return {
            name: {
                state: _encoded(self._operators[name], name, state, d)
                for state, d in declared.items()
                if not isinstance(d, KeyedState)
            }
            for name, declared in self._declared.items()
        }

    def _maps(self) -> dict[MapId, Kept]:
        return {
            (name, state): getattr(self._operators[name], state)
            for name, states in self._declared.items()
            for state, state_declaration in states.items()
            if isinstance(state_declaration, KeyedState)
        }


@attrs.frozen
class _FormerState:
    """A state that an earlier launch saved."""

    store: Store
    operator: str
    state: str
    type: str
    window: int

    def check_plain(self, declared: State[Any], data: Any) -> None:
        """Raise PlanMismatch if plain data of a partition does not fit the current declaration."""
        if isinstance(declared, KeyedState):
            raise self._mismatch(declared, "its partitions saved it whole, not by key")
        self.restored(declared, data, None)

    def restored(self, declared: State[Any], data: Any, content: dict[Any, Any] | None) -> Any:
        """Return the value for the current declaration. `content`: the entries of a map, if it still is one."""
        is_same = self.type == state_type(declared)
        try:
            if content is not None and isinstance(declared, MapState):
                value: Any = decode_map(declared, content, content.values())
            else:
                value = self._converted(declared, data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._mismatch(declared, f"it cannot be read as such ({type(error).__name__}: {error})") from error
        if not is_same and (wrong := misfit(value, declared)) is not None:
            raise self._mismatch(declared, wrong)
        return value

    def _converted(self, declared: State[Any], data: Any) -> Any:
        """Return the value of a state that was not a map, or is not one today."""
        if _is_ref(data):
            ref = data[_SEGMENTS]
            mine = (self.operator, self.state)
            whole = MapLog(self.store).restore(None if ref is None else SegmentRef(**ref), self.window, [mine])
            return decode_state(declared, whole[mine])
        if not isinstance(declared, MapState):
            return decode_state(declared, data)
        entries: TrackedDict[Any, Any] = TrackedDict()
        entries.update(decode(data, dict[type_arguments(declared)]))  # type: ignore[misc]  # counts as changed: no segment has it
        return entries

    def _mismatch(self, declared: State[Any], why: str) -> PlanMismatch:
        text = f"State {self.state!r} of operator {self.operator!r} was {self.type} after window {self.window}, and now is"
        return PlanMismatch(self.store.url, f"{text} {state_type(declared)}: {why}")


def check_left(operators: Mapping[str, Operator], last: StatesOfPlan, left: PartitionStates, store: Store) -> list[str]:
    """Check that operators in tasks can resume from the states of earlier partitions; return warnings about dropped states.

    Raises PlanMismatch for a state of another type, StateFormatChanged, StateLost.
    """
    dropped = []
    for name, refs in left.items():
        now = declared_states(operators[name]) if name in operators else {}
        then = last.state_types.get(name, {})
        dropped += [f"{state!r} of operator {name!r} ({was})" for state, was in then.items() if state not in now]
        for state, was in then.items() if any(ref.segment is not None for ref in refs) else ():
            if isinstance(declared := now.get(state), TableState):
                _check_format(store, name, state, declared, was)
        changed = {state: was for state, was in then.items() if state in now and _has_changed(was, now[state])}
        for part in (read_states(store, name, ref) for ref in refs if changed):
            for state, was in changed.items():
                if state in part:
                    _FormerState(store, name, state, was, last.window).check_plain(now[state], part[state])
    return _dropped(last, dropped)


def _check_format(store: Store, operator: str, state: str, declared: TableState, was: str) -> None:
    """Raise StateFormatChanged for rows that an operator would read as something else."""
    if (kept := format_version(was)) != declared.format_version:
        raise StateFormatChanged(store.url, operator, state, kept, declared.format_version)


def _has_changed(was: str, declared: State[Any]) -> bool:
    return was != state_type(declared) or isinstance(declared, KeyedState)  # a map, once saved whole, does not become one by key


def _dropped(last: StatesOfPlan, gone: list[str]) -> list[str]:
    return [f"State that window {last.window} has left is gone from the code, and is dropped: {', '.join(gone)}"] if gone else []


def types_of(operators: Mapping[str, Operator]) -> dict[str, dict[str, str]]:
    """Return the declared types of states, by operator and name."""
    types = {name: {state: state_type(each) for state, each in declared_states(op).items()} for name, op in operators.items()}
    return {name: states for name, states in types.items() if states}


def _encoded(operator: Operator, name: str, state: str, declared: State[Any]) -> Any:
    value = checked(getattr(operator, state), declared, name, state)
    return encode_state(declared, value, f"{type(declared).__name__} {state!r} of operator {name!r}")


def _is_ref(data: Any) -> bool:
    return isinstance(data, dict) and set(data) == {_SEGMENTS}


def newest_segment(states: States) -> SegmentRef | None:
    """Return the newest segment of the log that all maps share; None while nothing was saved in it."""
    refs = [data[_SEGMENTS] for own in states.values() for data in own.values() if _is_ref(data)]
    return next((SegmentRef(**ref) for ref in refs if ref is not None), None)
