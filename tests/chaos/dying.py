"""Launches that die at a step: just before or after one of the calls of a function.

A `Step` names the function, `die_at` replaces it, and `in_child` runs a launch in a fork: that is a hundred times faster than
starting Python, and nothing that the launch has changed outlives it.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import attrs


@attrs.frozen
class Step:
    """A step of a launch: the calls of a function.

    Attributes:
        owners: the classes or modules that have the function; calls are counted over all of them.
        name: of the function.
        is_before: a launch dies before the call, not after it.
    """

    owners: tuple[Any, ...]
    name: str
    is_before: bool


def before(name: str, *owners: Any) -> Step:
    """Return the step before calls of a function."""
    return Step(owners, name, True)


def after(name: str, *owners: Any) -> Step:
    """Return the step after calls of a function."""
    return Step(owners, name, False)


def kill() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(step: Step, number: int, end: Callable[[], None] = kill, patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Call `end` at the call of that number, from 0, of a step's function.

    `patch`: puts the function that counts in its place; `monkeypatch.setattr` where this process lives on.
    """
    calls = itertools.count()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            mine = next(calls)
            result = None if step.is_before and mine == number else function(*arguments, **options)
            if mine == number:
                end()
            return result

        return call

    for owner in step.owners:
        patch(owner, step.name, counted(getattr(owner, step.name)))


def in_child(work: Callable[[], object]) -> int:
    """Run in a fork of this process. Return its exit status: 0, 1 after an error, -9 if it was killed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  # the exit status tells the test that there was one
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)
