"""Count the requests of access logs of Apache and nginx, by status and by hour, over all windows and launches."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow.compute

from dagflow import DAG
from dagflow.config import Bytes, MiB
from operators import Count, CsvWriter, FileSplitterInput, JsonLinesWriter, KeyValue, Map, RegexFormat, ScanReader

pc: Any = pyarrow.compute

HOUR = pc.strftime(pc.field("time"), format="%Y-%m-%dT%H:00:00Z")


@attrs.frozen
class StatusCount:
    """The number of requests with a status so far; None where the log does not have the status."""

    status: int | None
    requests: int


@attrs.frozen
class HourCount:
    """The number of requests in an hour (UTC) so far."""

    hour: str | None
    requests: int


def status_count(counted: KeyValue[int, int]) -> StatusCount:
    """Return a count with the names of its columns."""
    return StatusCount(counted.key, counted.value)


def hour_count(counted: KeyValue[str, int]) -> HourCount:
    """Do the same for an hour."""
    return HourCount(counted.key, counted.value)


@attrs.define
class Settings:
    """Count the requests of access logs by status and by hour."""

    input: list[str]  # files or folders
    output: str  # a folder, which gets `statuses`, `hours` and `rejects`
    pattern: str = "combined"  # or "common"
    block_size: Bytes = 64 * MiB


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect lines → rows → counts by status → CSV, rows → hours → counts → CSV, and bad lines → JSON lines."""
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    scan = ScanReader(RegexFormat(conf.pattern), columns=["time", "status"], on_bad_row="route")
    requests = dag.add_operator("requests", scan)
    by_status = dag.add_operator("by_status", Count[Any, int](by="status"))
    statuses = dag.add_operator("statuses", Map(status_count))
    statuses_writer = dag.add_operator("statuses_writer", CsvWriter[StatusCount](f"{conf.output}/statuses"))
    to_hour = dag.add_operator("to_hour", Map[Any, str](HOUR))
    by_hour = dag.add_operator("by_hour", Count[str, str](by="value"))
    hours = dag.add_operator("hours", Map(hour_count))
    hours_writer = dag.add_operator("hours_writer", CsvWriter[HourCount](f"{conf.output}/hours"))
    rejects = dag.add_operator("rejects", JsonLinesWriter(f"{conf.output}/rejects"))
    dag.add_stream("blocks", splitter.blocks_metadata_output, requests.blocks_metadata_input)
    dag.add_stream("rows", requests.batches, by_status.input, to_hour.input)
    dag.add_stream("counted statuses", by_status.output, statuses.input)
    dag.add_stream("statuses", statuses.output, statuses_writer.input)
    dag.add_stream("times", to_hour.output, by_hour.input)
    dag.add_stream("counted hours", by_hour.output, hours.input)
    dag.add_stream("hours", hours.output, hours_writer.input)
    dag.add_stream("bad lines", requests.errors, rejects.input)
