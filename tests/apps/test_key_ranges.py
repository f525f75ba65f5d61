"""apps/key_ranges reads a table by ranges of keys, on both runners; on Spark, ranges are split while they are read."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from apps.key_ranges.app import KeyBlock, KeyRangeReader, connect
from dagflow.errors import DagflowError
from dagflow.ranges import ByteKeyRangeTracker
from dagflow.testing import run_dag
from dagflow.testing.readers import reader_of
from dagflow.testing.splittable import assert_reader_is_splittable
from tests.conformance.apps import lines_in
from tests.runtime.rebalancing.test_key_ranges import ROWS, database, expected, run

APP = str(Path(__file__).parents[2] / "apps" / "key_ranges")

__all__ = ["database"]


def test_rows_come_once_each(runner: str, database: Path, tmp_path: Path) -> None:
    settings = {"input": str(database), "output": str(tmp_path / "out"), "table": "people", "key": "name"}
    report = run_dag(APP, settings, runner=runner)
    assert lines_in(tmp_path / "out") == expected()
    assert report.operators["reader"].counters["blocks"] == 8
    assert run_dag(APP, settings, runner="local").windows == 0


def test_a_table_without_rows_is_read(database: Path, tmp_path: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM people")
    connection.close()
    settings = {"input": str(database), "output": str(tmp_path / "out"), "table": "people", "key": "name"}
    assert run_dag(APP, settings, runner="local").windows == 0


def table_of(folder: Path, key: str, *keys: object) -> dict[str, str]:
    with sqlite3.connect(folder / "db") as connection:
        connection.execute(f"CREATE TABLE t (k {key})")
        connection.executemany("INSERT INTO t VALUES (?)", [(each,) for each in keys])
    connection.close()
    return {"input": str(folder / "db"), "output": str(folder / "out"), "table": "t", "key": "k"}


@pytest.mark.parametrize("key", [b"c", 3, None])
def test_rows_whose_keys_are_not_text_are_not_lost(tmp_path: Path, key: object) -> None:
    with pytest.raises(DagflowError, match="1 rows of t have a k that is not text"):
        run_dag(APP, table_of(tmp_path, "BLOB", "a", key, "z"), runner="local")


def test_columns_with_an_order_of_their_own_are_read(tmp_path: Path) -> None:
    keys = ["Y", "Z", "a"]
    run_dag(APP, table_of(tmp_path, "TEXT COLLATE NOCASE", *keys), runner="local")
    assert sorted(json.loads(each)["k"] for each in lines_in(tmp_path / "out")) == sorted(keys)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_keys_are_taken_over_on_spark(database: Path, tmp_path: Path) -> None:
    report, stolen = run(database, tmp_path, "spark", other_read=str(tmp_path / "other has read"))
    assert stolen
    assert report.rebalanced == len(stolen)


def test_its_reader_is_splittable(database: Path) -> None:
    connection = connect(str(database))
    keys = [key for (key,) in connection.execute("SELECT CAST(name AS BLOB) FROM people WHERE age < 40 ORDER BY name")]
    connection.close()

    make_reader = reader_of(
        KeyRangeReader(), block_of=lambda path, start, stop: KeyBlock(0, path, "people", "name", start, stop, 1)
    )
    assert ROWS > len(keys) == 40
    assert_reader_is_splittable(make_reader, str(database), bounds=(keys[0], keys[-1]), make_tracker=ByteKeyRangeTracker)
