"""Spark's own ways, Beam, and the tools of the system."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.lines.ours import is_wanted
from dagflow import ReaderRecord


class Spark:
    """One session for everybody, with dagflow's settings, opened when it is first asked for."""

    def __init__(self, master: str = "local[2]") -> None:
        self.master = master
        self._session: Any = None

    @property
    def session(self) -> Any:
        if self._session is None:
            from dagflow.spark.connection.session import open_session

            conf = {"spark.driver.memory": "2g", "spark.ui.enabled": "false"}
            self._session, _ = open_session("benchmarks", self.master, None, conf)
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def filter(self, source: Path, output: Path) -> None:
        """read.text → filter → write.text"""
        from pyspark.sql import functions as f

        lines = self.session.read.option("recursiveFileLookup", True).text(str(source))
        lines.filter(~f.col("value").startswith(".")).write.text(str(output))

    def map_in_arrow(self, source: Path, output: Path) -> None:
        """read.text → mapInArrow → write.text, where the function calls Python for each line"""
        self.session.read.text(str(source)).mapInArrow(kept_lines(), "value string").write.text(str(output))

    def stream_of_nothing(self, batches: int, folder: Path) -> float:
        """Median seconds of a micro-batch: a source in Python with two partitions, and a sink that does nothing."""
        self.session.dataSource.register(tiny_source())
        frame = self.session.readStream.format("tiny").load()
        return self._stream(frame.writeStream.format("noop"), batches, folder)

    def stream_of_files(self, source: Path, batches: int, folder: Path) -> float:
        """Median seconds of a micro-batch: two files of text read, filtered and written."""
        from pyspark.sql import functions as f

        frame = self.session.readStream.option("maxFilesPerTrigger", 2).option("recursiveFileLookup", True).text(str(source))
        writer = frame.filter(~f.col("value").startswith(".")).writeStream.format("text").option("path", str(folder / "out"))
        return self._stream(writer, batches, folder)

    def _stream(self, writer: Any, batches: int, folder: Path) -> float:
        import statistics

        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        progress: dict[int, float] = {}
        try:
            patience = time.monotonic() + 120
            while len(progress) <= batches and time.monotonic() < patience and query.isActive:
                for report in query.recentProgress:
                    if report["numInputRows"]:
                        progress[report["batchId"]] = report["durationMs"]["triggerExecution"] / 1000
                time.sleep(0.05)
            if query.exception() is not None:
                raise query.exception()
        finally:
            query.stop()
        taken = [progress[batch] for batch in sorted(progress)][1:]  # the first one warms up
        return statistics.median(taken)


def kept_lines() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function for mapInArrow: a closure, so that it travels by value."""

    def function(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            kept = [line for line in batch.column(0).to_pylist() if not line.startswith(".")]
            yield pa.RecordBatch.from_arrays([pa.array(kept, pa.string())], ["value"])

    return function


def tiny_source() -> Any:
    """A streaming source in Python: each batch has two partitions of one row."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class TinyReader(DataSourceStreamReader):
        def __init__(self) -> None:
            self.number = 0

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"number": 0}

        def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802  # the form that all versions know
            self.number += 1
            return {"number": self.number}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Any]:
            return [InputPartition(0), InputPartition(1)]

        def read(self, partition: Any) -> Iterator[tuple[str]]:
            yield ("a line",)

    class Tiny(DataSource):
        @classmethod
        def name(cls) -> str:
            return "tiny"

        def schema(self) -> str:
            return "value string"

        def streamReader(self, schema: Any) -> Any:  # noqa: N802
            return TinyReader()

    return Tiny


def grep(source: Path, output: Path) -> None:
    """`grep -v '^\\.'` in the user's own locale."""
    with output.open("wb") as file:
        subprocess.run(["grep", "-v", r"^\.", str(source)], stdout=file, check=True)


def copies(sources: list[Path], output: Path) -> None:
    """One `cp` for each file, all at once."""
    output.mkdir(parents=True)
    running = [subprocess.Popen(["cp", str(source), str(output / source.name)]) for source in sources]
    if any(process.wait() for process in running):
        raise RuntimeError("cp failed")


def bare_loop(source: Path, output: Path) -> None:
    """The loop that one would write without any framework: decodes each line and calls a function with its text."""
    with source.open("rb") as lines, output.open("wb") as file:
        for raw in lines:
            line = raw[:-1].decode()
            if is_wanted_text(line):
                file.write(line.encode() + b"\n")


def loop_with_places(source: Path, output: Path) -> None:
    """The same with records that know their places, and the very function that dagflow is given."""
    position = 0
    with source.open("rb") as lines, output.open("wb") as file:
        for raw in lines:
            record = ReaderRecord(0, position, raw[:-1].decode())
            if is_wanted(record):
                file.write(record.record.encode() + b"\n")
            position += len(raw)


def text_loop(source: Path, output: Path) -> None:
    """The fastest loop: text in and text out, line ends left where they are."""
    with source.open(encoding="utf-8", newline="\n") as lines, output.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            if is_wanted_text(line):
                file.write(line)


def is_wanted_text(line: str) -> bool:
    """The same question, asked of a bare line."""
    return not line.startswith(".")


BEAM = """
import sys, time, logging
logging.disable(logging.WARNING)
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
if len(sys.argv) == 1:
    print(beam.__version__); sys.exit()
source, output = sys.argv[1:3]
began = time.perf_counter()
with beam.Pipeline(options=PipelineOptions(sys.argv[3:])) as pipeline:
    lines = pipeline | beam.io.ReadFromText(source)
    lines | beam.Filter(lambda line: not line.startswith(".")) | beam.io.WriteToText(output)
print(time.perf_counter() - began)
"""


def beam_python(given: str | None) -> str | None:
    """A Python that has apache-beam: the given one, else this one; None where it cannot be imported."""
    python = given or sys.executable
    answer = subprocess.run([python, "-c", BEAM], capture_output=True, text=True, check=False, env=_clean_environment())
    return python if answer.returncode == 0 else None


def beam(python: str, source: Path, output: Path, *options: str, script: str = BEAM) -> float:
    """Read | filter | write (or another script) by Beam's Python runner; its seconds without the start of the process."""
    output.mkdir(parents=True)
    command = [python, "-c", script, str(source), str(output / "part"), "--runner=FnApiRunner", *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=_clean_environment())
    return float(answer.stdout.split()[-1])  # what workers say comes before


def beam2(python: str, source: Path, output: Path, *, script: str = BEAM) -> float:
    """The same with two worker processes."""
    return beam(python, source, output, "--direct_num_workers=2", "--direct_running_mode=multi_processing", script=script)


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
