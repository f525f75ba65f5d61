"""Count each word in text files, over all windows and launches. The output is one table of all words."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow.compute

from dagflow import DAG
from dagflow.config import Bytes, MiB
from operators import Count, CsvWriter, FileInput, Filter, FlatMap, KeyValue, Map

pc: Any = pyarrow.compute

LINE = pc.field("record")
ONLY_WORDS = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(LINE), r"[^\pL\pN]+", " "))


@attrs.frozen
class WordTotal:
    """The number of times that a word has occurred so far."""

    word: str
    total: int


def word_total(counted: KeyValue[str, int]) -> WordTotal:
    """Return a count with the names of its columns."""
    return WordTotal(counted.key, counted.value)


@attrs.define
class Settings:
    """Count the words of text files."""

    input: list[str]  # files or folders
    output: str
    block_size: Bytes = 64 * MiB


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect lines → words → counts by word → CSV."""
    lines = dag.add_module("lines", FileInput(conf.input, block_size=conf.block_size))
    split = dag.add_operator("split", FlatMap[Any, str](pc.utf8_split_whitespace(ONLY_WORDS)))
    words = dag.add_operator("words", Filter[str](pc.field("value") != ""))  # a line without words is split into ""
    count = dag.add_operator("count", Count[str, str](by="value"))
    totals = dag.add_operator("totals", Map(word_total))
    writer = dag.add_operator("writer", CsvWriter[WordTotal](conf.output))
    dag.add_stream("lines", lines.messages, split.input)
    dag.add_stream("split words", split.output, words.input)
    dag.add_stream("words", words.output, count.input)
    dag.add_stream("counts", count.output, totals.input)
    dag.add_stream("totals", totals.output, writer.input)
