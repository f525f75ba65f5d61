"""The same word counts by Spark SQL, by RDDs, and by Beam."""

from __future__ import annotations

from operator import add
from pathlib import Path
from typing import Any

SLOTS = 2


def sql(session: Any, source: Path, output: Path) -> None:
    """split → explode → groupBy → count, with as many partitions as there are slots, and adaptive execution as Spark has it."""
    from pyspark.sql import functions as f

    own = session.newSession()  # its settings are its own
    own.conf.set("spark.sql.adaptive.enabled", "true")
    own.conf.set("spark.sql.shuffle.partitions", str(SLOTS))
    words = own.read.text(str(source)).select(f.explode(f.split("value", " ")).alias("word"))
    words.groupBy("word").count().write.csv(str(output))


def rdd(session: Any, source: Path, output: Path) -> None:
    """flatMap → map → reduceByKey: each record a Python object."""
    words = session.sparkContext.textFile(str(source)).flatMap(lambda line: line.split(" "))
    counts = words.map(lambda word: (word, 1)).reduceByKey(add, SLOTS)
    counts.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(str(output))


BEAM = """
import sys, time, logging
logging.disable(logging.WARNING)
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
source, output = sys.argv[1:3]
began = time.perf_counter()
with beam.Pipeline(options=PipelineOptions(sys.argv[3:])) as pipeline:
    words = pipeline | beam.io.ReadFromText(source) | beam.FlatMap(lambda line: line.split(" "))
    counts = words | beam.combiners.Count.PerElement()
    counts | beam.MapTuple(lambda word, count: f"{word},{count}") | beam.io.WriteToText(output)
print(time.perf_counter() - began)
"""
