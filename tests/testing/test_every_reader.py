"""Every shipped reader whose `cuts` is "any" is proved: a little by every CI, at depth by `make proofs`."""

from __future__ import annotations

import csv
import inspect
import io
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import operators
from dagflow.scan import Format
from dagflow.testing import assert_reader_is_splittable
from dagflow.testing.readers import CountedFiles, reader_of, reader_of_format
from operators import (
    AvroFormat,
    CsvFormat,
    FixedRecordsReaderContext,
    FixedWidthFormat,
    JsonLinesFormat,
    ParquetFormat,
    ReadAheadLineReaderContext,
    ReaderContext,
    RegexFormat,
)
from operators.compression import DecompressingContext
from tests.operators.compression.samples import TOOLS, bgzf

ENDS = (b"\n", b"\r\n", b"\n\n")


def text(lines: int, longest: int = 60, ends: tuple[bytes, ...] = ENDS) -> bytes:
    """Lines of ASCII and of characters of several bytes; the last one has no end."""
    at_random = random.Random(lines)
    words = ("one", "zwei", "tři", "четыре", "\U0001d7dd", ",", '"', "|", "")
    found = b""
    for _ in range(lines):
        found += " ".join(at_random.choices(words, k=at_random.randint(0, longest // 5))).encode() + at_random.choice(ends)
    return found + b"end"


def objects(lines: int, longest: int) -> bytes:
    """JSON lines."""
    at_random = random.Random(lines)
    rows = ({"n": n, "s": "é" * at_random.randint(0, longest), "a": [n] * (n % 3)} for n in range(lines))
    return "".join(json.dumps(row, ensure_ascii=n % 2 == 0) + "\n" for n, row in enumerate(rows)).encode()


def table(rows: int, longest: int) -> bytes:
    """CSV with line ends, delimiters and quotes within quotes."""
    at_random = random.Random(rows)
    out = io.StringIO()
    texts = ("é", "\n", ",", '"', "\r\n", "words")
    csv.writer(out).writerow(["n", "text", "more"])
    for n in range(rows):
        text = "".join(at_random.choices(texts, k=at_random.randint(0, longest // 3)))
        csv.writer(out, lineterminator=at_random.choice(["\n", "\r\n"])).writerow([n, text, "x" * (n % 7)])
    return out.getvalue().encode()


def parquet(rows: int, group: int) -> bytes:
    """A table whose row groups have so many rows."""
    at_random, target = random.Random(rows), io.BytesIO()
    texts = ["".join(at_random.choices("abcdefgh", k=at_random.randint(0, 20 * rows))) for _ in range(rows)]
    pq.write_table(pa.table({"n": range(rows), "text": texts}), target, row_group_size=group, compression="none")
    return target.getvalue()


def avro(rows: int, longest: int) -> bytes:
    """A file whose blocks have about a row."""
    at_random, target = random.Random(rows), io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}, {"name": "text", "type": "string"}]}
    values = [{"n": n, "text": "é" * at_random.randint(0, longest)} for n in range(rows)]
    fastavro.writer(target, schema, values, sync_interval=1)
    return target.getvalue()


def fixed(rows: int) -> bytes:
    """Records of 3,001 bytes."""
    return b"".join(b"%-1500d%1500d\n" % (n, n) for n in range(rows))


@attrs.frozen
class Proved:
    """What is proved, of what it is a proof, and with which files.

    Attributes:
        make_reader: makes one, with the files that it opens and how many bytes it reads at a time, if that can be said.
        small: every cut is tried; what is claimed at once may be all of it (`is_claimed_at_once`).
        large: cuts and splits are drawn at random; it is several times longer than what is claimed, and read, at once.
        buffer_bytes: what is read at a time of the large file.
        short: how much of the full effort is spent in CI.
    """

    of: type
    make_reader: Callable[[CountedFiles, int], Any]
    small: bytes
    large: bytes
    buffer_bytes: int = 4096
    is_claimed_at_once: bool = False
    compare: Callable[[list[Any]], Any] | None = None
    short: float = 0.1


def of_context(
    make_context: Callable[..., Any], small: bytes, large: bytes, properties: dict[str, Any], buffer_bytes: int, in_pieces: bool
) -> Proved:
    """A proof of a context."""

    def make_reader(files: CountedFiles, piece_bytes: int) -> Any:
        return reader_of(partial(make_context, piece_bytes=piece_bytes, **properties), files=files, in_pieces=in_pieces)

    kind = make_context if inspect.isclass(make_context) else DecompressingContext
    return Proved(kind, make_reader, small, large, buffer_bytes, short=0.1 if buffer_bytes == 4096 else 0.03)


def unpacked(**properties: Any) -> DecompressingContext:
    return DecompressingContext(ReadAheadLineReaderContext(**properties))


def of_format(make_format: Callable[[], Format], small: bytes, large: bytes, short: float = 0.05) -> Proved:
    """A proof of a format, whose reader reads 1 MiB at a time; rows are compared."""
    return Proved(
        type(make_format()),
        lambda files, _: reader_of_format(make_format, files=files),
        small,
        large,
        buffer_bytes=1 << 20,
        is_claimed_at_once=True,
        compare=list,
        short=short,
    )


LINES = text(8, 15)
FIXED = partial(FixedWidthFormat, {"begin": (0, 10), "end": (2_990, 10)})
TABLE: dict[str, tuple[Any, bytes, bytes, dict[str, Any], int]] = {
    "lines": (ReadAheadLineReaderContext, LINES, text(3_000), {}, 4096),
    "lines that end with \\n, \\r\\n or \\r": (
        ReadAheadLineReaderContext,
        text(8, 15, (b"\n", b"\r\n", b"\r")),
        text(3_000, 60, (b"\n", b"\r\n", b"\r")),
        {"terminators": ["\n", "\r\n", "\r"]},
        4096,
    ),
    "lines with a long delimiter": (
        ReadAheadLineReaderContext,
        text(8, 15, (b"abcabd", b"abc")),
        text(3_000, 60, (b"abcabd", b"abc", b"abcabcabd")),
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
        b"0123456789" * 4_000,
        {"length": 30, "partial": "emit"},
        4096,
    ),
    "lines, compressed by members (BGZF)": (
        unpacked,
        bgzf(LINES, [9, 1, 30]),
        TOOLS["bgzf"](text(40_000)),
        {},
        64 * 1024,
    ),
}
READERS = {
    f"{name}, {'in pieces' if in_pieces else 'one by one'}": of_context(*given, in_pieces)
    for name, given in TABLE.items()
    for in_pieces in (False, True)
} | {
    "JSON lines": of_format(JsonLinesFormat, objects(6, 3), objects(900, 6_000)),
    "CSV": of_format(CsvFormat, table(6, 3), table(900, 10_000)),
    "Parquet": of_format(ParquetFormat, parquet(6, 2), parquet(2_000, 20)),
    "Avro": of_format(AvroFormat, avro(6, 3), avro(900, 10_000)),
    "log lines": of_format(partial(RegexFormat, "(?P<rest>.*)"), LINES, text(900, 20_000)),
    "columns by their places": of_format(FIXED, fixed(3), fixed(1_200)),
}


def proved(name: str, path: Path, effort: float) -> Iterator[None]:
    """Proves a reader with its small file, then with its large one."""
    given = READERS[name]
    files = CountedFiles()
    prove = partial(assert_reader_is_splittable, path=path, compare=given.compare)
    path.write_bytes(given.small)
    once = {"while_reading": False, "least_split_points": 1} if given.is_claimed_at_once else {}
    yield prove(given.make_reader(files, 16), effort=min(1.0, effort * 10), **once)
    path.write_bytes(given.large)
    yield prove(given.make_reader(files, given.buffer_bytes), effort=effort, files=files, buffer_bytes=given.buffer_bytes)


@pytest.mark.parametrize("name", READERS)
def test_a_shipped_reader_is_splittable(tmp_path: Path, name: str) -> None:
    assert len(list(proved(name, tmp_path / "file", READERS[name].short))) == 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", READERS)
def test_a_shipped_reader_is_splittable_at_depth(tmp_path: Path, name: str) -> None:
    assert len(list(proved(name, tmp_path / "file", 20 * READERS[name].short))) == 2


@pytest.mark.slow
def test_no_reader_that_may_be_cut_anywhere_is_left_out() -> None:
    shipped = [each for each in vars(operators).values() if inspect.isclass(each) and not inspect.isabstract(each)]
    cut_anywhere = {
        each
        for each in shipped
        if (issubclass(each, Format) and getattr(each, "cuts", None) != "none")
        or (issubclass(each, ReaderContext) and each is not ReaderContext and each.cuts == "any")
    }
    assert cut_anywhere - {given.of for given in READERS.values()} == set()
