"""Launches that are killed at random moments, and launched again until they get through.

A `Series` works on one output: it launches, waits for a random moment, kills a process, launches again, and so on; at last it
lets a launch end, and the oracle looks at the output. Moments are drawn over what happens (so many events of the launch, and a
part of the time between two windows), and some over the clock (anything from the start of Python on), all from a seed.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow.ledger import Ledger
from tests.chaos import oracle
from tests.chaos.cases import Application, Place, local
from tests.chaos.processes import Process, ended, is_executor, is_java, is_python_worker, stands_still, those_below

ROOT = Path(__file__).parents[2]
SEED = "CHAOS_SEED"
AT_ONCE = 8  # kills on one output
PATIENCE = 400.0  # seconds for a launch on a machine that is busy with other things: longer, and it hangs


@attrs.define
class Figures:
    """The course of a series: kills by kind, launches, outputs that the oracle has seen, launches that gave up by themselves."""

    kills: Counter[str] = attrs.field(factory=Counter)
    launches: int = 0
    outputs: int = 0
    gave_up: Counter[str] = attrs.field(factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        kills = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        done = f"{self.launches} launches, {self.outputs} outputs, {self.seconds:.0f} s"
        given = f"; gave up: {dict(self.gave_up)}" if self.gave_up else ""
        return f"{self.kills.total()} kills ({kills}), {done}{given}"


class Launch:
    """One launch of an application, as a process of its own."""

    def __init__(self, command: list[str], folder: Path, datasets: list[Path], errors: Path, number: int) -> None:
        self._datasets = datasets
        self._before = set(self._events())
        self._file: Path | None = None
        self.errors = errors
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [environment.get("PYTHONPATH")])])
        with self.errors.open("wb") as err:  # no pipe: children that outlive the launch would keep it open
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": err}
            self.popen: subprocess.Popen[bytes] = subprocess.Popen(command, cwd=folder, env=environment, **pipes)  # type: ignore[call-overload]
        self.number = number
        self.began = time.monotonic()
        self.victims: list[str] = []

    def events(self) -> list[dict[str, Any]]:
        """The events of this launch, as far as they are."""
        return [json.loads(line) for line in self._lines()]

    def _lines(self) -> list[bytes]:
        if self._file is None:
            new = [path for path in self._events() if path not in self._before]
            if not new:
                return []
            [self._file] = new
        return self._file.read_bytes().split(b"\n")[:-1]

    def _events(self) -> list[Path]:
        """The files of events of all launches: the run folder is that of one of the outputs."""
        return [path for folder in self._datasets for path in folder.glob("_dagflow/events/*.jsonl")]

    def runs(self) -> bool:
        """True until it has ended."""
        return self.popen.poll() is None

    def reaches(self, events: int, part: float) -> bool:
        """Waits until it has sent so many more events, and then for a part of the time between windows. Whether it still runs."""
        target = len(self._lines()) + events
        while self.runs():
            if len(self._lines()) >= target:
                time.sleep(part * between_windows(self.events()))
                return self.runs()
            self._in_time()
            time.sleep(0.002)
        return False

    def lasts(self, seconds: float) -> bool:
        """Waits until it is so old. Whether it still runs."""
        while self.runs() and time.monotonic() < self.began + seconds:
            time.sleep(0.001)
        return self.runs()

    def ends(self) -> int:
        """Waits for its end: its exit status."""
        while self.runs():
            self._in_time()
            time.sleep(0.005)
        return self.popen.returncode

    def _in_time(self) -> None:
        assert time.monotonic() < self.began + PATIENCE, f"hangs: {self.events()[-3:]}; {self.said()}"

    def said(self) -> str:
        """The text on its standard error."""
        return self.errors.read_text(errors="replace")


def between_windows(events: list[dict[str, Any]]) -> float:
    """The time between two windows of late, in seconds."""
    done = [event["at"] for event in events if event["event"] == "window_done"][-4:]
    return (done[-1] - done[0]) / (len(done) - 1) if len(done) > 1 else 0.1


class Series:
    """Kills on one output, until there were enough; see the module.

    Args:
        number: of the series, in the name of its output.
        figures: are added to.
    """

    def __init__(self, application: Application, place: Place, rng: random.Random, number: int, figures: Figures) -> None:
        self._application, self._place, self._rng, self._figures = application, place, rng, figures
        self.output = application.folder / f"out-{place.name}-{number}"
        self._datasets = [self.output / sink.folder for sink in application.sinks]
        options = {
            "windows-in-flight": rng.choice((1, 2, 4)),
            "durability": rng.choice(("machine", "process")),
            "retain-windows": rng.choice((3, 1000)),
        }
        self._options = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self.story = [f"{application.name} on {place.name}, {self.output.name}: {options}"]
        self._launches: list[Launch] = []
        self._seen: set[Process] = set()
        self._stopped: list[Process] = []  # workers of launches that were killed
        self._asleep: list[Process] = []
        self._deliveries = 0
        self._all_delivered = False

    def run(self, kinds: list[str]) -> list[str]:
        """Kills these one after the other, as long as there is something to do; returns those that were left over."""
        try:
            left, is_through = self._kill_all(list(kinds))
            if not is_through or self._asleep:
                self._get_through()
            self._all_end()
            self._check()
            return left
        finally:
            self.clean()

    def _kill_all(self, kinds: list[str]) -> tuple[list[str], bool]:
        """Those that were left over, and whether the last launch has got through."""
        while kinds:
            self._deliver()
            launch = self._begin()
            self._wake_zombies()
            while kinds and self._moment(launch, len(kinds)):
                self._see(launch)
                if self._kill(launch, kinds[0]):
                    kinds.pop(0)
                if launch.victims and launch.victims[-1] in ("driver", "zombies", "jvm"):
                    break
            if self._ended(launch) == 0 and self._all_delivered:
                return kinds, True
        return kinds, False

    def _get_through(self) -> None:
        attempts = 3  # what is left of those who were killed may still disturb it
        while attempts:
            if not self._all_delivered:
                self._deliver()
            launch = self._begin()
            self._wake_zombies()
            if self._ended(launch) != 0:
                attempts -= 1
            elif self._all_delivered:
                return
        self._fail("no launch gets through")

    def _all_end(self) -> None:
        for process in self._stopped:
            process.send(signal.SIGKILL)  # the daemons of zombies, which no launch needs
        if left := ended(self._seen, 60):
            self._fail(f"left behind: {[(p.pid, p.command[:200]) for p in left]}")

    def _check(self) -> None:
        heads = self._heads()
        if self._ended(self._begin(local())) != 0:
            self._fail("the launch after the last one has failed")
        if self._heads() != heads:
            self._fail(f"one more launch has written entries after {heads}")
        for folder, sink in zip(self._datasets, self._application.sinks, strict=True):
            if wrong := list(oracle.wrong(folder, sink.content, sink.expected, sink.rows_of)):
                self._fail(f"in {folder.name}:", *wrong)
        if wrong := list(self._application.wrong(self.output, True)):
            self._fail(*wrong)
        self._figures.outputs += 1

    # ------------------------------------------------------------------------------------------------------------- launches

    def _deliver(self) -> None:
        self._deliveries += 1
        self._all_delivered = self._application.deliver(self.output.name, self._deliveries)

    def _begin(self, place: Place | None = None) -> Launch:
        app, place = self._application, place or self._place
        settings = {**app.settings_for(self.output.name), **place.settings}
        given = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        command = [sys.executable, "-m", "dagflow", "launch", str(app.path), "--progress", "none", *place.options, *self._options]
        self._figures.launches += 1
        number = len(self._launches) + 1
        errors = app.folder / f"{self.output.name}.{number}.err"
        self._launches.append(self._new_launch([*command, *given], errors, number))
        return self._launches[-1]

    def _new_launch(self, command: list[str], errors: Path, number: int) -> Launch:
        return Launch(command, self._application.folder, self._datasets, errors, number)

    def _moment(self, launch: Launch, left: int) -> bool:
        """Waits for a random moment. Whether the launch still runs then."""
        rng = self._rng
        if not launch.victims and rng.random() < 0.25:
            return launch.lasts(rng.uniform(0, self._place.seconds))
        events = rng.uniform(0, self._application.windows * 6 / (left + 1))
        return launch.reaches(int(events), rng.random())

    def _ended(self, launch: Launch) -> int:
        status = launch.ends()
        if status == 0 and not launch.victims and launch is self._launches[0]:
            self._place.seconds = time.monotonic() - launch.began  # here and now
        self._note(f"launch {launch.number}: {launch.victims} → {status}")
        said = launch.said()
        last = launch.victims[-1] if launch.victims else ""
        if last in ("driver", "zombies"):
            allowed: tuple[int, ...] = (-signal.SIGKILL,)
        elif last == "jvm":
            allowed = (0, 3)
        elif launch.victims and set(launch.victims) != {"pause"}:
            allowed = (0, 1, 3)
        else:
            allowed = (0,)
        if status in (1, 3):
            self._figures.gave_up[f"{' '.join(re.findall('DF[0-9]+', said)[:1])} after {last}"] += 1
        if status not in allowed or "Traceback" in said:
            self._fail(f"launch {launch.number} ended with {status} after {launch.victims}: {said}")
        if problems := list(self._wrong_meanwhile()):
            self._fail(f"after launch {launch.number}", *problems)
        return status

    def _wrong_meanwhile(self) -> Iterator[str]:
        """Yield the broken promises among those that hold after any launch, however it ended."""
        for folder in self._datasets:
            if (folder / "_dagflow" / "ledger").exists():
                yield from (f"{folder.name}: {problem}" for problem in Ledger.open(str(folder)).verify().problems)
        yield from self._application.wrong(self.output, False)

    def _heads(self) -> list[Any]:
        """The newest entries of all ledgers."""
        return [Ledger.open(str(folder)).head() for folder in self._datasets]

    # ---------------------------------------------------------------------------------------------------------------- kills

    def _kill(self, launch: Launch, kind: str) -> bool:
        """Kills one of a kind; False when there is none."""
        events = launch.events()
        if fault := self._application.faults.get(kind):
            has_hit = fault(self.output.name, launch.runs, self._rng)
        else:
            kill: Callable[[Launch], bool] = getattr(self, f"_kill_{kind}")
            has_hit = kill(launch)
        if not has_hit:
            return False
        launch.victims.append(kind)
        self._figures.kills[kind] += 1
        last = events[-1] if events else {"event": "the start"}
        age = time.monotonic() - launch.began
        self._note(f"launch {launch.number}: {kind} at {age:.3f} s, after {last['event']} of window {last.get('window')}")
        return True

    def _kill_driver(self, launch: Launch) -> bool:
        launch.popen.kill()
        return launch.popen.wait() == -signal.SIGKILL

    def _kill_jvm(self, launch: Launch) -> bool:
        return any(process.send(signal.SIGKILL) for process in those_below(launch.popen.pid, is_java)[:1])

    def _kill_python(self, launch: Launch) -> bool:
        found = self._workers(launch)
        return bool(found) and self._rng.choice(found).send(signal.SIGKILL)

    def _kill_server(self, launch: Launch) -> bool:
        """Kills the process that forks the workers; these end with it."""
        return any(process.send(signal.SIGKILL) for process in self._workers(launch)[:1])

    def _kill_executor(self, launch: Launch) -> bool:
        found = those_below(os.getpid(), is_executor)
        return bool(found) and self._rng.choice(found).send(signal.SIGKILL)

    def _kill_pause(self, launch: Launch) -> bool:
        """Stops the driver for a while: another launch must be refused, if this one is in the midst of its work."""
        launch.popen.send_signal(signal.SIGSTOP)
        try:
            events = launch.events() if stands_still(launch.popen.pid, 10) else []
            holds = bool(events) and events[-1]["event"] != "run_ended"  # after that it lets go of the folder
            if holds:
                heads = self._heads()
                other = self._begin(local())
                status = other.ends()
                if status != 3 or "in use by process" not in other.said():
                    self._fail(f"another launch beside one that is stopped ended with {status}: {other.said()}")
                if self._heads() != heads:
                    self._fail("another launch beside one that is stopped has written to the ledger")
        finally:
            launch.popen.send_signal(signal.SIGCONT)
        return holds

    def _kill_zombies(self, launch: Launch) -> bool:
        """Kills all but the Python workers, which are stopped, and go on when a later launch works."""
        found = self._workers(launch)
        stopped = [process for process in found if process.send(signal.SIGSTOP)]
        self._stopped += stopped
        self._asleep += stopped
        for process in those_below(launch.popen.pid, is_java) if stopped else ():
            process.send(signal.SIGKILL)
        launch.popen.kill()
        launch.popen.wait()
        return True

    def _wake_zombies(self) -> None:
        """Lets those go on that a kill has stopped, but their daemon: it would end them."""
        if self._asleep:
            time.sleep(self._rng.uniform(0, self._place.seconds / 2))
        numbers = {process.pid for process in self._asleep}
        for process in self._asleep:
            if process.parent in numbers:
                process.send(signal.SIGCONT)
        self._asleep.clear()

    def _workers(self, launch: Launch) -> list[Process]:
        """Return the worker processes and the process that forks them, the oldest first."""
        if self._place.name == "processes":  # forks of the launch, with its command line
            return those_below(launch.popen.pid)
        place = os.getpid() if self._place.name == "cluster" else launch.popen.pid
        return those_below(place, is_python_worker)

    def _see(self, launch: Launch) -> None:
        """Remember the processes of a launch: none may outlive it for long."""
        self._seen.update(those_below(launch.popen.pid))

    def clean(self) -> None:
        """Ends what the series has started."""
        mine = {process for process in those_below(os.getpid()) if str(self._application.folder).encode() in process.command}
        for process in {*self._seen, *self._stopped, *mine}:
            process.send(signal.SIGKILL)
        for launch in self._launches:
            launch.popen.kill()
            launch.popen.wait()

    def _note(self, text: str) -> None:
        self.story.append(text)

    def _fail(self, *problems: str) -> None:
        raise AssertionError("\n".join([*problems, "", "what was done:", *self.story]))


def kill_at_random(
    application: Application,
    place: Place,
    seed: str,
    kinds: list[str] | int,
    new_series: Callable[[Application, Place, random.Random, int, Figures], Series] = Series,
) -> Figures:
    """Kills until there were so many, on as many outputs as it takes.

    `kinds`: whom, in this order; or how many, drawn from those of the place. Raises AssertionError with the story and the seed.
    """
    rng = random.Random(f"{seed} {application.name} {place.name}")
    figures, began = Figures(), time.monotonic()
    kinds_there = (*place.kinds, *application.faults)
    left = [rng.choice(kinds_there) for _ in range(kinds)] if isinstance(kinds, int) else list(kinds)
    number = 0
    while left:
        now, later = left[:AT_ONCE], left[AT_ONCE:]
        series = new_series(application, place, rng, number, figures)
        try:
            left = series.run(now) + later
        except AssertionError as error:
            raise AssertionError(f"{SEED}={seed}: {error}") from None
        number += 1
    figures.seconds = time.monotonic() - began
    return figures
