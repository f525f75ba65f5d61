"""What tests of several rooms draw from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

LINES = ["", ".", "a", ".hidden", "two words", "ß", ".日本", "🙂", "tab\t", "a\rb", " ", "x" * 30]
ENDS = ["\n", "\r\n"]
LAST_ENDS = [*ENDS, ""]


@st.composite
def file_contents(draw: st.DrawFn, *, max_lines: int = 12) -> bytes:
    r"""The bytes of a file of lines in UTF-8: mixed `\n` and `\r\n`, blank lines, with and without an end of the last line."""
    line = st.one_of(st.sampled_from(LINES), st.text(alphabet=".aß日🙂 \t", max_size=6))
    lines = draw(st.lists(st.tuples(line, st.sampled_from(ENDS)), max_size=max_lines))
    last = draw(line.filter(lambda text: text != "")) if draw(st.booleans()) else ""
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
    r"""The lines of a file as `sed 's/\r$//'` prints them."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def kept_lines(data: bytes) -> list[bytes]:
    r"""What `sed 's/\r$//' | grep -v '^\.'` prints of a file, line by line."""
    return [line for line in lines_of(data) if not line.startswith(b".")]
