from __future__ import annotations

import csv
import io
import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import operators.formats.delimited.lexer as module
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.lexer import Lexer
from tests.tiers import examples

DIALECTS = {
    "rfc": (Dialect(), 'ab,"\n\r'),
    "escape": (Dialect(escape="\\"), 'a,"\n\r\\'),
    "several": (Dialect(delimiter="||"), 'a|"\n'),
    "letters": (Dialect(delimiter="ab"), 'ab"\n'),
    "comment": (Dialect(comment="#"), 'a#,"\n\r'),
    "trim": (Dialect(trim=True), 'a ,"\n'),
    "no quote": (Dialect(quote=None), 'a,"\n\r'),
    "all": (Dialect(delimiter="||", escape="\\", comment="#", trim=True), 'a|"\n\\# '),
}


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=examples(300))
@given(data=st.data(), is_inside=st.booleans(), is_last=st.booleans(), near=st.sampled_from([1, 3, 4096]))
def test_both_ways_find_the_same(name: str, data: st.DataObject, is_inside: bool, is_last: bool, near: int) -> None:
    """The vectorised way is right whenever it is taken; what it cannot do goes the slow way by itself."""
    dialect, alphabet = DIALECTS[name]
    text = data.draw(st.text(alphabet, max_size=30)).encode()
    is_inside = is_inside and dialect.quote is not None
    lexer = Lexer(dialect)
    found = lexer.find(text, 0, len(text), is_inside=is_inside, is_last=is_last)
    with pytest.MonkeyPatch.context() as patch:
        slow = lexer._find_slowly(text, 0, len(text), is_inside, is_last)
        patch.setattr(module, "NEAR", near)
        far = lexer._find_slowly(text, 0, len(text), is_inside, is_last)
    assert (far.ends.tolist(), far.opened) == (slow.ends.tolist(), slow.opened)
    assert (found.ends.tolist(), found.opened) == (slow.ends.tolist(), slow.opened)


@settings(max_examples=examples(500))
@given(st.text('ab,"\n\r', max_size=30))
@example('a,b"c\n"d"e"\nf')
@example('"a""\n"",b\n')
@example('"a"\r"b"\r\n')
def test_records_are_those_of_the_csv_module(text: str) -> None:
    found = Lexer(Dialect()).find(text.encode(), 0, len(text))
    bounds = [0, *found.ends.tolist(), len(text)]
    records = [text[start:stop] for start, stop in itertools.pairwise(bounds) if stop > start]
    assert [row for record in records for row in csv.reader(io.StringIO(record, newline=""))] == list(
        csv.reader(io.StringIO(text, newline=""))
    )


def test_the_quote_that_is_left_open_is_named() -> None:
    assert Lexer(Dialect()).find(b'a,"b""c\n', 0, 8).opened == 2
    assert Lexer(Dialect()).find(b'xx"a"", ', 2, 8).opened == 2
    assert Lexer(Dialect()).find(b'a"",b', 0, 5, is_inside=True).opened == -1
    assert Lexer(Dialect()).find(b'"a"\n', 0, 4).opened is None


def test_half_a_line_end_waits_for_the_rest() -> None:
    lexer = Lexer(Dialect())
    assert lexer.find(b"a\r", 0, 2, is_last=False).ends.tolist() == []
    assert lexer.find(b"a\r", 0, 2).ends.tolist() == [2]
    assert lexer.find(b"a\rb\r\nc", 0, 6).ends.tolist() == [2, 5]


def test_boundaries_are_line_ends_that_nothing_escapes() -> None:
    lexer = Lexer(Dialect(escape="\\"))
    assert lexer.first_boundary(b"a\\\nb\nc", 6) == 5
    assert lexer.first_boundary(b"\\\nb\nc", 5) == 4  # what stands before the first byte is not known
    assert lexer.last_boundary(b"a\nb\\\n", 5) == 2
    assert lexer.last_boundary(b"a\nb\\\\\n", 6) == 6
    assert lexer.last_boundary(b"a\nb\r", 4) == 2
