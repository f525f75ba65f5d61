from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from dagflow import FileBlockMetadata
from operators.contexts import ReaderContext

Found = list[tuple[bytes, int, int]]  # record, used bytes, position


class ShortReads(io.BytesIO):
    """A stream that gives at most `most` bytes a read, as sockets and some file systems do."""

    def __init__(self, data: bytes, most: int = 1) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.most if size is None or size < 0 else min(size, self.most))


class Watched(io.BytesIO):
    """A stream that notes what is asked of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads.append((self.tell(), size or 0))
        return super().read(size)


@attrs.define
class Helpers:
    """The helpers of the tests of contexts; a fixture, as tests are not a package."""

    short_reads: type[ShortReads] = ShortReads
    watched: type[Watched] = Watched

    def block(self, start: int, stop: int, length: int, **others: Any) -> FileBlockMetadata:
        return FileBlockMetadata(start, "data.txt", start, stop, length, is_last_block=stop == length, **others)

    def blocks(self, length: int, size: int) -> list[FileBlockMetadata]:
        starts = range(0, length, size)
        return [
            self.block(start, min(length, start + size), length, previous_block_id=starts[index - 1] if index else -1)
            for index, start in enumerate(starts)
        ]

    def drain(self, context: ReaderContext, form: str) -> Found:
        """All that is left of the block, by one of the two forms."""
        found: Found = []
        if form == "next":
            while (entity := context.next()) is not None:
                assert entity.is_split_point
                found.append((entity.record, entity.used_bytes, entity.position))
            return found
        while (piece := context.next_piece()) is not None:
            assert len(piece) > 0
            positions = piece.positions.tolist()
            ends = [*positions[1:], piece.position + piece.used_bytes]
            used = [end - position for position, end in zip(positions, ends, strict=True)]
            found += zip(piece.bytes_list(), used, positions, strict=True)
            assert piece.binary_array().to_pylist() == piece.bytes_list()
        assert context.next_piece() is None
        return found

    def read(
        self,
        context: ReaderContext,
        data: bytes,
        size: int | None = None,
        *,
        form: str = "next",
        consecutive: bool = False,
        stream: Callable[[bytes], Any] = io.BytesIO,
    ) -> list[Found]:
        """The entities that each block of a file yields."""
        opened = stream(data)
        answer = []
        for index, block in enumerate(self.blocks(len(data), size or len(data) or 1)):
            context.initialize(opened, block, consecutive and index > 0)
            answer.append(self.drain(context, form))
        context.close()
        return answer

    def shown(self, found: Iterable[Found]) -> str:
        """In the notation of the golden tables: `record/used` of each block, blocks separated by |."""
        return " | ".join(" ".join(f"{record.decode()}/{used}" for record, used, _ in block) or "-" for block in found)

    def lines(self, data: bytes, pattern: bytes = rb"\r?\n", last: bytes = rb"\r?\Z") -> Found:
        """The reference: one scan from the first byte of the file."""
        found: Found = []
        position = 0
        for match in re.finditer(pattern, data):
            found.append((data[position : match.start()], match.end() - position, position))
            position = match.end()
        if position < len(data):
            rest = data[position:]
            record = re.sub(last, b"", rest, count=1) if last else rest
            found += [(record, len(rest), position)] if record else []
        return found


@pytest.fixture(scope="session")
def helpers() -> Helpers:
    return Helpers()


@pytest.fixture(scope="session")
def table() -> bytes:
    """1000 lines of 123 bytes, as the original's tests have them: the first field is a date."""
    line = "2015-01-{:02d},{:04d},".format
    return b"".join(line(index % 28 + 1, index).encode().ljust(122, b"x") + b"\n" for index in range(1000))
