"""Contestants, in turn, round after round; and what comes out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import attrs

from benchmarks import machine


@attrs.frozen
class Contestant:
    """A program that does the work: ours or a peer's.

    Attributes:
        run: does it once; may return the seconds that it took, where not the whole call counts.
        check: after the first round: what came out (lines and bytes, say), the same for all contestants of a case.
        clean: removes what came out; not timed.
        size: bytes of input, where throughput makes sense.
    """

    name: str
    run: Callable[[], float | None]
    check: Callable[[], object] | None = None
    clean: Callable[[], None] = lambda: None
    size: int | None = None


@attrs.frozen
class Goal:
    """`ours` is at least `least` times as fast as `peer`, or needs at most the share `most` of its seconds."""

    ours: str
    peer: str
    least: float | None = None
    most: float | None = None

    @property
    def words(self) -> str:
        """The goal as the table shows it."""
        if self.most is not None:
            return f"{self.ours}: at most {self.most:g} of the time of {self.peer}"
        return f"{self.ours}: at least {self.least:g} times as fast as {self.peer}"

    def of(self, ours: float, peer: float) -> tuple[str, bool]:
        """Return the measured ratio of the seconds (for each byte) of both, and whether it reaches the goal."""
        if self.most is not None:
            return f"{ours / peer:.2f}", ours / peer <= self.most
        return f"{peer / ours:.2f}", self.least is None or peer / ours >= self.least


@attrs.frozen
class Limit:
    """`ours` takes at most so many seconds (or another unit)."""

    ours: str
    most: float
    unit: str = "s"

    @property
    def words(self) -> str:
        """The limit as the table shows it."""
        return f"{self.ours}: at most {self.most:g} {self.unit}"


@attrs.frozen
class Case:
    """One piece of work. `unit` is what `run` returns: seconds, or something else that is measured (MB of memory)."""

    name: str
    title: str
    contestants: Sequence[Contestant]
    goals: Sequence[Goal | Limit] = ()
    unit: str = "s"
    notes: Sequence[str] = ()
    rounds: int | None = None
    warm_up: int = 1


@attrs.frozen
class Figure:
    """The result of one contestant: `values` by round, processor seconds (median), bytes of input."""

    name: str
    values: tuple[float, ...]
    processor: float | None
    size: int | None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def each(self) -> float:
        """Seconds for a byte, or seconds."""
        return self.median / self.size if self.size else self.median


@attrs.frozen
class Result:
    """A case with its figures; `load`: the load of the machine before it and the highest during it."""

    case: Case
    figures: dict[str, Figure]
    load: tuple[float, float]

    def by_processor(self, goal: Goal | Limit) -> str:
        """Return the ratio by processor seconds, which depend less on what else the machine does."""
        ours = self.figures.get(goal.ours)
        peer = self.figures.get(goal.peer) if isinstance(goal, Goal) else None
        if isinstance(goal, Limit) or ours is None or peer is None or not ours.processor or not peer.processor:
            return ""
        return goal.of(ours.processor / (ours.size or 1), peer.processor / (peer.size or 1))[0]

    def outcome(self, goal: Goal | Limit) -> tuple[str, bool] | None:
        """Return the measurement, and whether it reaches the goal; None where a contestant is missing."""
        ours = self.figures.get(goal.ours)
        if ours is None:
            return None
        if isinstance(goal, Limit):
            return f"{ours.median:.3g} {goal.unit}", ours.median <= goal.most
        peer = self.figures.get(goal.peer)
        return None if peer is None else goal.of(ours.each, peer.each)


class DifferentOutput(Exception):
    """Contestants of one case did not make the same."""


def compete(case: Case, rounds: int, say: Callable[[str], None]) -> Result:
    """Runs the contestants in turn: a round of warming up, in which their outputs are compared, then the rounds that count."""
    rounds = case.rounds or rounds
    before = highest = machine.load()
    values: dict[str, list[float]] = {c.name: [] for c in case.contestants}
    processor: dict[str, list[float]] = {c.name: [] for c in case.contestants}
    made: dict[str, object] = {}
    for number in range(-case.warm_up, rounds):
        for contestant in case.contestants:
            contestant.clean()
            used, began = machine.processor_seconds(), time.perf_counter()
            told = contestant.run()
            seconds = time.perf_counter() - began
            used = machine.processor_seconds() - used
            if contestant.name not in made and contestant.check is not None:
                made[contestant.name] = contestant.check()
            contestant.clean()
            highest = max(highest, machine.load())
            if number >= 0:
                values[contestant.name].append(seconds if told is None else told)
                processor[contestant.name].append(used)
        say(f"{case.name}: round {number + 1} of {rounds}")
    if len(set(made.values())) > 1:
        raise DifferentOutput(f"{case.name}: {made}")
    figures = {
        c.name: Figure(c.name, tuple(values[c.name]), statistics.median(processor[c.name]) if case.unit == "s" else None, c.size)
        for c in case.contestants
    }
    return Result(case, figures, (before, highest))
