"""The windows that a run has decided, from its window log: figures of operators, files, states that are damaged."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

import attrs

from dagflow.errors import DagflowError
from dagflow.planning.view import OperatorView, PlanView, SinkView, StreamView
from dagflow.runtime.run_folder.launch_record import LaunchRecord
from dagflow.runtime.run_folder.layout import LAUNCH, stored
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures, summed, summed_exchanges
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.run_view import WindowView
from dagflow.storage import is_local

MAX_DECISIONS = 2_000
MAX_REMOTE_DECISIONS = 30
"""Each is a request of its own."""
MAX_PROBLEMS = 20


@attrs.define
class CommittedWindows:
    """The decided windows that a run folder still has, newest first as far as they are read. `update` reads further ones.

    Attributes:
        operators, exchanges: the sums over the windows that were read, `first` to `last`; `count` is their number.
        windows: the figures of each of them.
        plan: the newest plan; None without one.
        launched: the record of the newest launch; None without one.
        problems: what could not be read, as errors.
    """

    log: WindowLog
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    exchanges: dict[str, ExchangeFigures] = attrs.field(factory=dict)
    windows: dict[int, WindowView] = attrs.field(factory=dict)
    planned: int = 0
    plan: WindowPlan | None = None
    launched: LaunchRecord | None = None
    problems: dict[str, DagflowError] = attrs.field(factory=dict)
    samples: dict[str, list[list[Any]]] = attrs.field(factory=dict)
    _launch: str = ""

    def update(self) -> None:
        """Read the windows that have been decided since the last call."""
        limit = MAX_DECISIONS if is_local(self.log.store.url) else MAX_REMOTE_DECISIONS
        decided, planned = self.log.windows("decision"), self.log.windows("plan")
        self.planned = (max(planned) + 1) if planned else (max(decided) + 1 if decided else 0)
        fresh = [number for number in decided[-limit:] if number not in self.windows]
        for number in fresh:
            decision = self._read(f"decision of window {number}", lambda n=number: self.log.read_decision(n, alone=True))
            if decision is not None:
                self._add(decision)
        if planned and (self.plan is None or self.plan.window != max(planned)):
            self.plan = self._read(f"plan of window {max(planned)}", lambda: self.log.read_plan(max(planned))) or self.plan
        names = sorted(name.rpartition("/")[2] for name in stored(self.log.unsynced, (LAUNCH,)))
        if names and names[-1] != self._launch:
            self._launch = names[-1]
            self.launched = self._read(f"launch {names[-1]}", lambda: self.log.read_launched(names[-1])) or self.launched

    def planned_window(self, number: int | None) -> WindowPlan | None:
        """Return the plan of a window; None without one, or where it cannot be read."""
        if number is None or (self.plan is not None and self.plan.window == number):
            return None if number is None else self.plan
        plan: WindowPlan | None = self._read(f"plan of window {number}", lambda: self.log.read_plan(number))
        return plan

    def _read(self, what: str, reading: Any) -> Any:
        """Return what a function reads. Note records that are damaged, of another version, or unreachable."""
        try:
            return reading()
        except DagflowError as problem:
            if len(self.problems) < MAX_PROBLEMS:
                self.problems[what] = problem
            return None

    def _add(self, decision: Decision) -> None:
        self.operators = summed([self.operators, decision.operators])
        self.exchanges = summed_exchanges([self.exchanges, decision.exchanges])
        for name, figures in decision.operators.items():
            if figures.samples:
                rows = self.samples.setdefault(name, [])
                rows += [[decision.window, text] for text in figures.samples]
                del rows[:-10]
        self.windows[decision.window] = WindowView(
            decision.window,
            decided=decision.decided_at or None,
            files=len(decision.files),
            written=sum(file.size for file in decision.files),
            records=sum(file.records for file in decision.files),
            steals=len(decision.steals),
            launch=decision.round.rstrip("+").partition(".")[0],
        )

    @property
    def view(self) -> PlanView | None:
        """The plan of the newest launch as a view; from its operators and streams alone where no launch has kept it."""
        stored_view = None if self.launched is None else self.launched.view
        if stored_view is not None:
            try:
                kept: PlanView = view_of(stored_view)
                return kept
            except (KeyError, TypeError, ValueError, AttributeError):  # of a version with other fields
                pass
        return None if self.plan is None else _drawn_from(self.plan, "" if self.launched is None else self.launched.name)


def view_of(data: Any, tp: Any = PlanView) -> Any:
    """Return the view that `PlanView.as_json` was made of, or a part of it, without fields that are not known here."""
    if attrs.has(tp):
        return tp(**{name: view_of(data[name], kind) for name, kind in get_type_hints(tp).items() if name in data})
    return tuple(view_of(each, get_args(tp)[0]) for each in data) if get_origin(tp) is tuple else data


def _drawn_from(plan: WindowPlan, name: str) -> PlanView:
    """Return a view of the operators and streams that a plan names."""
    operators, streams = [], []
    for what, kind in plan.shape.items():
        if what.startswith("operator "):
            bare = {"module": "", "where": "", "properties": (), "inputs": (), "outputs": ()}
            operators.append(OperatorView(name=what.removeprefix("operator "), class_name=kind, **bare))  # type: ignore[arg-type]
    names = {operator.name for operator in operators}
    for what in plan.shape:
        source, arrow, sink = what.partition("stream ")[2].partition(" → ")
        if what.startswith("stream ") and arrow and {source.rpartition(".")[0], sink.rpartition(".")[0]} <= names:
            streams.append(StreamView(name="", source=source, sinks=(SinkView(port=sink),), where=""))
    return PlanView(application=name, step="logical", operators=tuple(operators), streams=tuple(streams))
