"""Every shipped reader whose `cuts` is "any" is proved: a little by every CI, at depth by `make proofs`."""

from __future__ import annotations

import csv
import inspect
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import operators
from dagflow.scan import Format
from dagflow.testing import assert_reader_is_splittable, scan_reader_of
from dagflow.testing.readers import CountedFiles, reader_of
from operators import (
    AvroFormat,
    BlockReader,
    CsvFormat,
    Entity,
    FixedRecordsReaderContext,
    FixedWidthFormat,
    JsonLinesFormat,
    ParquetFormat,
    ReadAheadLineReaderContext,
    ReaderContext,
    RegexFormat,
    ScanReader,
)
from tests.operators.compression.samples import TOOLS, bgzf

HEADER = 64 * 1024  # is read at once of CSV (it names the columns) and of Avro (it has the schema), for each range
FOOTER = 64 * 1024 + 64 + 8  # of Parquet, it says where row groups are; Arrow reads 64 KiB, and we look at head and tail before
ENDS = (b"\n", b"\r\n", b"\n\n")


def text(lines: int, longest: int = 60, ends: tuple[bytes, ...] = ENDS) -> bytes:
    """Lines of ASCII and of characters of several bytes; the last one has no end."""
    at_random = random.Random(lines)
    words = ("one", "zwei", "tři", "четыре", "\U0001d7dd", ",", '"', "|", "")
    found = b""
    for _ in range(lines):
        found += " ".join(at_random.choices(words, k=at_random.randint(0, longest // 5))).encode() + at_random.choice(ends)
    return found + b"end"


def rows(count: int, longest: int) -> list[dict[str, Any]]:
    """Rows of three columns, some of them long."""
    at_random = random.Random(count)
    return [
        {"n": n, "s": "é" * at_random.randint(0, longest), "t": at_random.choice(['a "b"', "c\n,d", ""])} for n in range(count)
    ]


def json_lines(found: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=n % 2 == 0) + "\n" for n, row in enumerate(found)).encode()


def comma_separated(found: list[dict[str, Any]]) -> bytes:
    target = io.StringIO()
    writer = csv.DictWriter(target, ["n", "s", "t"])
    writer.writeheader()
    writer.writerows(found)
    return target.getvalue().encode()


def avro(found: list[dict[str, Any]]) -> bytes:
    fields = [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}, {"name": "t", "type": "string"}]
    target = io.BytesIO()
    fastavro.writer(target, {"type": "record", "name": "row", "fields": fields}, found, sync_interval=5 * len(found))
    return target.getvalue()


def parquet(found: list[dict[str, Any]]) -> bytes:
    """Row groups of texts that nothing makes small: what is read of them is as long as what is in them."""
    at_random = random.Random(len(found))
    table = pa.Table.from_pylist([{**row, "s": at_random.randbytes(len(row["s"])).hex()} for row in found])
    target = io.BytesIO()
    pq.write_table(table, target, row_group_size=max(1, len(found) // 20), compression="none", use_dictionary=False)
    return target.getvalue()


def places(found: list[dict[str, Any]]) -> bytes:
    return b"".join(f"{row['n']:>3000}\n".encode() for row in found)


def patterns(found: list[dict[str, Any]]) -> bytes:
    return "".join(f"{row['n']}={row['s']}\n" for row in found).encode()


@attrs.frozen
class Proved:
    """One proof: a reader, and the files that it is proved with.

    Attributes:
        make_reader: makes one, with the files that it opens and how many bytes it reads at a time, if that can be said.
        small: every cut is tried; it may be claimed at once (`is_claimed_at_once`).
        large: cuts and splits are drawn at random; it is several times longer than what is claimed, and read, at once.
        buffer_bytes: what is read at a time of the large file, at most, beyond the range.
        besides_bytes: what is read of it for each range, wherever that lies: header, footer.
        short: how much of the full effort is spent in CI.
    """

    of: type
    make_reader: Callable[[CountedFiles, int], Any]
    small: bytes
    large: bytes
    buffer_bytes: int = 4096
    besides_bytes: int = 0
    is_claimed_at_once: bool = False
    short: float = 0.1


def one_by_one(kind: Any) -> Any:
    """The same context, read one record at a time."""

    class OneByOne(kind):  # type: ignore[misc]  # any of them
        def next(self) -> Entity | None:
            found: Entity | None = super().next()
            return found

    return OneByOne


HOW: dict[str, tuple[Callable[[Any], Any], Callable[[ReaderContext], BlockReader[Any]], bool]] = {
    "records in pieces": (lambda kind: kind, lambda context: BlockReader(reader_context=context), False),
    "batches": (lambda kind: kind, lambda context: BlockReader(reader_context=context), True),
    "one by one, converted": (one_by_one, lambda context: BlockReader(bytes, reader_context=context), False),
}
"""The differences between block readers: how they find records, what they make of them, in which form they pass them on."""


def of_context(kind: Any, small: bytes, large: bytes, properties: dict[str, Any], buffer_bytes: int, how: str) -> Proved:
    """A proof of a block reader with a context."""
    found, make, in_batches = HOW[how]

    def make_reader(files: CountedFiles, piece_bytes: int) -> Any:
        context = found(kind)(piece_bytes=piece_bytes, **properties)
        assert context.supports_pieces == (found is not one_by_one)
        return reader_of(make(context), files=files, in_batches=in_batches)

    return Proved(kind, make_reader, small, large, buffer_bytes, short=0.04 if buffer_bytes == 4096 else 0.01)


def of_format(made: Format, write: Callable[[list[dict[str, Any]]], bytes], **properties: Any) -> Proved:
    """A proof of a format."""
    return Proved(
        type(made),
        lambda files, _: scan_reader_of(ScanReader(made), files=files),
        write(rows(6, 3)),
        write(rows(300, 6_000)),
        buffer_bytes=64 * 1024,
        short=0.03,
        **properties,
    )


LINES = text(8, 15)
TABLE: dict[str, tuple[Any, bytes, bytes, dict[str, Any], int]] = {
    "lines": (ReadAheadLineReaderContext, LINES, text(1_000), {}, 4096),
    "lines that end with \\n, \\r\\n or \\r": (
        ReadAheadLineReaderContext,
        text(8, 15, (b"\n", b"\r\n", b"\r")),
        text(1_000, 60, (b"\n", b"\r\n", b"\r")),
        {"terminators": ["\n", "\r\n", "\r"]},
        4096,
    ),
    "lines with a long delimiter": (
        ReadAheadLineReaderContext,
        text(20, 15, (b"abcabd", b"abc")),
        text(1_000, 60, (b"abcabd", b"abc", b"abcabcabd")),
        {"terminators": "abcabd"},
        4096,
    ),
    "lines whose delimiters may overlap": (  # going back over a row of them takes 64 KiB
        ReadAheadLineReaderContext,
        text(8, 15, (b"||", b"|||")),
        text(10_000, 60, (b"||", b"|", b"|||||")),
        {"terminators": "||"},
        64 * 1024,
    ),
    "records of a fixed length": (
        FixedRecordsReaderContext,
        b"ab" * 100,
        b"0123456789" * 2_000,
        {"length": 30, "partial": "emit"},
        4096,
    ),
    "lines, compressed by members (BGZF)": (
        ReadAheadLineReaderContext,
        bgzf(LINES, [9, 1, 30]),
        TOOLS["bgzf"](text(8_000, 300)),  # of long lines: many bytes in few records
        {},
        64 * 1024,
    ),
}
READERS = {f"{name}, {how}": of_context(*given, how) for name, given in TABLE.items() for how in HOW} | {
    "JSON lines": of_format(JsonLinesFormat(), json_lines),
    "CSV": of_format(CsvFormat(), comma_separated, besides_bytes=HEADER),
    "Avro": of_format(AvroFormat(), avro, besides_bytes=HEADER, is_claimed_at_once=True),
    "Parquet": of_format(ParquetFormat(), parquet, besides_bytes=FOOTER),
    "fixed widths": of_format(FixedWidthFormat({"n": (0, 3_000)}), places),
    "patterns": of_format(RegexFormat(r"(?P<n>\d+)=(?P<s>.*)"), patterns),
}


def proved(name: str, path: Path, effort: float) -> Iterator[None]:
    """Proves a reader with its small file, then with its large one."""
    given = READERS[name]
    files = CountedFiles()
    path.write_bytes(given.small)
    make_reader, is_split = given.make_reader(files, 16), not given.is_claimed_at_once
    yield assert_reader_is_splittable(make_reader, path, effort=min(1.0, effort * 5), while_reading=is_split)
    path.write_bytes(given.large)
    counted: dict[str, Any] = {"files": files, "buffer_bytes": given.buffer_bytes, "besides_bytes": given.besides_bytes}
    yield assert_reader_is_splittable(given.make_reader(files, given.buffer_bytes), path, effort=effort, **counted)


@pytest.mark.full
@pytest.mark.parametrize("name", READERS)
def test_a_shipped_reader_is_splittable(tmp_path: Path, name: str) -> None:
    assert len(list(proved(name, tmp_path / "file", READERS[name].short / 2))) == 2


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", READERS)
def test_a_shipped_reader_is_splittable_at_depth(tmp_path: Path, name: str) -> None:
    assert len(list(proved(name, tmp_path / "file", 20 * READERS[name].short))) == 2


def test_no_reader_that_may_be_cut_anywhere_is_left_out() -> None:
    names = [getattr(operators, name) for name in operators.__all__]
    shipped = [each for each in names if inspect.isclass(each) and not inspect.isabstract(each)]
    cut_anywhere = {
        each
        for each in shipped
        if (issubclass(each, Format) and getattr(each, "cuts", None) != "none")
        or (issubclass(each, ReaderContext) and each is not ReaderContext and each.cuts == "any")
    }
    assert len(cut_anywhere) > 5
    assert cut_anywhere - {given.of for given in READERS.values()} == set()
