"""Hypothesis strategies that tests of several packages draw from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

LINES = ["", ".", "a", ".hidden", "two words", "ß", ".日本", "🙂", "tab\t", "a\rb", " ", "x" * 30]
ENDS = ["\n", "\r\n"]
LAST_ENDS = [*ENDS, "", "\r", "\n\r", "\r\n\r"]


@st.composite
def file_contents(draw: st.DrawFn, *, max_lines: int = 12) -> bytes:
    r"""The bytes of a file of lines in UTF-8: mixed `\n` and `\r\n`, blank lines, with and without an end of the last line.

    The last line may be half an end: `\r`.
    """
    line = st.one_of(st.sampled_from(LINES), st.text(alphabet=".aß日🙂 \t", max_size=6))
    lines = draw(st.lists(st.tuples(line, st.sampled_from(ENDS)), max_size=max_lines))
    last = draw(st.one_of(line, st.sampled_from(["\r", "a\r", "\r\r"]))) if draw(st.booleans()) else ""
    return ("".join(text + end for text, end in lines) + last).encode()


def small_files() -> Iterator[bytes]:
    """Files of up to two lines with every combination of kinds of lines and their ends."""
    kinds = ["", ".", "ab", ".ß", "日本"]
    yield b""
    for line, end in itertools.product(kinds, LAST_ENDS):
        yield (line + end).encode()
    for one, end, two, last in itertools.product(kinds, ENDS, kinds, LAST_ENDS):
        yield (one + end + two + last).encode()


def lines_of(data: bytes) -> list[bytes]:
    r"""The lines of a file as `sed 's/\r$//'` prints them for another tool; a last `\r` alone is none: nothing is left of it."""
    *lines, last = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    return [*lines, last] if last else lines


def kept_lines(data: bytes) -> list[bytes]:
    r"""The lines that `sed 's/\r$//' | grep -v '^\.'` prints of a file."""
    return [line for line in lines_of(data) if not line.startswith(b".")]
