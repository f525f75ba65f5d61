"""Crashes and failing disks within this process: what touches a file below a folder may be its last act.

An audit hook sees every touch. Death is an exception that no code catches, and the dead touch nothing more: all that cleaning up
would do is refused too. Real kills are in crash.py and tests/chaos; here a crash costs no process.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

TOUCHES = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Died(KeyboardInterrupt):
    """The end of a process, as far as a test needs it: no operator may catch it."""


Happens = Callable[[str, tuple[str, ...]], BaseException | None]
_watching: list[Happens] = []
_is_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in TOUCHES:
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
            event = "read"
        named = arguments[:2] if event in ("os.rename", "os.link") else arguments[:1]
        paths = tuple(os.fspath(each) for each in named if isinstance(each, str | os.PathLike))
        error = _watching[-1](event, paths)
        if error is not None and paths:
            raise error


@contextlib.contextmanager
def watched(happens: Happens) -> Iterator[None]:
    """While this lasts, `happens(event, paths)` is asked at every touch of a file; what it returns is raised."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hook)
        _is_hooked = True
    _watching.append(happens)
    try:
        yield
    finally:
        _watching.pop()


class Deadly:
    """Dies at the touch of that number (from 0) among those that `wanted` wants. Once dead, dead.

    Args:
        folder: touches elsewhere do not count, and are not refused to the dead.
    """

    def __init__(self, folder: str, number: int, wanted: Callable[[str, tuple[str, ...]], bool] = lambda *_: True) -> None:
        self.folder, self.left, self.wanted = folder, number, wanted
        self.is_dead = False

    def __call__(self, event: str, paths: tuple[str, ...]) -> BaseException | None:
        if not any(path.startswith(self.folder) for path in paths):
            return None
        if not self.is_dead and self.wanted(event, paths):
            self.left -= 1
            self.is_dead = self.left < 0
        return Died() if self.is_dead else None


def dies(work: Callable[[], Any], deadly: Deadly) -> bool:
    """Does work until its end or death; whether it died."""
    with watched(deadly), contextlib.suppress(Died):
        work()
    return deadly.is_dead


class Failing:
    """Refuses with an error of the operating system, from a touch of that number (from 0) on, what writes below a folder."""

    def __init__(self, folder: str, number: int, code: int, for_good: bool = True) -> None:
        self.folder, self.left, self.code, self.for_good = folder, number, code, for_good
        self.has_failed = False

    def __call__(self, event: str, paths: tuple[str, ...]) -> BaseException | None:
        if event in ("read", "os.remove", "os.rmdir") or not any(path.startswith(self.folder) for path in paths):
            return None
        self.left -= 1
        if self.left >= 0 or (self.left < -1 and not self.for_good):
            return None
        self.has_failed = True
        return OSError(self.code, os.strerror(self.code), paths[-1])
