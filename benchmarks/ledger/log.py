"""The interface of a log of commits, ours or a peer's. Every commit adds one file of ten rows: a window of an application."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

ROWS = 10
FILE = "part-{:09d}.txt"


class Read(NamedTuple):
    """The reads of a resume: objects that are asked for by name, listings of folders, bytes."""

    objects: int
    listings: int
    size: int


class Log(Protocol):
    """A log in a folder of its own; `commits`: how many it has, the windows 0, 1, 2, …"""

    commits: int

    @property
    def name(self) -> str:
        """As the tables call it, with its durability."""
        ...

    def build(self, commits: int) -> None:
        """Makes it, with so many commits."""

    def append(self, count: int) -> list[float]:
        """Commits so often; the seconds of each."""
        ...

    def resume(self) -> object:
        """Opens it anew and tells the newest window committed."""
        ...

    def read(self) -> Read:
        """Return the reads of a resume."""
        ...


def data_file(folder: Path, number: int) -> None:
    """The file that a commit is to name, synced as a sink would leave it: so that the commit does not pay for it."""
    with (folder / FILE.format(number)).open("wb") as file:
        file.write(b"a" * ROWS)
        file.flush()
        os.fsync(file.fileno())
