"""Rows, windows and other helpers for tests of the writers of tables."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from dagflow import OperatorContext, StagedWindow
from dagflow.testing import OperatorTask

TEXTS = st.none() | st.text(alphabet='ab,;"\n\r\t\\ \x00\x1f€😀', max_size=5)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS,
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flag": st.none() | st.booleans(),
            "day": st.none() | st.dates(),
            "at": st.none() | st.datetimes(),
        }
    ),
    max_size=12,
)
SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "n": pa.int64(),
        "real": pa.float64(),
        "flag": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us"),
    }
)


def written(operator: Any, *batches: pa.RecordBatch) -> dict[str, bytes]:
    """The files after one window."""
    with OperatorTask(operator) as task:
        for batch in batches:
            task.give("input", batch, "batch")
    assert not any(file.is_open for file in task.files.files.values())
    assert sum(file.rows for file in task.files.files.values()) == sum(batch.num_rows for batch in batches)
    return task.files.contents


def cut(rows: list[Any], at: int, schema: pa.Schema = SCHEMA) -> list[pa.RecordBatch]:
    """Batches of `at` rows, slices of a larger one."""
    whole = pa.RecordBatch.from_pylist(rows, schema)
    return [whole.slice(start, at) for start in range(0, len(rows), at)]


def staged_window(task: Any, number: int, *batches: pa.RecordBatch) -> StagedWindow:
    """Stage a window in a task of a sink, and return it as the driver gets it."""
    task.setup(OperatorContext(name="sink", application="app", window=number))
    task.begin_window(number)
    for each in batches:
        task.write_batch(each)
    task.end_window()
    staged = task.stage()
    decision = hashlib.sha256(repr(staged).encode()).hexdigest()[:15]
    return StagedWindow("app", number, () if staged is None else (staged,), "sink", decision)
