"""The stores that an application writes to itself: tables and databases. Checked before a launch creates or removes anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from dagflow.errors.shown import without_secrets
from dagflow.model.operator.context import Cursor
from dagflow.model.operator.sink import Sink, SinkLaunch, StagedWindow
from dagflow.model.types.forms import schema_of
from dagflow.planning.late_columns import Columns, late_columns
from dagflow.planning.plan import Plan
from dagflow.runtime.stage.failure import abort

_LAST = 1 << 62
"""A window behind all that any run has begun."""


def sinks_of(plan: Plan) -> Iterator[tuple[str, Sink]]:
    """Yield the sinks that do not write files, by name."""
    for name, node in plan.dag.nodes.items():
        if isinstance(node.operator, Sink):
            yield name, node.operator


def destinations(plan: Plan) -> dict[str, str]:
    """Return the destinations of the sinks that do not write files, by operator."""
    return {name: without_secrets(sink.destination()) for name, sink in sinks_of(plan)}


def check_sinks(plan: Plan, application: str | None, *, fresh: bool, has_undone: bool) -> list[str]:
    """Try the store of each sink, and return warnings. Raises what `Sink.check_store` raises.

    `application`: the identity on the run folder, None without one; `has_undone`: decided windows are to be published first.
    """
    warnings: list[str] = []
    for name, sink in sinks_of(plan):
        launch = SinkLaunch(
            application="" if fresh or application is None else application,
            name=plan.dag.name,
            sink=name,
            fresh=fresh,
            replaces=application if fresh and application is not None else "",
            columns=None if has_undone and not fresh else _columns(plan, name),
        )
        with _naming(name, "the check of its store"):
            warnings += [f"{name}: {text}" for text in sink.check_store(launch)]
    return warnings


def check_late_columns(plan: Plan, application: str, agreed: Mapping[str, Any]) -> None:
    """Try the stores of sinks whose columns only the data shows, now that readers have agreed on them.

    Raises what `Sink.check_store` raises.
    """
    for name, sink in sinks_of(plan):
        upstream = plan.dag.upstream(name)
        columns = (
            late_columns(plan, agreed, name) if all(schema_of(plan.dag.types[port]) is None for _, port in upstream) else None
        )
        if (named := _named_types(columns)) is not None:
            launch = SinkLaunch(application=application, name=plan.dag.name, sink=name, columns=named)
            with _naming(name, "the check of its store"):
                sink.check_store(launch)


def sweep_replaced(plan: Plan, application: str | None) -> None:
    """Remove what the tasks of an application that `--fresh` replaces have staged. Raises what `Sink.sweep` raises.

    `application`: None where the run folder does not say it.
    """
    if application is None:
        return
    for name, sink in sinks_of(plan):
        with _naming(name, "sweep()"):
            sink.sweep(StagedWindow(application, _LAST, sink=name))


@contextlib.contextmanager
def _naming(operator: str, doing: str) -> Iterator[None]:
    """Let errors of a sink's own code name the operator."""
    try:
        yield
    except Exception as error:
        failure = abort(operator, None, doing, error, None, Cursor()).error
        if failure is error:
            raise
        raise failure from error


def _columns(plan: Plan, operator: str) -> Columns | None:
    """Return the columns of the rows that will come to a sink; None where only the data shows them."""
    types = [plan.dag.types[sink] for _, sink in plan.dag.upstream(operator)]
    schema = schema_of(types[0]) if len(types) == 1 else None
    return None if schema is None else _named_types([(field.name, str(field.type)) for field in schema])


def _named_types(columns: Columns | None) -> Columns | None:
    """Return columns, or None if a type has no name that can be read again, as those of extensions."""
    from dagflow.arrow_types import type_named  # only here: `--help` does not wait for pyarrow

    try:
        for _, kind in columns or ():
            type_named(kind)
    except ValueError:
        return None
    return columns
