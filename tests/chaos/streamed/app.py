"""Reads a log, drops messages that begin with a dot, writes the others to files, and publishes them."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import pyarrow.compute

from dagflow import DAG
from operators import Filter, KafkaInput, KafkaWriter, NatsInput, NatsWriter, RecordWriter

pc: Any = pyarrow.compute


@attrs.define
class Settings:
    """Filter the messages of a log."""

    log: Literal["nats", "kafka"]
    servers: str
    source: str
    output: str
    target: str  # a stream or topic
    target_servers: str


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect source → keep → files, and → log."""
    source: Any = NatsInput(conf.servers, topics=conf.source) if conf.log == "nats" else KafkaInput(conf.servers, conf.source)
    messages = dag.add_module("source", source).messages
    keep = dag.add_operator("keep", Filter(~pc.starts_with(pc.field("record"), ".")))
    files = dag.add_operator("files", RecordWriter(conf.output))
    writer: Any = KafkaWriter(conf.target_servers, conf.target, settle=0.2)
    if conf.log == "nats":
        writer = NatsWriter(conf.target_servers, conf.target, conf.target, settle=0.2)
    published = dag.add_operator("published", writer)
    dag.add_stream("messages", messages, keep.input)
    dag.add_stream("kept", keep.output, files.input, published.input)
