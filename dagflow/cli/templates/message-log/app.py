"""Write the clicks of a Kafka topic as Parquet.

While there is no broker, the messages come from files.
"""

import json

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from operators import FileInput, KafkaInput, ParquetWriter


@attrs.define
class Settings:
    """The settings, which `dagflow launch . --help` lists."""

    output: str  # a folder of its own
    servers: str = ""  # host:9092, or several with commas; "": read `input` instead
    topic: str = "clicks"
    input: list[str] = attrs.Factory(list)  # files or folders with a message a line, to try the application


@attrs.frozen
class Click:
    """A row of the output."""

    page: str
    user: str
    position: int  # the offset of the message in its partition, or the byte of the line in its file


@attrs.define
class Clicks(Operator):
    """Parse messages in JSON, and leave out the visits of robots."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[Click]()

    @input.process
    def each(self, message: ReaderRecord[str]) -> None:
        """Process one message."""
        click = json.loads(message.record)
        if not click.get("robot"):
            self.output.emit(Click(click["page"], click["user"], message.position))


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect messages → clicks → writer."""
    if conf.servers:
        messages = dag.add_module("messages", KafkaInput[str](conf.servers, conf.topic, convert_to_record=bytes.decode)).messages
    else:
        messages = dag.add_module("messages", FileInput(conf.input)).messages
    clicks = dag.add_operator("clicks", Clicks(on_error="skip"))  # bad messages are counted, and the report shows some
    writer = dag.add_operator("writer", ParquetWriter(conf.output))
    dag.add_stream("messages", messages, clicks.input)
    dag.add_stream("clicks", clicks.output, writer.input)
