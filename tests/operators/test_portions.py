"""The rows of large windows: in portions by key, through a file."""

from __future__ import annotations

import errno
import os
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dagflow.errors import RowsNotPutAside
from dagflow.testing import OperatorTask
from operators import HashJoin
from operators.aggregate.current_rows import CurrentRows
from operators.portions import Portions
from tests.operators.small_portions import small_portions


def groups(batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
    return batch.column("k").to_numpy()


def test_a_batch_without_rows_may_come_first() -> None:
    rows = Portions([groups])
    with small_portions():
        rows.add(pa.record_batch({"k": pa.array([], pa.int64())}), 1)
        rows.add(pa.record_batch({"k": [1, 2, 3]}), 1)
        found = [batch.num_rows for (chunks,) in rows.take() for batch, _ in chunks]
    assert sum(found) == 3


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a", None]).dictionary_encode(),
        pa.array(["a", "b", "a", None], pa.string_view()),
        pa.array([b"a", b"b", b"a", None], pa.binary_view()),
        pa.array([1.5, 2.5, 1.5, None], pa.float16()),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("small", [False, True])
def test_columns_of_any_type(values: pa.Array, *, small: bool) -> None:
    batch = pa.record_batch({"k": [1, 2, 3, 4], "v": values})
    with small_portions(small=small), OperatorTask(HashJoin("k"), in_batches=True) as task:
        task.give("left", batch)
        task.give("right", pa.record_batch({"k": [1, 2, 3, 4]}))
        rows = task.end_window()["output"]
    assert Counter(row["v"] for row in rows) == Counter(values.to_pylist())
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        return  # pyarrow does not select rows of these
    with small_portions(small=small), OperatorTask(CurrentRows(), in_batches=True) as task:
        task.give("input", batch)
        rows = task.end_window()["output"]
    assert Counter(row["v"] for row in rows) == Counter(values.to_pylist())


def test_a_full_disk_is_no_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    batch = pa.record_batch({"k": [1, 2, 3, 4]})
    with small_portions(), OperatorTask(HashJoin("k", on_error="skip"), in_batches=True) as task, monkeypatch.context() as patch:
        patch.setattr("dagflow.storage.local.spill_file.os.pwrite", full)
        with pytest.raises(RowsNotPutAside, match="No space left on device"):
            task.give("left", batch)
