"""The place of a case: its folder, its input of small files, and the servers."""

from __future__ import annotations

import csv
import uuid
from pathlib import Path
from typing import Any

import attrs

from tests.faults.servers import Servers

HEADER = "id,key,val"
ROWS = 6
OVERLAP = 2  # rows that a file has in common with the one before, by their id

Row = tuple[int, str, int]
Files = list[list[Row]]
"""The rows of each file of the input."""


@attrs.frozen
class Place:
    """The folder of one case. Faults happen below `data` only: the input is not ours. `name`: its database or topic."""

    folder: Path
    servers: Servers = attrs.field(factory=Servers)
    name: str = attrs.field(factory=lambda: f"faults{uuid.uuid4().hex[:12]}")

    @property
    def input(self) -> Path:
        """The files that have arrived."""
        return self.folder / "in"

    @property
    def data(self) -> Path:
        """Everything that launches write."""
        return self.folder / "data"

    def prepare(self, files: int) -> Place:
        """Make the folders, and let files arrive."""
        self.input.mkdir(parents=True)
        self.data.mkdir()
        for _ in range(files):
            self.deliver()
        return self

    def deliver(self) -> None:
        """Let one more file arrive."""
        number = len(list(self.input.iterdir()))
        start = number * (ROWS - OVERLAP)
        rows = [f"{each},k{each % 3},{100 * number + each}" for each in range(start, start + ROWS)]
        part = self.folder / "part"
        part.write_text("".join(f"{line}\n" for line in (HEADER, *rows)))
        part.rename(self.input / f"{number:03d}.csv")

    def files(self) -> Files:
        """Return the rows that have arrived."""
        found = []
        for path in sorted(self.input.iterdir()):
            with path.open(newline="") as file:
                found.append([row_of(each) for each in csv.DictReader(file)])
        return found


def row_of(columns: Any) -> Row:
    """Return a row that a reader has given as a mapping."""
    return int(columns["id"]), str(columns["key"]), int(columns["val"])


def line_of(row: Row) -> str:
    """Return the row's line in a file."""
    return ",".join(map(str, row))
