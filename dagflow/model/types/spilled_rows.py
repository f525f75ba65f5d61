"""Rows by key in a temporary file, and several of these one above the other: changes that are too large to wait in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dagflow.model.types.keyed_rows import END, KeyedRows, Marks, cut, merged, together, with_columns

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BLOCK = 256 << 10
"""The bytes of a block, about: each is read by itself."""


class SpillFile(Protocol):
    """A temporary file, which goes with the last rows in it."""

    def write(self, data: memoryview) -> int:
        """Write bytes behind those that are there, and return their place."""
        ...

    def read(self, start: int, size: int) -> bytes:
        """Return bytes that were written."""
        ...


@attrs.frozen(eq=False, slots=False)
class SpilledRows:
    """`KeyedRows` in a file.

    Attributes:
        blocks: of each block its first code, its place in the file, and its size.
        weight: about the bytes that the rows take in memory.
        span: see `KeyedRows.span`.
    """

    file: SpillFile
    schema: pa.Schema
    blocks: Sequence[tuple[int, int, int]]
    count: int
    weight: int
    span: tuple[int, int]

    @classmethod
    def of(cls, rows: KeyedRows, file: SpillFile) -> SpilledRows:
        """Write rows to a file."""
        blocks = []
        for first, block in cut(rows, BLOCK):
            data = memoryview(block.serialize())
            blocks.append((first, file.write(data), data.nbytes))
        return cls(file, rows.batch.schema, blocks, len(rows), rows.weight, rows.span)

    def __len__(self) -> int:
        return self.count

    @cached_property
    def _firsts(self) -> np.ndarray[Any, Any]:
        """The first codes of the blocks."""
        import numpy as np

        return np.array([first for first, _, _ in self.blocks], dtype=np.uint64)

    def marks(self) -> Marks:
        """See `KeyedRows.marks`."""
        import numpy as np

        return self._firsts, np.array([size for _, _, size in self.blocks], dtype=float)

    def between(self, start: int, stop: int) -> KeyedRows:
        """Return the rows with codes in `[start, stop)`."""
        parts_between = list(self.within(start, stop))
        return together(parts_between) if parts_between else _without_rows(self.schema)

    def within(self, start: int, stop: int) -> Iterator[KeyedRows]:
        """Yield the rows with codes in `[start, stop)`, block by block, if there are any."""
        import numpy as np

        first = max(0, int(np.searchsorted(self._firsts, np.uint64(start), side="right")) - 1)
        last = len(self.blocks) if stop >= END else int(np.searchsorted(self._firsts, np.uint64(stop)))
        for number in range(first, last):
            if len(rows := self._read([number]).between(start, stop)):
                yield rows

    def near(self, codes: np.ndarray[Any, Any]) -> KeyedRows:
        """Return the rows of the blocks that may have some of these codes, which are sorted."""
        import numpy as np

        at = np.searchsorted(self._firsts, codes[codes <= np.uint64(self.span[1])], side="right") - 1
        return self._read(np.unique(at[at >= 0]).tolist())

    def chunks(self) -> Iterator[KeyedRows]:
        """Yield the rows, some at a time."""
        for number in range(len(self.blocks)):
            yield self._read([number])

    def _read(self, numbers: Sequence[int]) -> KeyedRows:
        import pyarrow as pa

        parts = (self.file.read(*self.blocks[number][1:]) for number in numbers)
        rows = [KeyedRows(pa.ipc.read_record_batch(pa.py_buffer(part), self.schema)) for part in parts]
        return together(rows) if rows else _without_rows(self.schema)


@attrs.frozen(eq=False)
class Runs:
    """Rows by key in several parts: of a key in more than one, its row in the last of them. At least one part is spilled."""

    parts: Sequence[KeyedRows | SpilledRows]
    schema: pa.Schema

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def columns(self) -> list[list[str]]:
        """See `KeyedRows.columns`."""
        return _without_rows(self.schema).columns

    @property
    def weight(self) -> int:
        """See `KeyedRows.weight`."""
        return sum(part.weight for part in self.parts)

    def marks(self) -> Marks:
        """See `KeyedRows.marks`."""
        import numpy as np

        codes, weights = zip(*(part.marks() for part in self.parts), strict=True)
        return np.concatenate(codes), np.concatenate(weights)

    def between(self, start: int, stop: int) -> KeyedRows:
        """See `KeyedRows.between`."""
        parts = [
            part.within(start, stop) if isinstance(part, SpilledRows) else [part.between(start, stop)] for part in self.parts
        ]
        parts_between = [KeyedRows(with_columns(rows.batch, self.schema)) for part in parts for rows in part]
        return merged(parts_between or [_without_rows(self.schema)])

    def chunks(self) -> Iterator[KeyedRows]:
        """See `KeyedRows.chunks`."""
        for part in self.parts:
            yield from part.chunks()


def _without_rows(schema: pa.Schema) -> KeyedRows:
    import pyarrow as pa

    return KeyedRows(pa.RecordBatch.from_pylist([], schema))
