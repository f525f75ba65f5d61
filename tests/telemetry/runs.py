"""A run of two lines in this process, for the tests of telemetry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dagflow import launch
from operators import RecordWriter
from tests.conformance.apps import chain


def run(folder: Path, sink: RecordWriter | None = None, **options: Any) -> Any:
    """Copy the lines of `in` to `out`."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.txt").write_text("a\nb\n")
    return launch(chain(folder / "in", sink=sink or RecordWriter(str(folder / "out"))), runner="local", slots=1, **options)
