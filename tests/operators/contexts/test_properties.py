"""Contexts as values: properties, copies, subclasses of users."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from operators.contexts import (
    BadText,
    Entity,
    FileShortened,
    FixedBytesReaderContext,
    FixedRecordsReaderContext,
    LineReaderContext,
    PartialRecord,
    ReadAheadLineReaderContext,
    ReaderContext,
    RecordTooLong,
)

CONTEXTS = [
    ReadAheadLineReaderContext(terminators="||", max_record_bytes=100),
    LineReaderContext(),
    FixedBytesReaderContext(length=4),
    FixedRecordsReaderContext(4, partial="drop"),
]


def test_properties_are_the_fields_that_one_may_set() -> None:
    names = {type(context).__name__: [f.name for f in attrs.fields(type(context)) if f.init] for context in CONTEXTS}
    lines = ["terminators", "max_record_bytes", "piece_bytes"]
    assert names == {
        "ReadAheadLineReaderContext": lines,
        "LineReaderContext": lines,
        "FixedBytesReaderContext": ["length", "piece_bytes"],
        "FixedRecordsReaderContext": ["length", "partial", "piece_bytes", "marks"],
    }
    assert repr(LineReaderContext()) == (
        "LineReaderContext(terminators=(b'\\n', b'\\r\\n'), max_record_bytes=67108864, piece_bytes=2097152)"
    )


@pytest.mark.parametrize("context", CONTEXTS)
def test_copies_share_nothing_and_are_equal(helpers: Any, context: Any) -> None:
    for twin in (copy.deepcopy(context), pickle.loads(pickle.dumps(context))):
        assert twin == context
        twin.initialize(io.BytesIO(b"aaaa||bbbb||"), helpers.block(0, 12, 12), False)
        assert twin.next() is not None
        assert twin == context
        assert context._source is None


def test_fields_are_checked_when_they_are_set() -> None:
    context = ReadAheadLineReaderContext()
    context.terminators = "\x1e"  # type: ignore[assignment]
    assert context.terminators == (b"\x1e",)
    with pytest.raises(ValueError, match="max_record_bytes is 0, but must be a number of bytes from 1 to 1073741824"):
        context.max_record_bytes = 0
    with pytest.raises(
        ValueError, match=r"piece_bytes is 1073741824, but must be a number of bytes from 1 to 268435456 \(256 MiB\)"
    ):
        context.piece_bytes = 1 << 30


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"terminators are \[\], but must be one delimiter of any bytes, or \['\\n', '\\r\\n'\] \(the default\), or "),
        (["\n", "\r"], r"terminators are \['\\n', '\\r'\], but must be one delimiter of any bytes"),
        ("", "a terminator has no bytes"),
        (b"x" * 4097, "a terminator has 4097 bytes; at most 4096 are allowed"),
    ],
)
def test_terminators_that_have_no_rules_are_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReadAheadLineReaderContext(terminators=values)


def test_the_order_of_terminators_does_not_matter(helpers: Any) -> None:
    for values in (["\r\n", "\n"], [b"\n", "\r\n", "\n"]):
        assert helpers.shown(helpers.read(ReadAheadLineReaderContext(terminators=values), b"a\r\nb\n")) == "a/3 b/2"
    assert helpers.shown(helpers.read(ReadAheadLineReaderContext(terminators="\n"), b"a\r\nb\n")) == "a\r/3 b/2"
    assert helpers.shown(helpers.read(ReadAheadLineReaderContext(terminators="\r\n"), b"a\nb\r\nc")) == "a\nb/5 c/1"


def test_a_context_of_ones_own_needs_three_methods(helpers: Any) -> None:
    class Pairs(ReaderContext):
        def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
            self.stream, self.at, self.stop = stream, block.start, block.stop
            stream.seek(block.start)

        def next(self) -> Entity | None:
            if self.at >= self.stop:
                return None
            position, self.at = self.at, self.at + 2
            return Entity(self.stream.read(2), 2, position)

    assert (Pairs.supports_pieces, Pairs.cuts) == (False, "any")
    assert helpers.shown(helpers.read(Pairs(), b"aabbcc", 4)) == "aa/2 bb/2 | cc/2"
    with pytest.raises(NotImplementedError, match=r"Pairs yields one record at a time: call next\(\)"):
        Pairs().next_piece()
    with pytest.raises(TypeError, match="abstract"):
        ReaderContext()  # type: ignore[abstract]


def test_overriding_next_alone_is_never_passed_by(helpers: Any) -> None:
    @attrs.define
    class Upper(ReadAheadLineReaderContext):
        def next(self) -> Entity | None:
            entity = super().next()
            return entity and entity._replace(record=entity.record.upper())

    @attrs.define
    class Firsts(ReadAheadLineReaderContext):
        def next_piece(self) -> Any:
            piece = super().next_piece()
            return piece and piece.head(1)

    assert (ReadAheadLineReaderContext.supports_pieces, Upper.supports_pieces, Firsts.supports_pieces) == (True, False, True)
    assert helpers.shown(helpers.read(Upper(), b"a\nb\n")) == "A/2 B/2"
    assert helpers.shown(helpers.read(Firsts(), b"a\nb\n")) == "a/2"


def test_which_contexts_depend_on_the_cuts() -> None:
    assert (ReadAheadLineReaderContext.cuts, LineReaderContext.cuts) == ("any", "fixed")


def test_importing_contexts_loads_neither_numpy_nor_arrow() -> None:
    program = "import sys, operators.contexts; print({'numpy', 'pyarrow'} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert answer.stdout == "set()\n"


MESSAGES = {
    RecordTooLong(path="a.log", position=10, limit=64): """\
a.log: the record that starts at byte 10 is longer than max_record_bytes = 64.
Either its records have another terminator (`terminators` of the reader context), or the file does not consist of lines,
or records may be longer: -D operator.READER.reader_context.max_record_bytes=256""",
    FileShortened(path="a.log", expected=100, found=45): """\
a.log: the file has 45 bytes, but had 100 when its blocks were planned.
It was shortened or replaced since. Files must not change while they are read: write a new file and rename it.""",
    BadText(path="a.log", position=10, byte_offset=15, encoding="utf-8", reason="invalid start byte", found=b"\xfc"): """\
a.log: byte 15 (fc), in the record that starts at byte 10, is not utf-8: invalid start byte.
Name the real encoding (-D operator.READER.encoding=cp1252, say), or let bad bytes be replaced by U+FFFD \
(-D operator.READER.encoding_errors=replace).""",
    PartialRecord(path="a.dat", position=96, expected=8, found=3): """\
a.dat: the last record, at byte 96, has 3 bytes instead of 8.
The file is incomplete, or `length` is wrong. To accept the short record:
-D operator.READER.reader_context.partial=emit (emit it), or drop (leave it out)""",
}


@pytest.mark.parametrize(("error", "message"), MESSAGES.items())
def test_messages(error: Any, message: str) -> None:
    assert str(error) == message
    assert error.exit_code == 1
    assert str(pickle.loads(pickle.dumps(error))) == message


def test_each_cause_has_a_code() -> None:
    assert [error.code for error in MESSAGES] == ["DF310", "DF311", "DF312", "DF313"]
