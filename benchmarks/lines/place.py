"""The places and sizes of the benchmarks' inputs and outputs, and what all cases share."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs

from benchmarks.lines import ours
from benchmarks.lines.inputs import make_lines, make_small, short_line
from benchmarks.lines.peers import Spark

MEMORY = Path("/dev/shm")


@attrs.define
class Place:
    """Folders on disk and in memory that go with it, and the Spark session. A context manager.

    Attributes:
        size: bytes of the large inputs.
        quick: everything as small as makes sense, to see that it works.
        beam: a Python that has apache-beam, or None for this one.
    """

    size: int
    quick: bool = False
    beam: str | None = None
    disk_folder: str | None = None
    disk: Path = attrs.field(init=False)
    memory: Path = attrs.field(init=False)
    spark: Spark = attrs.field(init=False, factory=Spark)

    def __enter__(self) -> Place:
        self.disk = Path(tempfile.mkdtemp(prefix="dagflow-bench-", dir=self.disk_folder))
        self.memory = Path(tempfile.mkdtemp(prefix="dagflow-bench-", dir=MEMORY if MEMORY.is_dir() else None))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.spark.close()
        for folder in (self.disk, self.memory):
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, application: ours.Application, source: Path, target: Path, **options: Any) -> Any:
        """Runs an application to its end; on Spark, in the session that everybody uses."""
        if options.get("runner", "spark") == "spark":
            _ = self.spark.session
        return ours.run(application, source, target, **options)

    def lines(self, share: float = 1.0) -> Path:
        """A file of lines of about 100 bytes; `share` of the size."""
        return make_lines(self.disk / f"lines-{share:g}.txt", int(self.size * share))

    def short_lines(self, share: float = 1.0) -> Path:
        """A file of lines of about 20 bytes."""
        return make_lines(self.disk / f"short-{share:g}.txt", int(self.size * share), short_line)

    def small_files(self) -> Path:
        """A folder of 8,000 files of about 12 KB; fewer where everything is small."""
        return make_small(self.disk / "small", 100 if self.quick else 8_000)

    def target(self, where: str) -> Path:
        """An output in `memory` or on `disk`."""
        return (self.memory if where == "memory" else self.disk) / "out"

    def clean(self, where: str) -> None:
        """Removes the output; on disk, waits until nothing is left to be written, so that no run pays for the one before it."""
        ours.remove(self.target(where))
        if where == "disk":
            os.sync()
