"""Count the clicks of each page and minute, from a Kafka topic to Parquet files and a table of PostgreSQL."""

from __future__ import annotations

import datetime
import json
from typing import Any

import attrs

from dagflow import DAG
from dagflow.config import Seconds, Secret
from operators import (
    JsonLinesWriter,
    KafkaBlockReader,
    KafkaSplitterInput,
    LogMessage,
    Map,
    ParquetWriter,
    PostgresWriter,
    Tumbling,
    WindowValue,
)


@attrs.frozen
class Click:
    """A click, at the time of its message, with the place of the message in the topic."""

    page: str
    time: datetime.datetime
    partition: int
    offset: int


@attrs.frozen
class PageMinute:
    """The clicks of a page in the minute that begins then (UTC).

    `firing`: how often they were counted before. The row with the highest one holds.
    """

    page: str
    minute: datetime.datetime
    clicks: int
    firing: int


def click_of(message: LogMessage) -> Click:
    """Parse a message. Raises ValueError, TypeError for one that is not a click; its place is in `rejects` then."""
    page = json.loads(message.value or b"")["page"]
    if not isinstance(page, str) or message.timestamp is None:
        raise TypeError("a click has a page and a time")
    return Click(page, message.timestamp, message.partition, message.offset)


def page_minute(counted: WindowValue[str, int]) -> PageMinute:
    """Return a count with the names of its columns."""
    return PageMinute(counted.key, counted.start, counted.count, counted.firing)


@attrs.define
class Settings:
    """Count the clicks of a Kafka topic by page and minute."""

    servers: str  # host:9092, or several with commas
    output: str  # a folder, which gets `minutes`, `late` and `rejects`
    topic: str = "clicks"
    database: Secret = attrs.field(default="", repr=False)  # postgresql://…, for the table `page_minutes`; "": none
    out_of_orderness: Seconds = 10.0  # how much later than others of its partition a click may come
    allowed_lateness: Seconds = 300.0  # for so long after its end a minute is counted again when a late click comes


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Read the topic, and count."""
    splitter = KafkaSplitterInput(conf.servers, conf.topic, event_time="timestamp", out_of_orderness=conf.out_of_orderness)
    count_clicks(dag, conf, splitter, KafkaBlockReader[bytes](bootstrap_servers=conf.servers))


def count_clicks(dag: DAG, conf: Settings, splitter: Any, reader: Any) -> None:
    """Connect messages → clicks → counts by page and minute → Parquet, PostgreSQL; late clicks, bad messages → JSON lines."""
    blocks = dag.add_operator("splitter", splitter)
    messages = dag.add_operator("reader", reader)
    clicks = dag.add_operator("clicks", Map(click_of, on_error="route"))
    # The watermark is that of the slowest partition: clicks are not late because another partition was read first.
    # With scope="window", the files are a log of all firings of a minute; the table has the last one.
    minutes = Tumbling[Click, str, int](
        60, time="time", by="page", out_of_orderness=None, allowed_lateness=conf.allowed_lateness, scope="window"
    )
    by_minute = dag.add_operator("by_minute", minutes)
    rows = dag.add_operator("rows", Map(page_minute))
    files = dag.add_operator("files", ParquetWriter(f"{conf.output}/minutes"))
    late = dag.add_operator("late", JsonLinesWriter(f"{conf.output}/late"))
    rejects = dag.add_operator("rejects", JsonLinesWriter(f"{conf.output}/rejects"))
    dag.add_stream("blocks", blocks.blocks_metadata_output, messages.blocks_metadata_input)
    dag.add_stream("messages", messages.batches, clicks.input)
    dag.add_stream("clicks", clicks.output, by_minute.input)
    dag.add_stream("counts", by_minute.output, rows.input)
    dag.add_stream("late clicks", by_minute.late, late.input)
    dag.add_stream("bad messages", clicks.errors, rejects.input)
    sinks = [files.input]
    if conf.database:
        table = PostgresWriter(conf.database, "page_minutes", mode="upsert", keys=["page", "minute"])
        sinks.append(dag.add_operator("table", table).input)
    dag.add_stream("page minutes", rows.output, *sinks)
