"""A short session that loads the classes a launch needs: `python -m dagflow.spark.training FOLDER`.

Java writes the names of all classes that it loads into `FOLDER/classes`. Runs what windows run, without exchanges and with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dagflow.spark.jvm.class_archive import CLASS_LIST, LOADED_CLASS_PATH
from dagflow.spark.jvm.options import QUICK

if TYPE_CHECKING:
    import pyarrow as pa

_ROW = "dst int, tag int, src int, seq bigint, blob binary"


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches as they are."""
    yield from batches


def train(folder: Path) -> None:
    """Run the session."""
    from dagflow.spark.connection.answers import queried
    from dagflow.spark.connection.session import connect
    from dagflow.spark.dataframes.levels import PINNED
    from dagflow.spark.task import warm_up

    options = " ".join([*QUICK, f'"-XX:DumpLoadedClassList={folder / CLASS_LIST}"'])
    link, _ = connect("dagflow warm", master="local[2,4]", conf={"spark.driver.extraJavaOptions": options})
    spark = link.spark
    with link.labelled("warm", "loading classes"):
        link.run(warm_up, 2)
        queried(spark, warm_up, 2)
        for key, value in PINNED.items():
            spark.conf.set(key, value)
        made = spark.range(0, 2, 1, 2).selectExpr("cast(id as int) dst", "0 tag", "0 src", "id seq", "cast('' as binary) blob")
        for _ in range(2):
            made = made.mapInArrow(rows, _ROW).repartitionById(2, "dst").sortWithinPartitions("src", "seq")
        made.mapInArrow(rows, _ROW).collect()
    link.cancel("warm")
    loaded = spark._jvm.System.getProperty("java.class.path")
    (folder / LOADED_CLASS_PATH).write_text(loaded, encoding="utf-8")
    link.stop()


if __name__ == "__main__":
    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    train(Path(sys.argv[1]))
