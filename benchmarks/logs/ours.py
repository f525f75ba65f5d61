"""Our side: messages that do not begin with a dot, to files."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.compute

from benchmarks.logs.messages import Topic, is_wanted
from dagflow import DAG, launch
from operators import FileInput, Filter, KafkaInput, KafkaWriter, RecordWriter

pc: Any = pyarrow.compute

WINDOW = "500ms"
PATIENCE = 60.0


def populate(topic: Topic, output: Path, by_function: bool = False) -> Any:
    """The application: topic → filter → files."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        messages = dag.add_module("messages", KafkaInput(topic.servers, topic.name))
        predicate: Any = (lambda message: is_wanted(message.record)) if by_function else ~pc.starts_with(pc.field("record"), ".")
        keep = dag.add_operator("keep", Filter(predicate))
        writer = dag.add_operator("writer", RecordWriter(str(output), terminator="\n"))
        dag.add_stream("read", messages.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)

    return populate_dag


def filtered(topic: Topic, output: Path, runner: str, slots: int, by_function: bool = False) -> None:
    """A whole launch."""
    application = populate(topic, output, by_function)
    launch(application, runner=runner, slots=slots, durability="process", progress="none").wait()


def published(source: Path, topic: Topic, runner: str) -> None:
    """A whole launch: the lines of a file → topic."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        lines = dag.add_module("lines", FileInput([str(source)]))
        dag.add_stream("read", lines.messages, dag.add_operator("published", KafkaWriter(topic.servers, topic.name)).input)

    with tempfile.TemporaryDirectory() as folder:
        options: Any = {"run_folder": folder, "durability": "process", "progress": "none"}
        launch(populate_dag, runner=runner, slots=1, **options).wait()


def latency(topic: Topic, output: Path, runner: str, count: int, pause: float) -> float:
    """The median seconds from the acknowledgement of a message to the file that has it, of a run with windows of 500 ms."""
    running = launch(populate(topic, output), runner=runner, once=False, window=WINDOW, durability="process", progress="none")
    try:
        seconds = []
        for number in range(-2, count):  # two warm up
            text = b"message %d" % time.time_ns()
            topic.append(text)
            began = time.perf_counter()
            while text not in shown(output):
                if time.perf_counter() - began > PATIENCE:
                    raise TimeoutError("a message does not come out")
                time.sleep(0.005)
            if number >= 0:
                seconds.append(time.perf_counter() - began)
            time.sleep(pause * (1 + number % 5 / 4))  # not in step with the windows
    finally:
        running.stop()
        running.wait(PATIENCE)
    return statistics.median(seconds)


def shown(output: Path) -> bytes:
    """The newest file that readers of the output see."""
    files = [path for path in output.glob("part-*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_mtime_ns).read_bytes() if files else b""
