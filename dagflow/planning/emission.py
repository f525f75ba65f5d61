"""Emission points: the windows in which changing streams reach sinks. They are the same for all operators of a launch."""

from __future__ import annotations

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode
from dagflow.planning.errors import EmissionMissing, NotSupported
from dagflow.planning.scopes import ALL, content_covers


@attrs.frozen
class Emission:
    """The emission points of a launch.

    Attributes:
        continuous: whether the launch waits for new input. One that does not emits once, when its input is exhausted.
        every: the seconds between two emission points of a continuous launch; 0 or None: each window is one.
        is_final: whether the launch takes all input as one window, and keeps nothing. It is the only one of its run.

    >>> str(Emission()), str(Emission(continuous=True)), str(Emission(continuous=True, every=90))
    ('when the input is exhausted', 'with each window', 'every 90 s')
    """

    continuous: bool = False
    every: float | None = None
    is_final: bool = False

    @property
    def is_each_window(self) -> bool:
        """True if each window is an emission point."""
        return self.is_final or (self.continuous and not self.every)

    def is_due(self, now: float, emitted_at: float) -> bool:
        """Return whether a window of a continuous launch is an emission point. `emitted_at`: the time of the last one."""
        return not self.every or not 0 <= now - emitted_at < self.every

    def __str__(self) -> str:
        if not self.continuous:
            return "when the input is exhausted"
        return f"every {self.every:g} s" if self.every else "with each window"


EACH_WINDOW = Emission(continuous=True, every=0)
"""The emission points of a continuous launch without `every`."""


def refuse_whole_results(dag: CheckedDag, emission: Emission) -> None:
    """Raise EmissionMissing where sinks would write a changing result whole with each window of a continuous launch."""
    whole = tuple(node for node in dag.nodes.values() if writes_whole(dag, node))
    if whole and emission.continuous and emission.every is None:
        raise EmissionMissing(tuple((node.name, type(node.operator).__qualname__, node.where) for node in whole))


def writes_whole(dag: CheckedDag, node: OperatorNode) -> bool:
    """Return whether a sink gets all rows that stand at each emission point, since it keeps the current result."""
    return content_covers(dag, node) == ALL


def refuse_further_windows(dag: CheckedDag) -> None:
    """Raise NotSupported where a launch of one window, which keeps nothing, would need another one: at the end of event time."""
    for node in dag.nodes.values():
        if node.operator.follows_event_time:
            raise NotSupported(
                f"{node.name!r} follows event time, whose end needs a further window: a final launch has one",
                node.where,
                'leave out --final; or group by a time window: GroupBy(window("time", "10m"), …)',
            )
