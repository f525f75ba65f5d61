"""Faults at each call by which a launch changes files: kills, torn writes, failing and full disks, power cuts.

Read in this order: `shim.c` and `shim.py` number the calls of a launch and make one of them fatal; `disk.py` says what a power
cut leaves; `applications.py` has a small application for each sink, and reads what it has written (`results.py` and `tables.py`:
results that change, and the sinks that follow them); this module runs the cases;
and `__main__.py` is the command (`make faults`).

How it relates to the other tests of crashes:

- `tests/chaos/dying.py` kills a launch around the calls of a *function of ours*, and `tests/conformance/faults` at what *Python*
  touches. They are fast, need no compiler, and say which step was hit. They do not see what libraries in C and Rust do (SQLite,
  deltalake, Arrow), nor single writes and syncs. Here all of these are calls. Launches are forked by the same `dying.in_child`.
- `tests/chaos/kills.py` kills processes at random moments, on Spark and clusters too. Here the runner is the local one, and no
  moment is left out.
- Failing servers, and connections that break (`tests/chaos/postgres.py`, `tests/logs/relay.py`), stay where they are: a fault
  here is one of the launch's own machine. Messages to servers are calls, too: launches die there, or lose the connection.
- No other test cuts the power.

After a fault (or two: `kill, then cut`) the application is launched again, and in half of the cases once more with one more
file. Each time each sink must have exactly the rows of the reference, and each ledger must verify. `durability = process`
promises nothing after a power cut: a launch may then refuse by a code, or lack rows; it must not hang, or fail without a code.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from dagflow import launch
from dagflow.errors import DagflowError
from dagflow.launching.launch import local_runner
from dagflow.local.boot import boot_as_fork
from tests.chaos.dying import in_child
from tests.faults.applications import Application
from tests.faults.disk import MODELS, Disk, content_of
from tests.faults.place import Place
from tests.faults.servers import Servers
from tests.faults.shim import Action, Call, Control, Kind

DURABILITIES = ("machine", "process")
FILES = 2
SECONDS = 120  # for a launch; longer, and it hangs
NEVER = 1 << 60

TAKES_SPACE = frozenset({Kind.OPEN, Kind.WRITE, Kind.LINK, Kind.SYMLINK, Kind.MKDIR, Kind.RENAME})
FAULTS: dict[str, tuple[Action, frozenset[Kind]]] = {
    "kill": (Action.KILL, frozenset(Kind)),
    "tear": (Action.TEAR, frozenset({Kind.WRITE, Kind.SEND})),
    "EIO": (Action.EIO, frozenset(Kind)),
    "ENOSPC": (Action.ENOSPC, TAKES_SPACE),
    "full": (Action.FULL, TAKES_SPACE),
    **{f"cut, {model}": (Action.CUT, frozenset(Kind)) for model in MODELS},
    "kill, then cut": (Action.CUT, frozenset(Kind)),
}
"""The faults, and the kinds of calls that they can hit. `full`: no call that takes space succeeds from then on. `kill, then cut`:
the power is cut at some call of the launch after the one that was killed, which trusts what that one has not synced."""

CUTS = {f"cut, {model}": model for model in MODELS}


@attrs.frozen
class Case:
    """A fault at the call of a number, from 1."""

    application: Application
    durability: str
    fault: str
    call: int

    def __str__(self) -> str:
        return f"{self.application.name} ({self.durability}), {self.fault} at call {self.call}"


@attrs.define
class Totals:
    """The course of many cases.

    Attributes:
        calls: the number of calls of an undisturbed launch, by application and durability.
        faults: the faults that have happened.
        passed_over: the cases whose launch has ended before its call came: launches do not always make the same calls.
        survived: launches that have ended well in spite of a fault.
        allowed: the cases where rows were lost, or a launch was refused, after a power cut with `durability = process`.
        wrong: what was lost, doubled or stuck, by case.
    """

    calls: dict[str, int] = attrs.field(factory=dict)
    faults: Counter[str] = attrs.field(factory=Counter)
    passed_over: int = 0
    survived: int = 0
    allowed: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)

    def report(self) -> Iterator[str]:
        """Yield the lines for a reader."""
        yield from (f"{name}: {count} calls" for name, count in self.calls.items())
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        yield f"{self.faults.total()} faults ({faults}); {self.survived} launches survived, {self.passed_over} cases passed over"
        if self.allowed:
            yield "power cuts with durability = process: " + ", ".join(f"{count} {what}" for what, count in self.allowed.items())
        yield from (f"WRONG {each}" for each in self.wrong)
        yield f"lost, doubled or stuck: {len(self.wrong)}"


@attrs.define
class Harness:
    """Runs cases. This process must have the library of `shim.c`, and no threads: it forks a child for each launch.

    Attributes:
        folder: for the files of one case.
        library: the path of that library, for the processes that a launch starts.
        keep: the folder where the files of wrong cases are kept; None: nowhere.
    """

    folder: Path
    library: str
    servers: Servers
    seed: int = 0
    keep: Path | None = None
    totals: Totals = attrs.field(factory=Totals)
    _rng: random.Random = attrs.field(default=attrs.Factory(lambda self: random.Random(self.seed), takes_self=True), init=False)
    _number: int = attrs.field(default=0, init=False)

    # ---------------------------------------------------------------------------------------------------------------- launches

    def _place(self, application: Application) -> Place:
        self._number += 1
        place = Place(self.folder / f"{self._number}", self.servers).prepare(FILES)
        for output in application.outputs:
            output.prepare(place)
        return place

    def _launched(self, place: Place, application: Application, durability: str, control: Control, more: bool = False) -> Outcome:
        """Launch in a child, and look at the sinks. `more`: one more file arrives then, and it is launched again."""
        said, result = place.folder / "said", place.folder / "result"
        result.unlink(missing_ok=True)

        def work() -> None:
            signal.alarm(SECONDS)
            descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            wrong: list[str] = []
            try:
                for is_first in (True, False)[: 1 + more]:
                    if not is_first:
                        place.deliver()
                    with control.armed(self.library):
                        # workers are forks of this process, as of the command: else each launch would import all for seconds
                        runner = local_runner(application.slots, boot_as_fork() if application.slots > 1 else None)
                        launch(application.populate(place), application.settings(place), runner=runner, durability=durability)
                    wrong += application.wrong(place)
                result.write_text(json.dumps({"wrong": sorted(set(wrong)), "modules": sorted(sys.modules)}))
            except DagflowError as error:
                result.write_text(json.dumps({"code": error.code, "error": str(error)}))
                raise
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                result.write_text(json.dumps({"code": "", "error": text}))
                raise

        status = in_child(work)
        found = json.loads(result.read_text()) if result.exists() else {}
        for name in found.get("modules", ()):
            if name not in sys.modules:  # the next children need not import it
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        return Outcome(
            status, found.get("code"), found.get("error", said.read_text(errors="replace")[-500:]), found.get("wrong", [])
        )

    # ------------------------------------------------------------------------------------------------------------------- cases

    def survey(self, application: Application, durability: str) -> list[Kind]:
        """Launch undisturbed, and return the kinds of its calls. Raises AssertionError if calls were missed, or it goes wrong."""
        place = self._place(application)
        disk = Disk.of(place.data)
        control = Control.create(place.folder / "control", place.data, Action.CUT, NEVER, application.sockets)
        outcome = self._launched(place, application, durability, control)
        assert outcome.status == 0, f"{application.name}: {outcome}"
        assert not outcome.wrong, f"{application.name}: {outcome.wrong}"
        kinds = [Kind.SEND] * control.count  # messages, and calls that fail: they are not recorded
        for call in control.calls():
            kinds[call.number - 1] = call.kind
            disk.apply(call)
        expected, found = disk.now().content(disk.top), content_of(place.data)
        missed = [name for name in expected.keys() | found.keys() if expected.get(name, "") != found.get(name, "")]
        assert not missed, f"{application.name}: the calls that were seen do not explain {missed}"
        self.totals.calls[f"{application.name}, {durability}"] = len(kinds)
        shutil.rmtree(place.folder)
        return kinds

    def run(self, case: Case) -> None:
        """Run a case, and add to the totals."""
        application, action = case.application, FAULTS[case.fault][0]
        place = self._place(application)
        disk = Disk.of(place.data) if action is Action.CUT else None
        control = Control.create(place.folder / "control", place.data, action, case.call, application.sockets)
        first = self._launched(place, application, case.durability, control)
        wrong = list(self._wrong_first(first, control))
        if disk is not None and case.fault not in CUTS:
            disk.apply_all(control.calls())
            number = self._rng.randint(1, self.totals.calls[f"{application.name}, {case.durability}"])
            control = Control.create(place.folder / "control", place.data, action, number, application.sockets)
            wrong += self._wrong_first(self._launched(place, application, case.durability, control), control)
        may_leave = control.kind is Kind.UNLINK and action is Action.EIO  # what cannot be removed stays
        if disk is not None:
            self._cut(disk, control.calls(), place, case.fault)
        elif not control.hits:
            self.totals.passed_over += 1
        if control.hits or disk is not None:
            self.totals.faults[case.fault] += 1
            self.totals.survived += first.status == 0
        if self.keep is not None:
            shutil.copytree(place.folder, place.folder.with_suffix(".fault"), symlinks=True)
        control = Control.create(place.folder / "control", place.data, sockets=application.sockets)
        then = self._launched(place, application, case.durability, control, more=case.call % 2 == 1)
        wrong += self._wrong_then(then, is_promised=disk is None or case.durability == "machine")
        self.totals.wrong += [f"{case}: {each}" for each in wrong if not (may_leave and "left over: " in each)]
        if self.keep is not None:
            if wrong:
                shutil.move(place.folder.with_suffix(".fault"), self.keep / str(case).replace("/", "_"))
            shutil.rmtree(place.folder.with_suffix(".fault"), ignore_errors=True)
        shutil.rmtree(place.folder)

    def _cut(self, disk: Disk, calls: Iterable[Call], place: Place, fault: str) -> None:
        disk.apply_all(calls)
        shutil.rmtree(place.data)
        place.data.mkdir()
        disk.cut(CUTS.get(fault) or self._rng.choice(MODELS), self._rng).write(disk.top, place.data)

    def _wrong_first(self, outcome: Outcome, control: Control) -> Iterator[str]:
        """Yield what is wrong with the launch that was hit: it may end by the fault, or by an error that has a code."""
        if outcome.status == -signal.SIGALRM:
            yield "the launch that was hit hangs"
        elif outcome.status == 1 and not outcome.code:
            yield f"the launch that was hit ended without a code: {outcome.error}"
        elif outcome.status == 0:
            yield from outcome.wrong
        elif outcome.status not in (1, -signal.SIGKILL):
            yield f"the launch that was hit ended with {outcome.status}: {outcome.error}"
        if outcome.status == 1 and not control.hits:
            yield f"the launch ended by itself: {outcome.error}"

    def _wrong_then(self, outcome: Outcome, is_promised: bool) -> Iterator[str]:
        """Yield what is wrong after the launches that follow."""
        if outcome.status == 1 and outcome.code and not is_promised:
            self.totals.allowed["refused"] += 1
        elif outcome.status == 0 and outcome.wrong and not is_promised:
            self.totals.allowed["with other rows"] += 1
        elif outcome.status:
            yield f"stuck: the launch after it ended with {outcome.status}: {outcome.error}"
        else:
            yield from outcome.wrong


@attrs.frozen
class Outcome:
    """The end of a launch: the status of its process, the code of its error, its text, and what is wrong with the sinks."""

    status: int
    code: str | None
    error: str
    wrong: list[str]


def cases(application: Application, durability: str, kinds: list[Kind]) -> Iterator[Case]:
    """Yield all cases of an application. A power is cut at each call, and after the last one."""
    for fault, (action, hit) in FAULTS.items():
        for number, kind in enumerate(kinds, 1):
            if kind in hit:
                yield Case(application, durability, fault, number)
        if action is Action.CUT:
            yield Case(application, durability, fault, len(kinds) + 1)


def show(line: str) -> None:
    """Print at once: shifts run for hours."""
    print(line, file=sys.stderr, flush=True)
