"""The records of a batch. A row without one, for a value that Python cannot hold or a class that refuses it, costs no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dagflow.model.types.forms import to_records

if TYPE_CHECKING:
    import pyarrow as pa

Run = tuple[int, "list[Any] | Exception"]
"""The first of some rows of a batch, and their records; for a row that has no record, the exception of its conversion."""


def runs_of_records(batch: pa.RecordBatch, tp: Any) -> Iterator[Run]:
    """Yield the records of a batch of type `tp`, run by run. Raises KeyError or IndexError if it has other columns."""
    return _runs(batch, tp, 0, batch.num_rows)


def _runs(batch: pa.RecordBatch, tp: Any, start: int, stop: int) -> Iterator[Run]:
    try:
        yield start, to_records(batch.slice(start, stop - start), tp)
    except (KeyError, IndexError):
        raise
    except Exception as error:  # noqa: BLE001  # the class of a user may raise anything
        if stop - start == 1:
            yield start, error
            return
        middle = (start + stop) // 2
        yield from _runs(batch, tp, start, middle)
        yield from _runs(batch, tp, middle, stop)
