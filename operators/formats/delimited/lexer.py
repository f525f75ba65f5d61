"""The ends of records: vectorised where quotes follow RFC 4180, mark by mark elsewhere."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from operators.contexts.search import places
from operators.formats.delimited.dialect import Dialect

LF, CR = 10, 13
TAIL = 4096
NEAR = 4096
"""So many bytes are searched by a pattern for all marks, which is faster where they are near, and far slower where not."""
Numbers = NDArray[np.int64]
NONE: Numbers = np.zeros(0, np.int64)


class LexerResult(NamedTuple):
    """The marks found in some bytes.

    `ends`: the offset after each record, blank lines and comments included (int64); `opened`: the offset of
    the quote that is open after the last byte (-1: it was open before the first), None for none.
    """

    ends: Numbers
    opened: int | None


@attrs.frozen(slots=False)
class Lexer:
    r"""Finds the ends of records in bytes that begin where a record begins, or within quotes.

    >>> lexer = Lexer(Dialect())
    >>> lexer.find(b'a,"b\nc"\nd,"', 0, 11)
    LexerResult(ends=array([8]), opened=10)
    >>> lexer.find(b'b\nc"\nd,e\n', 0, 9, is_inside=True)
    LexerResult(ends=array([5, 9]), opened=None)
    """

    dialect: Dialect

    def find(self, data: bytes, begin: int, end: int, *, is_inside: bool = False, is_last: bool = True) -> LexerResult:
        r"""Return the ends of records in `data[begin:end]`.

        `is_inside`: quotes are open at `begin`. `is_last`: the file ends at `end`; otherwise a `\r` there may be half a line end.
        """
        dialect = self.dialect
        quote, escape, comment = dialect.quote_bytes, dialect.escape_bytes, dialect.comment_bytes
        if comment and not is_inside and data.startswith(comment, begin, end):
            return self._find_slowly(data, begin, end, is_inside, is_last)
        if comment and (data.find(b"\n" + comment, begin, end) >= 0 or data.find(b"\r" + comment, begin, end) >= 0):
            return self._find_slowly(data, begin, end, is_inside, is_last)
        octets = np.frombuffer(data, np.uint8, end - begin, begin)
        is_line = _line_ends(data, octets, begin, end, is_last)
        escaped = _escaped(octets, escape[0]) if escape and data.find(escape, begin, end) >= 0 else NONE
        is_line[escaped] = False
        if not quote or data.find(quote, begin, end) < 0:
            return LexerResult(NONE, -1) if is_inside else LexerResult(places(is_line) + (begin + 1), None)
        is_quote = octets == quote[0]
        is_quote[escaped] = False
        marks = np.flatnonzero(is_line | is_quote)  # one search for both takes little longer than one for either
        is_quote = is_quote[marks]
        quotes, lines = marks[is_quote], marks[~is_quote]
        wrong = self._first_misplaced(octets, quotes, escaped, is_inside)
        if wrong is not None:
            return self._find_from(data, begin, end, lines, quotes, wrong, is_inside, is_last)
        is_outside = (np.cumsum(is_quote)[~is_quote] + is_inside) % 2 == 0
        opened = _opening(quotes, is_inside) if (len(quotes) + is_inside) % 2 else None
        if opened is not None and opened >= 0:
            opened += begin
        return LexerResult(lines[is_outside] + (begin + 1), opened)

    def _first_misplaced(self, octets: NDArray[np.uint8], quotes: Numbers, escaped: Numbers, is_inside: bool) -> int | None:
        """Return the number of the first opening quote (every other quote is one) where no field begins; None without one."""
        openers = quotes[int(is_inside) :: 2]
        delimiter = self.dialect.delimiter_bytes
        if not len(openers):
            return None
        if self.dialect.overlaps_itself:
            return int(is_inside)
        before = openers - 1
        previous = octets[before]  # of a quote at 0: the last byte, which is looked at below
        is_right = (previous == LF) | (previous == CR)
        is_field = previous == delimiter[-1]
        for back in range(1, len(delimiter)):
            is_field &= (before >= back) & (octets[np.maximum(before - back, 0)] == delimiter[-1 - back])
        is_right |= is_field
        if escaped.size:
            is_right &= ~np.isin(before, escaped)
        closers = quotes[1 - is_inside :: 2]
        if is_inside:  # every opener has a closer before it
            is_right |= closers[: len(openers)] == before
        else:
            is_right[1:] |= closers[: len(openers) - 1] == before[1:]
            is_right[0] |= openers[0] == 0
        wrong = np.flatnonzero(~is_right)
        return int(wrong[0]) * 2 + is_inside if wrong.size else None

    def _find_from(
        self, data: bytes, begin: int, end: int, lines: Numbers, quotes: Numbers, wrong: int, is_inside: bool, is_last: bool
    ) -> LexerResult:
        """Find the ends where quote number `wrong` is misplaced, slowly from the record on in which it stands."""
        before = lines[: int(np.searchsorted(lines, quotes[wrong]))]
        fine = before[(np.searchsorted(quotes, before) + is_inside) % 2 == 0] + (begin + 1)
        if not fine.size:
            return self._find_slowly(data, begin, end, is_inside, is_last)
        rest = self._find_slowly(data, int(fine[-1]), end, False, is_last)
        return LexerResult(np.concatenate([fine, rest.ends]), rest.opened)

    # One after the other

    def _find_slowly(self, data: bytes, at: int, end: int, is_inside: bool, is_last: bool) -> LexerResult:
        quote, comment, patterns = self.dialect.quote_bytes, self.dialect.comment_bytes, self._patterns
        search, far = patterns.outside.search, _Marks.of(self.dialect, data, end)
        near = end if far is None else min(end, at + NEAR)
        ends: list[int] = []
        opened: int | None = -1 if is_inside else None
        is_start = not is_inside
        while at < end or opened is not None:
            if opened is not None:
                closing = patterns.quoted.match(data, at, end)
                if closing is None:
                    break
                at, opened = closing.end(), None
                continue
            if is_start:
                is_start = False
                if comment and data.startswith(comment, at, end):
                    match = patterns.line_end.search(data, at, end)
                    if match is None or (match.end() == end and data[end - 1] == CR and not is_last):
                        break
                    at, is_start = match.end(), True
                    ends.append(at)
                    continue
                first = patterns.blanks.match(data, at, end).end() if self.dialect.trim else at  # type: ignore[union-attr]  # it matches nothing, too
                if quote and data.startswith(quote, first, end):
                    at, opened = first + 1, first
                    continue
            match = search(data, at, near)
            if match is not None and (near == end or match.end() < near):
                at, kind = match.end(), match.lastgroup
            elif near < min(end, at + NEAR):
                near = min(end, at + NEAR)
                continue
            elif near < end and far is not None and (mark := far.next(at)) is not None:
                at, kind = mark
            else:
                break
            if kind == "line":
                if at == end and data[at - 1] == CR and not is_last:
                    break
                ends.append(at)
                is_start = True
            elif kind == "field":
                opened = at - 1
        return LexerResult(np.array(ends, np.int64), opened)

    @cached_property
    def _patterns(self) -> _Patterns:
        return _Patterns.of(self.dialect)

    # Places where only two states are possible

    def first_boundary(self, data: bytes, end: int) -> int | None:
        r"""Return the offset after the first unescaped line end in `data[:end]`: a record begins there, or quotes are open.

        What stands before `data` is not known. A `\r` at the very end may be half a line end and is none.
        """
        at = 0
        while True:
            line_end = self._patterns.line_end.search(data, at, end)
            if line_end is None or (line_end.end() == end and data[end - 1] == CR):
                return None
            escapes = self._escapes_before(data, line_end.start())
            if escapes % 2 == 0 and (escapes < line_end.start() or not self.dialect.escape):
                return line_end.end()
            at = line_end.end()

    def last_boundary(self, data: bytes, end: int) -> int | None:
        """Return the same offset for the last line end, in data that begin at such a place."""
        stop = end
        while (at := max(data.rfind(b"\n", 0, stop), data.rfind(b"\r", 0, stop))) >= 0:
            is_half = data[at] == CR and (at + 1 == len(data) or data[at + 1] == LF)
            if not is_half and self._escapes_before(data, at) % 2 == 0:
                return at + 1
            stop = at
        return None

    def undecided(self, data: bytes) -> int:
        r"""Return the offset from which bytes matter for those that follow: escapes and a `\r` at the end, and one before."""
        return max(0, len(data.rstrip(b"\r" + self.dialect.escape_bytes)) - 1)

    def surely_inside(self, data: bytes, begin: int, end: int) -> int:
        """Return the last place in `data[begin:end]` at which quotes are certainly open; they are open at both ends.

        A quote or an escape at the end may belong to what follows.
        """
        tail = data[max(begin, end - TAIL) : end].rstrip(self.dialect.quote_bytes + self.dialect.escape_bytes)
        return max(begin, end - TAIL) + len(tail) if tail else begin

    def _escapes_before(self, data: bytes, at: int) -> int:
        escape = self.dialect.escape_bytes
        first = at
        while escape and first > 0 and data[first - 1] == escape[0]:
            first -= 1
        return at - first


class _Marks:
    """Finds line ends and quotes that open a field, each from its last place on. `field`: a delimiter and a quote."""

    def __init__(self, data: bytes, end: int, field: bytes) -> None:
        self._data, self._end, self._field = data, end, field
        self._line = self._return = -1
        self._opener = -1 if field else end

    @classmethod
    def of(cls, dialect: Dialect, data: bytes, end: int) -> _Marks | None:
        """Return the marks of a dialect in `data[:end]`; None if only a pattern finds them."""
        if dialect.escape or dialect.trim or dialect.overlaps_itself:
            return None
        return cls(data, end, dialect.delimiter_bytes + dialect.quote_bytes if dialect.quote else b"")

    def next(self, at: int) -> tuple[int, str] | None:
        """Return the end of the first mark from `at` on, and its kind."""
        data, end = self._data, self._end
        if self._line < at:
            self._line = _found(data, b"\n", at, end)
        if self._return < at:
            self._return = _found(data, b"\r", at, end)
        if self._opener < at:
            self._opener = _found(data, self._field, at, end)
        first = min(self._line, self._return, self._opener)
        if first >= end:
            return None
        if first == self._opener:
            return first + len(self._field), "field"
        return first + (2 if first == self._return and self._line == first + 1 < end else 1), "line"


def _found(data: bytes, mark: bytes, begin: int, end: int) -> int:
    """Return the first position of a mark; the end without any."""
    at = data.find(mark, begin, end)
    return end if at < 0 else at


class _Patterns(NamedTuple):
    line_end: re.Pattern[bytes]
    blanks: re.Pattern[bytes]
    quoted: re.Pattern[bytes]
    outside: re.Pattern[bytes]

    @classmethod
    def of(cls, dialect: Dialect) -> _Patterns:
        quote, escape = re.escape(dialect.quote_bytes), re.escape(dialect.escape_bytes)
        delimiter, blanks = re.escape(dialect.delimiter_bytes), b"[" + dialect.blanks + b"]*+" if dialect.trim else b""
        pair = escape + rb"[\s\S]"
        text = b"[^" + quote + escape + b"]*+"
        inner = quote + quote + (b"|" + pair if escape else b"")
        outside = rb"(?P<line>\r\n?|\n)"
        if escape:
            outside += b"|(?P<pair>" + pair + b")"
        if quote:
            outside += b"|(?P<field>" + delimiter + blanks + quote + b")"
        if dialect.overlaps_itself:
            outside += b"|" + delimiter
        return cls(
            line_end=re.compile(rb"\r\n?|\n"),
            blanks=re.compile(b"[" + dialect.blanks + b"]*+"),
            quoted=re.compile(text + b"(?:(?:" + inner + b")" + text + b")*+" + quote if quote else b"(?!)"),
            outside=re.compile(outside),
        )


def _line_ends(data: bytes, octets: NDArray[np.uint8], begin: int, end: int, is_last: bool) -> NDArray[np.bool_]:
    r"""Return which bytes are `\n`, or `\r` that no `\n` follows."""
    feeds: NDArray[np.bool_] = octets == LF
    if data.find(b"\r", begin, end) < 0:
        return feeds
    returns = octets == CR
    returns[:-1] &= ~feeds[1:]
    if not is_last:
        returns[-1:] = False
    feeds |= returns
    return feeds


def _opening(quotes: Numbers, is_inside: bool) -> int:
    """Return the position of the open quote behind the last one; -1: before the first. Doubled quotes open nothing."""
    last = len(quotes) - 1
    before = quotes[last - 1 :: -2] if last > 0 else NONE
    apart = np.flatnonzero(before != quotes[last::-2][: len(before)] - 1)
    number = last - 2 * int(apart[0] if apart.size else len(before))
    return int(quotes[number]) if number >= int(is_inside) else -1


def _escaped(octets: NDArray[np.uint8], escape: int) -> Numbers:
    """Return the positions of escaped bytes in order: behind every other escape of a run, from its first on."""
    escapes = np.flatnonzero(octets == escape)
    number = np.arange(len(escapes))
    is_first = np.ones(len(escapes), bool)
    is_first[1:] = escapes[1:] - 1 != escapes[:-1]
    in_run = number - np.maximum.accumulate(np.where(is_first, number, 0))
    escaped = escapes[in_run % 2 == 0] + 1
    return np.asarray(escaped[escaped < len(octets)], np.int64)
