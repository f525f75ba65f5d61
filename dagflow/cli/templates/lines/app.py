"""Keep the slow requests of access logs."""

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from operators import FileInput, RecordWriter


@attrs.define
class Settings:
    """The settings, which `dagflow launch . --help` lists."""

    input: list[str]  # files or folders
    output: str  # a folder of its own
    limit: int = 100  # milliseconds


@attrs.define
class SlowRequests(Operator):
    """Emit a line of text for each request that took at least `limit` milliseconds."""

    limit: int

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        """Process one line: `GET /search 480`."""
        _method, path, millis = line.record.split()
        if int(millis) >= self.limit:
            self.output.emit(f"{path} took {millis} ms")


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect lines → slow → writer."""
    lines = dag.add_module("lines", FileInput(conf.input))
    slow = dag.add_operator("slow", SlowRequests(limit=conf.limit))
    writer = dag.add_operator("writer", RecordWriter(conf.output))
    dag.add_stream("text", lines.messages, slow.input)
    dag.add_stream("slow requests", slow.output, writer.input)
