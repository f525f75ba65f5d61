"""The check that an application is the one that planned a window."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any

import attrs

from dagflow.config.values.conversion import holds_secret
from dagflow.config.values.hints import field_hint
from dagflow.errors.shown import HIDDEN, sounds_secret, without_secrets
from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode
from dagflow.model.operator.base import fields_of
from dagflow.planning.current_results import CURRENT
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import is_behind_all
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.storage.hashes import hash_bytes
from dagflow.storage.records.errors import PlanMismatch


def shape(plan: Plan) -> dict[str, str]:
    """Return the identity of a plan's application: its operators with their classes, its streams with their ends.

    Operators that the planner adds are left out: they depend on properties, which may change.
    """
    parts = {f"operator {name}": type(node.operator).__qualname__ for name, node in plan.written.nodes.items()}
    for stream in plan.written.streams.values():
        for sink in stream.sinks:
            parts[f"stream {stream.source} → {sink}"] = ""
    return parts


ADDED = "added stream "
"""The beginning of streams that the planner has added, in the shape of a window that was planned."""


def added(plan: Plan) -> dict[str, str]:
    """Return the streams that the planner has added. They do not count towards the application's identity."""
    ends = [(stream.source, sink) for stream in plan.dag.streams.values() for sink in stream.sinks]
    written = shape(plan)
    return {f"{ADDED}{source} → {sink}": "" for source, sink in ends if f"stream {source} → {sink}" not in written}


FUNCTION = "a function"
"""All that is known of a function: not if it is the same one."""


LONGEST, SHOWN = 1000, 60
"""Characters of the text of a property. Of a longer one, some are kept in every plan, and the hash of all."""


def properties(plan: Plan) -> dict[str, str]:
    """Return the properties of the operators that a text describes completely, to detect changes."""
    texts = {}
    for name, node in plan.written.nodes.items():
        outputs = node.operator.output_folders()
        cls: Any = type(node.operator)
        for field, value in fields_of(node.operator).items():
            if isinstance(value, str) and value in outputs:
                continue  # a moved folder is not a change
            text = HIDDEN if _is_secret(cls, field) else _text(value)
            if text is not None:
                texts[f"{name}.{field}"] = text
    return texts


@functools.lru_cache(1024)  # it is asked for each property in each window
def _is_secret(cls: Any, name: str) -> bool:
    """Return whether a property of an operator holds a secret. Nothing is kept of a secret, so a change of it is not noticed."""
    return holds_secret(field_hint(cls, attrs.fields_dict(cls)[name])) or sounds_secret(name)


def _text(value: Any) -> str | None:
    """Return a property as text that identifies its value; None if no text does."""
    if isinstance(value, str | int | float | bool | None) or type(value).__name__ == "Expression":
        return without_secrets(str(value))
    if isinstance(value, tuple) and all(isinstance(each, str) for each in value):
        return without_secrets(f"({', '.join(value)})")
    if isinstance(value, Mapping):
        return _joined("{", ": ", dict(value), "}")
    if attrs.has(type(value)) and not callable(value):
        cls: Any = type(value)
        default = {a.name: a.default for a in attrs.fields(cls)}
        given = {name: each for name, each in fields_of(value).items() if each is not default[name] and each != default[name]}
        return _joined("(", "=", {name: HIDDEN if _is_secret(cls, name) else each for name, each in given.items()}, ")")
    return FUNCTION if callable(value) and not isinstance(value, type) else None


def _joined(begin: str, between: str, values: dict[Any, Any], end: str) -> str | None:
    texts = {name: _text(value) for name, value in values.items() if isinstance(name, str)}
    if len(texts) != len(values) or None in texts.values():
        return None
    text = f"{begin}{', '.join(f'{name}{between}{each}' for name, each in texts.items())}{end}"
    return text if len(text) <= LONGEST else f"{text[:SHOWN]}… ({hash_bytes(text.encode())})"


def differences(was: WindowPlan, plan: Plan) -> tuple[str, ...]:
    """Return the differences between an application and the one that planned a window: operators, classes and streams."""
    then, now = {what: kind for what, kind in was.shape.items() if not what.startswith(ADDED)}, shape(plan)
    lost = [f"{what} is gone" for what in then if what not in now]
    new = [f"{what} is new" for what in now if what not in then]
    changed = [f"{what} was a {then[what]}" for what in now if then.get(what, now[what]) != now[what]]
    return (*lost, *new, *changed)


def other_values(was: WindowPlan, plan: Plan) -> list[str]:
    """Return the properties that have changed since a window was planned."""
    return list(_changes(was, plan).values())


def _changes(was: WindowPlan, plan: Plan) -> dict[str, str]:
    """Return the same by the name of the property."""
    values = properties(plan)
    changed = {name: then for name, then in was.properties.items() if values.get(name) != then}
    return {name: f"{name} = {then} → {values.get(name, 'another value')}" for name, then in changed.items()}


def _fixed(dag: CheckedDag, node: OperatorNode, has_rows: Collection[str]) -> tuple[str, ...]:
    """Return the properties of an operator that give what it has kept its meaning."""
    follows = any(source in dag.changing for source, _ in dag.upstream(node.name))
    of_content = node.operator.content_properties()
    if of_content and not follows and not is_behind_all(dag, node):
        of_content = ()
    keys = ("keys",) if follows and node.name in has_rows and node.operator.row_keys() else ()
    return (*node.operator.state_properties(), *of_content, *keys)


def changed_properties(plan: Plan, last: WindowPlan, run_folder: str, has_rows: Collection[str] = ()) -> list[str]:
    """Return the properties that have changed since a window was planned. Earlier windows had the old values.

    `has_rows`: the sinks that have rows. Before that, other keys are what a launch needs that was refused for those it had.

    Raises PlanMismatch when this is another application, or when it cannot resume from the states that are kept.
    """
    others = differences(last, plan)
    if others:
        text = "it belongs to another application, or to this one as it was:"
        raise PlanMismatch(run_folder, "\n    ".join([text, *others]))
    changed = _changes(last, plan)
    fixed = (f"{name}.{each}" for name, node in plan.written.nodes.items() for each in _fixed(plan.written, node, has_rows))
    stale = [changed[name] for name in fixed if name in changed]
    if stale:
        text = "what these operators have kept of earlier windows belongs to the properties that they had:"
        raise PlanMismatch(run_folder, "\n    ".join([text, *stale]))
    ends = {what.rpartition(" → ")[2] for what in last.shape}
    by_planner = (name for name in plan.dag.nodes if name not in plan.written.nodes)
    if late := [name for name in by_planner if name.endswith(f".{CURRENT}") and f"{name}.input" not in ends]:
        text = "these operators would keep the rows that stand from now on, and lack earlier ones:"
        raise PlanMismatch(run_folder, "\n    ".join([text, *late]))
    return list(changed.values())
