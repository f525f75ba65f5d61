"""The time of a launch, by what it waited for."""

from __future__ import annotations

from dagflow.runtime.events import Event, RunEnded, RunStarted, TaskEnded, WindowDecided, WindowDone


class Timings:
    """A subscriber of a run's events. `seconds` has the time of each phase; together they are the time since `began`.

    `session`: until the runner can take work. `first_task`: until the first task begins, so planning the first window, and on
    Spark loading classes and starting workers. `windows`: from then on, without `roll_forward`: what followed from decisions.

    >>> timings = Timings(began=10.0)
    >>> for event in (RunStarted(at=14.0, application="a", runner="spark", run_folder="", launch="", slots=2, first_window=0),
    ...               TaskEnded(at=17.5, window=0, task="t", attempt="0", started=16.0, ended=17.0, records=1),
    ...               WindowDecided(at=18.0, window=0, files=1, bytes=1, records=1), WindowDone(at=18.25, window=0),
    ...               RunEnded(at=18.5, status="done", windows=1, seconds=8.5)):
    ...     timings(event)
    >>> timings.seconds
    {'session': 4.0, 'first_task': 2.0, 'windows': 2.25, 'roll_forward': 0.25}
    """

    def __init__(self, began: float) -> None:
        self.seconds: dict[str, float] = {}
        self._began = began
        self._started: float | None = None
        self._first_task: float | None = None
        self._decided: dict[int, float] = {}
        self._roll_forward = 0.0

    def __call__(self, event: Event) -> None:
        """Note when something happened."""
        if isinstance(event, RunStarted):
            self._started = event.at
        elif isinstance(event, TaskEnded):
            self._first_task = min(event.started, self._first_task or event.started)
        elif isinstance(event, WindowDecided):
            self._decided[event.window] = event.at
        elif isinstance(event, WindowDone):
            self._roll_forward += max(0.0, event.at - self._decided.pop(event.window, event.at))
        elif isinstance(event, RunEnded):
            self._end(event.at)

    def _end(self, ended: float) -> None:
        started = ended if self._started is None else self._started
        # by the clock of the task's machine, which may be another one
        first = min(max(started, self._first_task or ended), ended)
        windows = max(0.0, ended - first - self._roll_forward)
        phases = {"session": started - self._began, "first_task": first - started, "windows": windows}
        self.seconds.update({name: round(value, 3) for name, value in {**phases, "roll_forward": self._roll_forward}.items()})
