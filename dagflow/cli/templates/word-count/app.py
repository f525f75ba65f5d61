"""Count the words of text files, over all windows and launches."""

import re

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from operators import Count, CsvWriter, FileInput


@attrs.define
class Settings:
    """The settings, which `dagflow launch . --help` lists."""

    input: list[str]  # files or folders
    output: str  # a folder of its own
    min_length: int = 1  # shorter words are not counted


@attrs.define
class Words(Operator):
    """Emit the words of a line in lower case."""

    min_length: int = 1

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        """Process one line."""
        for word in re.findall(r"\w+", line.record.lower()):
            if len(word) >= self.min_length:
                self.output.emit(word)


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect lines → words → count → writer."""
    lines = dag.add_module("lines", FileInput(conf.input))
    words = dag.add_operator("words", Words(min_length=conf.min_length))
    count = dag.add_operator("count", Count[str, str](by="value"))
    writer = dag.add_operator("writer", CsvWriter(conf.output))  # the newest totals only
    dag.add_stream("text", lines.messages, words.input)
    dag.add_stream("found words", words.output, count.input)
    dag.add_stream("counts", count.output, writer.input)
