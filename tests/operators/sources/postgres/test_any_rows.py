"""Any rows, added in any portions, cut anywhere: each row is read once, as it was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, Window, run_operator
from operators import PostgresRanges, PostgresReader
from tests.operators.databases import Database
from tests.operators.sinks import tables
from tests.tiers import examples

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.full

COLUMNS = {
    "text": "text",
    "n": "bigint",
    "real": "float8",
    "flag": "bool",
    "day": "date",
    "at": "timestamp",
    "id": "bigint NOT NULL",
    "row": "bigint",
}
PORTIONS = st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=12), tables.ROWS), max_size=4)
"""Of each portion: the steps from key to key, where 0 is an equal one; and the rows, of which there may be fewer or more."""


def planned(database: Database, states: dict[str, Any], block_rows: int, blocks: int) -> tuple[list[Window], dict[str, Any]]:
    """The windows of a launch, and the states after it."""
    ranges = PostgresRanges(database.address, "sales", key="id", block_rows=block_rows, window_blocks=blocks)
    windows = []
    with OperatorTask(ranges, name="ranges", states=states) as task:
        while not ranges.is_exhausted():
            task.emit_tuples()
            windows.append(Window(task.end_window()["blocks_metadata_output"]))
        return [window for window in windows if window], task.states()


@settings(max_examples=examples(30), deadline=None)
@given(portions=PORTIONS, block_rows=st.integers(1, 5), blocks=st.integers(1, 3), batch_bytes=st.sampled_from([1, 60, 10_000]))
def test_each_row_is_read_once_and_as_it_was_written(
    server: Any, portions: Any, block_rows: int, blocks: int, batch_bytes: int
) -> None:
    database = Database("postgres", server.get_uri())
    database.run("DROP TABLE IF EXISTS sales")
    database.run(
        "CREATE TABLE sales (text text, n bigint, real float8, flag bool, day date, at timestamp, id bigint NOT NULL, row int8)"
    )
    database.run("CREATE INDEX ON sales (id)")
    reader = PostgresReader(database.address, "sales", key="id", batch_bytes=batch_bytes)
    written: list[dict[str, Any]] = []
    read: list[dict[str, Any]] = []
    states: dict[str, Any] = {}
    key = 0
    for steps, some in portions:
        key += 1  # behind all keys that were read
        added: list[dict[str, Any]] = []
        for step, row in zip(steps, some, strict=False):
            key += step
            text = row["text"] and row["text"].replace("\0", "")
            added.append({**row, "text": text, "id": key, "row": len(written) + len(added)})
        with psycopg.connect(database.address) as connection, connection.cursor() as cursor:
            marks = ", ".join(f"%({name})s" for name in COLUMNS)
            cursor.executemany(f"INSERT INTO sales VALUES ({marks})".encode(), added)
        written += added
        windows, states = planned(database, states, block_rows, blocks)
        if windows:
            read += run_operator(reader, {"blocks_metadata_input": windows})["batches"]
    assert sorted(read, key=lambda row: row["row"]) == written
    assert [row["id"] for row in read] == [row["id"] for row in written]
