"""Sums by key and windows of event time, of lines that say key, time in microseconds and number; what is late goes beside."""

from __future__ import annotations

import attrs

from dagflow import DAG, ReaderRecord
from dagflow.config import Bytes
from operators import FileInput, JsonLinesWriter, Map, Tumbling, WindowValue


@attrs.frozen
class Hit:
    """The fields of a line."""

    key: str
    at: int
    n: int


@attrs.define
class Settings:
    """Sums by windows of ten seconds."""

    input: list[str]
    output: str  # a folder, which gets `fired` and `late`
    lateness: int
    disorder: int
    block_size: Bytes


def to_hit(line: bytes) -> Hit:
    key, at, n = line.decode().split()
    return Hit(key, int(at), int(n))


def hit_of(read: ReaderRecord[Hit]) -> Hit:
    return read.record


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Lines → hits → windows → fired, and → late. A window of the run has two blocks."""
    lines = dag.add_module("lines", FileInput(conf.input, block_size=conf.block_size, convert_to_record=to_hit))
    hits = dag.add_operator("hits", Map(hit_of))
    sums = Tumbling[Hit, str, int](
        10,
        time="at",
        by="key",
        aggregate="sum",
        of="n",
        allowed_lateness=conf.lateness,
        out_of_orderness=conf.disorder,
        scope="window",
    )
    windows = dag.add_operator("windows", sums)
    fired = dag.add_operator("fired", JsonLinesWriter[WindowValue[str, int]](f"{conf.output}/fired"))
    too_late = dag.add_operator("too_late", JsonLinesWriter[Hit](f"{conf.output}/late"))
    dag.add_stream("lines", lines.messages, hits.input)
    dag.add_stream("hits", hits.output, windows.input)
    dag.add_stream("fired", windows.output, fired.input)
    dag.add_stream("late", windows.late, too_late.input)
