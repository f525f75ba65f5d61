"""The observed behaviour of Apache Apex Malhar's contexts, and the departures of ours.

Departures that change figures: blank lines are records (Malhar swallows a run of line ends with the line
before it), and a line that starts exactly at a block's stop belongs to the next block (in Malhar's read-ahead context
to the one before). Malhar's defects are not copied: it broke on an unterminated last line that ends 8192 bytes or
more after its block's start, on short reads, and on anything but ASCII.
"""

from __future__ import annotations

from typing import Any

import pytest

from operators.contexts import FixedBytesReaderContext, LineReaderContext, ReadAheadLineReaderContext

# As the original.
LINE = [
    (b"ab\ncd\nef", 3, "ab/3 | cd/3 | ef/2"),
    (b"ab\ncd\nef\n", 4, "ab/3 cd/3 | d/2 ef/3 | /1"),
    (b"ab\r\ncd\r\nef", 4, "ab/4 | cd/4 | ef/2"),
    (b"ab\r\ncd\r\nef", 3, "ab/4 | /1 cd/4 | /2 ef/2 | f/1"),
    (b"abcdefghij\nk\n", 3, "abcdefghij/11 | defghij/8 | ghij/5 | j/2 k/2 | /1"),
]
# Blank lines: the original has a/4 b/2; a/4 | /2 | b/2; /2 ab/3.
LINE_BLANK = [
    (b"a\n\n\nb\n", 100, "a/2 /1 /1 b/2"),
    (b"a\n\n\nb\n", 2, "a/2 | /1 /1 | b/2"),
    (b"\n\nab\n", 100, "/1 /1 ab/3"),
]
# As the original.
READ_AHEAD = [
    (b"ab\ncd\nef\n", 4, "ab/3 cd/3 | ef/3 | -"),
    (b"ab\r\ncd\r\nef", 3, "ab/4 | cd/4 | ef/2 | -"),
    (b"abcdefghij\nk\n", 3, "abcdefghij/11 | - | - | k/2 | -"),
]
# A line starts at a stop. The original: ab/3 cd/3 | ef/2 | -; ab/4 cd/4 | ef/2 | -; abcdefghi/10 | k/2 | -.
# Two blank lines. The original: /2 | ab/3 | - | - | -.
READ_AHEAD_DEPARTS = [
    (b"ab\ncd\nef", 3, "ab/3 | cd/3 | ef/2"),
    (b"ab\r\ncd\r\nef", 4, "ab/4 | cd/4 | ef/2"),
    (b"abcdefghi\nk\n", 5, "abcdefghi/10 | - | k/2"),
    (b"\n\nab\n", 1, "/1 | /1 | ab/3 | - | -"),
]


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize(("data", "size", "expected"), LINE + LINE_BLANK)
def test_line_reader(helpers: Any, form: str, consecutive: bool, data: bytes, size: int, expected: str) -> None:
    found = helpers.read(LineReaderContext(), data, size, form=form, consecutive=consecutive)
    assert helpers.shown(found) == expected


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize(("data", "size", "expected"), READ_AHEAD + READ_AHEAD_DEPARTS)
def test_read_ahead(helpers: Any, form: str, consecutive: bool, data: bytes, size: int, expected: str) -> None:
    found = helpers.read(ReadAheadLineReaderContext(), data, size, form=form, consecutive=consecutive)
    assert helpers.shown(found) == expected


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize(
    ("size", "blocks", "entities", "used"),
    [(1000, 123, 1122, 130_503), (1230, 100, 1000, 123_000), (4096, 31, 1030, 124_983), (8192, 16, 1015, 124_083)],
)
def test_line_reader_counts_partial_lines_twice(
    helpers: Any, table: bytes, form: str, size: int, blocks: int, entities: int, used: int
) -> None:
    """Malhar's figures; `convert_to_record` has to refuse a part of a line."""
    found = helpers.read(LineReaderContext(), table, size, form=form)
    records = [record for block in found for record in block]
    assert (len(found), len(records), sum(used for _, used, _ in records)) == (blocks, entities, used)
    assert [record for record, _, _ in records if len(record) == 122] == table.splitlines()


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize(
    ("size", "counts"),
    [
        (1000, {8: 107, 9: 16}),  # as the original: no line but the first starts at a stop
        (123, {1: 1000}),  # the original: 2 in the first block, none in the last, 1 in the others
        (1230, {10: 100}),  # the original: 11 in the first, 9 in the last
        (8192, {66: 5, 67: 10, 0: 1}),  # as the original: 66 or 67, none in the last
        (123_000, {1000: 1}),
    ],
)
def test_read_ahead_yields_each_line_once(helpers: Any, table: bytes, form: str, size: int, counts: dict[int, int]) -> None:
    found = helpers.read(ReadAheadLineReaderContext(), table, size, form=form)
    assert [record for block in found for record, _, _ in block] == table.splitlines()
    assert sum(used for block in found for _, used, _ in block) == 123_000
    lengths = [len(block) for block in found]
    assert {count: lengths.count(count) for count in lengths} == counts


@pytest.mark.parametrize("context", [ReadAheadLineReaderContext(), LineReaderContext()])
def test_blocks_may_come_in_any_order(helpers: Any, table: bytes, context: Any) -> None:
    import io

    blocks = helpers.blocks(len(table), 1000)
    stream, lines = io.BytesIO(table), []
    for first in range(10):
        for block in blocks[first::10]:
            context.initialize(stream, block, False)
            lines += [
                record for record, _, _ in helpers.drain(context, "next") if record.startswith(b"2015-") and len(record) == 122
            ]
    assert len(lines) == 1000
    assert sorted(lines, key=lambda line: line[11:15]) == table.splitlines()


def test_a_line_longer_than_its_block_belongs_to_the_block_in_which_it_starts(helpers: Any) -> None:
    data = b"x" * 19_999 + b"\n"
    found = helpers.read(ReadAheadLineReaderContext(), data, 4096)
    assert [[used for _, used, _ in block] for block in found] == [[20_000], [], [], [], []]


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize("length", [8191, 8192, 8193, 9000, 16_384])
@pytest.mark.parametrize("context", [ReadAheadLineReaderContext(), LineReaderContext()])
def test_the_last_line_needs_no_terminator(helpers: Any, context: Any, length: int, form: str) -> None:
    """The original broke here when the line ended 8192 bytes or more after its block's start."""
    data = (b"x" * 127 + b"\n") * 200
    data = data[: length - 1] + b"y"
    assert helpers.read(context, data, form=form) == [helpers.lines(data)]


@pytest.mark.parametrize("form", ["next", "piece"])
def test_bytes_beyond_ascii_are_kept(helpers: Any, form: str) -> None:
    """The original: h\\xe9llo, w\\xf6rld, end, then empty records without end."""
    found = helpers.read(LineReaderContext(), "héllo\nwörld\nend\n".encode(), form=form)
    assert helpers.shown(found) == "héllo/7 | wörld/7 | end/4".replace(" |", "")


def test_two_files_of_the_record_reader(helpers: Any) -> None:
    first, second = b"1234\n567890\nabcde\nfgh\ni\njklmop", b"qr\nstuvw\nxyz\n"
    for size in range(1, 31):
        records = [
            record
            for data in (first, second)
            for block in helpers.read(ReadAheadLineReaderContext(), data, size)
            for record, _, _ in block
        ]
        assert records == [b"1234", b"567890", b"abcde", b"fgh", b"i", b"jklmop", b"qr", b"stuvw", b"xyz"]
    slices = [
        record for data in (first, second) for block in helpers.read(FixedBytesReaderContext(8), data) for record, _, _ in block
    ]
    assert slices == [b"1234\n567", b"890\nabcd", b"e\nfgh\ni\n", b"jklmop", b"qr\nstuvw", b"\nxyz\n"]
