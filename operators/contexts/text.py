"""Encodings: which of them text may have, and decoding that says where bad bytes are."""

from __future__ import annotations

import codecs
import functools
import importlib
from typing import Literal

from operators.contexts.errors import BadText

Codec = Literal["utf-8", "single", "other"]
MARK = "\ufeff"
"""The byte order mark, which a file of text may begin with."""


@functools.lru_cache(maxsize=64)
def text_codec(encoding: str, by_lines: bool = True) -> Codec:
    """Return how text of an encoding can be decoded: a whole piece at once ("utf-8", "single" byte) or record by record.

    Raises ValueError for a name that Python does not know, and for encodings in which the end of a line is not the
    byte 0A or 0D 0A: cutting such a file at that byte would cut its characters (records that are not lines, so not
    `by_lines`, may have any encoding: EBCDIC, UTF-16).

    >>> text_codec("UTF8"), text_codec("cp1252"), text_codec("shift_jis")
    ('utf-8', 'single', 'other')
    >>> text_codec("utf-16")
    Traceback (most recent call last):
    ...
    ValueError: encoding 'utf-16' cannot be read by lines: its line ends are not the bytes 0A or 0D 0A. Convert the files first \
(iconv -f utf-16 -t utf-8)
    """
    try:
        name = codecs.lookup(encoding).name
        probe = "x\r\n".encode(encoding)
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise ValueError(f"encoding {encoding!r} is not a text encoding that Python knows (utf-8, latin-1, cp1252, …)") from None
    if not by_lines and (name == "utf-8-sig" or probe != b"x\r\n"):
        return "other"
    if name == "utf-8-sig":
        raise ValueError(
            "encoding 'utf-8-sig' cannot be read in blocks: use 'utf-8'; a byte order mark at the start of a file is skipped"
        )
    if probe != b"x\r\n":
        raise ValueError(
            f"encoding {encoding!r} cannot be read by lines: its line ends are not the bytes 0A or 0D 0A. "
            f"Convert the files first (iconv -f {encoding} -t utf-8)"
        )
    if name == "utf-8":
        return "utf-8"
    return "single" if _is_ascii_and_more(name) else "other"


def _is_ascii_and_more(name: str) -> bool:
    """Return True if each byte is one character and the first 128 are ASCII."""
    try:
        table = getattr(importlib.import_module("encodings." + name.replace("-", "_")), "decoding_table", "")
    except ImportError:
        table = ""
    ascii_half = "".join(map(chr, range(128)))
    return name == "ascii" or (len(table) == 256 and table[:128] == ascii_half and not set(table[128:]) & set(ascii_half))


def decode_text(record: bytes, encoding: str = "utf-8", errors: str = "strict", *, path: str = "", position: int = 0) -> str:
    r"""Decode one record to text.

    Raises BadText where `errors` is "strict" and the bytes are not valid in `encoding`; `path` and `position` (of the record in
    its file) are for its message.

    >>> decode_text(b"caf\xe9", "latin-1")
    'café'
    >>> decode_text(b"caf\xe9", path="menu.txt", position=100)
    Traceback (most recent call last):
    ...
    operators.contexts.errors.BadText: menu.txt: byte 103 (e9), in the record that starts at byte 100, is not utf-8:
    unexpected end of data.
    Name the real encoding (-D operator.READER.encoding=cp1252, say), or let bad bytes be replaced by U+FFFD
    (-D operator.READER.encoding_errors=replace).
    """
    try:
        return record.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise BadText(
            path=path,
            position=position,
            byte_offset=position + error.start,
            encoding=encoding,
            reason=error.reason,
            found=record[error.start : error.start + 1],
        ) from None
