"""Rows in order and odd rows go different ways: with the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.scan.schema.cast import converted
from operators.contexts.piece import Piece
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.lexer import Lexer
from operators.formats.delimited.rows import RowParser
from operators.formats.delimited.text import BadRecord, PieceText
from tests.tiers import examples

TYPES = {
    "i": pa.int64(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "s": pa.string(),
    "z": pa.timestamp("ms", "UTC"),
    "m": pa.decimal128(10, 2),
}
VALUES = {
    "i": ["1", "-7", " 2", "0x1f", ""],
    "f": ["1.5", "-2e3", "nan", "3 ", ""],
    "b": ["true", "no", "0", ""],
    "d": ["2026-11-20", ""],
    "t": ["2026-11-20 10:00:00.5", "2026-11-20", ""],
    "s": ["x", '"a,""b""\n"', '""', "NaN", " y "],
    "z": ["2026-11-20T10:00:00+01:00", ""],
    "m": ["1.25", "-3", ""],
}


def piece_of(text: str) -> Piece:
    data = text.encode()
    ends = Lexer(Dialect()).find(data, 0, len(data)).ends
    return Piece.of_slices(data, np.concatenate([[0], ends]), position=100)


def parser(bad: list[BadRecord], **options: Any) -> RowParser:
    return RowParser(PieceText(Dialect(), lambda piece, record: bad.append(record)), list(TYPES), TYPES, **options)


def row(draw: st.DrawFn) -> str:
    return ",".join(draw(st.sampled_from(VALUES[name])) for name in TYPES)


@settings(max_examples=examples(100))
@given(st.data())
def test_rows_in_order_are_the_same_when_they_go_the_way_of_odd_ones(data: st.DataObject) -> None:
    draw: Any = data.draw
    rows = [row(draw) for _ in range(draw(st.integers(1, 5)))]
    piece = piece_of("".join(f"{each}\n" + "\n" * draw(st.integers(0, 1)) for each in rows))
    bad: list[BadRecord] = []
    fast, odd = parser(bad).rows(piece), parser(bad).odd_rows(piece)
    assert bad == []
    assert (np.arange(len(piece)) if fast.records is None else fast.records).tolist() == odd.records.tolist()  # type: ignore[union-attr]  # of odd rows, it is never None
    assert fast.batch.to_pydict().keys() == odd.batch.to_pydict().keys()
    assert repr(fast.batch.to_pylist()) == repr(odd.batch.to_pylist())


@settings(max_examples=examples(100))
@given(st.data())
def test_what_stands_beside_an_odd_row_stays_as_it_is(data: st.DataObject) -> None:
    """A short row, a long one, a value that does not fit: the rows around them are what they would be alone."""
    draw: Any = data.draw
    rows = [row(draw) for _ in range(3)]
    at = draw(st.integers(0, 2))
    rows[at] = draw(st.sampled_from(["1", rows[at] + ",more,and more", "odd" + rows[at][rows[at].index(",") :]]))
    bad: list[BadRecord] = []
    whole = parser(bad).rows(piece_of("\n".join(rows) + "\n")).batch
    for number in {0, 1, 2} - {at}:
        alone = parser(bad).rows(piece_of(rows[number] + "\n")).batch
        for name in TYPES:
            found, wanted = whole.column(name)[number], alone.column(name)[0]
            value = converted(pa.array([found.as_py()], found.type), TYPES[name])[0][0] if name == "i" else found
            assert repr(value.as_py()) == repr(wanted.as_py()), name
    assert bad == []


def test_a_column_with_a_value_that_does_not_fit_stays_text() -> None:
    text = PieceText(Dialect(), lambda piece, record: None)
    made = RowParser(text, ["a", "n"], {"n": pa.int64()}, nulls=("-", "")).rows(piece_of("x,1\nx, 2 \nx,4.0\nx,x\nx,\nx,-\n"))
    assert made.batch.to_pydict() == {"n": ["1", " 2 ", "4.0", "x", None, None]}


@pytest.mark.parametrize("extra", ["ignore", "bad"])
def test_ragged_rows_are_counted_or_bad(extra: Any) -> None:
    bad: list[BadRecord] = []
    counted: list[str] = []
    made = RowParser(
        PieceText(Dialect(), lambda piece, record: bad.append(record)),
        ["a", "b"],
        {"b": pa.int64()},
        extra_fields=extra,
        missing_fields="null" if extra == "ignore" else "bad",
        count=counted.append,
    ).rows(piece_of("x,1\nx\nx,2,3\n"))
    if extra == "ignore":
        assert made.batch.to_pydict() == {"b": [1, None, 2]}
        assert counted == ["rows_with_missing_fields", "rows_with_extra_fields"]
        assert bad == []
    else:
        assert made.batch.to_pydict() == {"b": [1]}
        assert [(record.number, record.reason) for record in bad] == [
            (1, "has 1 fields instead of 2"),
            (2, "has 3 fields instead of 2"),
        ]
        assert counted == []
