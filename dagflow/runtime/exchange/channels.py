"""The channels of a task: the rows that arrive for it, and where it sends its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import attrs

from dagflow.runtime.exchange.errors import ExchangeBroken
from dagflow.runtime.exchange.rows import FAILED, Row, failed_rows, is_failed
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import TaskSpec


def nothing_sent(row: Row) -> None:
    """Refuse rows: the task has no exchange behind it."""
    raise AssertionError(f"tag {row.tag}: this task sends nothing")


@attrs.frozen
class TaskChannels:
    """The rows that arrive for a task, and where it sends its own."""

    incoming: Iterable[Row] = ()
    send: Callable[[Row], None] = nothing_sent


def in_level(spec: TaskSpec, channels: TaskChannels, execute: Callable[[TaskChannels], TaskOutcome]) -> TaskOutcome | None:
    """Run a task; return None if one that it may depend on has failed. Later tasks are told of either failure."""
    rows = iter(channels.incoming)
    first = next(rows, None)
    if first is not None and is_failed(first):
        outcome = None
    else:
        outcome = execute(TaskChannels(chain(() if first is None else (first,), rows), channels.send))
    if outcome is None or outcome.error is not None:
        for row in failed_rows(spec.layout.next_tasks):
            channels.send(row)
        for _ in rows:  # their sender waits until all are taken
            pass
    return outcome


def checked(rows: Iterable[Row], spec: TaskSpec, levels: dict[int, int], onward: Callable[[Row], None]) -> Iterator[Row]:
    """Yield the rows for a task among those of its partition; rows for later levels go `onward`.

    Raises ExchangeBroken for a row that belongs to another task.
    """
    layout = spec.layout
    for row in rows:
        if row.tag == FAILED:
            yield row
        elif levels.get(row.exchange, -1) > layout.level:
            onward(row)
        elif row.dst != layout.place or levels.get(row.exchange) != layout.level:
            raise ExchangeBroken(spec.name, f"a row of exchange {row.exchange} for place {row.dst} came to place {layout.place}")
        else:
            yield row
