"""The dialect of delimited text: delimiter, quote, escape, comment, encoding, as characters and as bytes of a file."""

from __future__ import annotations

import codecs
from functools import cached_property

import attrs

from operators.contexts.text import text_codec


@attrs.frozen(slots=False)
class Dialect:
    r"""The separation of fields and records: RFC 4180 by default. The rules are the same for all dialects.

    - A record ends with `\n`, `\r\n` or `\r` outside of quotes. A blank line is not a record.
    - A field is quoted if the quote is its very first character; there, delimiters and line ends are text, a doubled quote is
      one quote. What follows the closing quote up to the delimiter belongs to the field as it stands. Elsewhere a quote is text.
    - `escape` makes the next character text, in quotes or not. It is never the quote itself: that is doubled.
    - `comment`: lines that begin with it, where a record would begin, are skipped; quotes in them mean nothing.
    - `trim`: blanks and tabs around a field are not part of it, also before its opening quote; in quotes they are.

    So Python's csv module reads them, and pyarrow, too. `delimiter` and `comment` may have several characters.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None
    encoding: str = "utf-8"
    trim: bool = False

    def problem(self) -> str | None:
        """Return the problem of the dialect in words, None without any.

        >>> Dialect(delimiter=";", escape=";").problem()
        "delimiter and escape are both ';'"
        """
        try:
            self.delimiter.encode(self.encoding)
        except LookupError:
            return f"encoding {self.encoding!r} is not one that Python knows (utf-8, latin-1, cp1252, utf-16, …)"
        except UnicodeError:
            return f"delimiter {self.delimiter!r} cannot be written in {self.encoding}"
        try:
            (self.comment or "").encode(self.encoding)
        except UnicodeError:
            return f"comment {self.comment!r} cannot be written in {self.encoding}"
        marks = {"delimiter": self.delimiter, "quote": self.quote, "escape": self.escape, "comment": self.comment}
        for name, mark in marks.items():
            if mark is None:
                continue
            if not mark or "\n" in mark or "\r" in mark:
                return f"{name} is {mark!r}: it must have a character, and not a line end"
            if name in ("quote", "escape") and (len(mark) > 1 or not " " < mark < "\x7f"):
                return f"{name} is {mark!r}: it must be one character of ASCII that is not a blank"
        others = [(name, mark) for name, mark in marks.items() if mark is not None]
        for at, (name, mark) in enumerate(others):
            for other, same in others[at + 1 :]:
                if mark == same or (len(same) == 1 and same in mark and other != "comment"):
                    return f"{name} and {other} are both {mark!r}" if mark == same else f"{name} {mark!r} has the {other} in it"
        return None

    @cached_property
    def is_bytewise(self) -> bool:
        """True if its marks can be found among bytes: then files can be cut anywhere. Otherwise each is read as a whole.

        UTF-8, and all encodings in which each byte is one character and the first 128 are ASCII.

        >>> Dialect(encoding="cp1252").is_bytewise, Dialect(encoding="utf-16").is_bytewise
        (True, False)
        """
        return self.is_utf8 or text_codec(self.encoding, by_lines=False) == "single"

    @cached_property
    def is_utf8(self) -> bool:
        """Return True if the bytes are UTF-8."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def bytes_encoding(self) -> str:
        """The encoding of the bytes in which records are looked for: what is not bytewise is made UTF-8 before."""
        return self.encoding if self.is_bytewise and not self.is_utf8 else "utf-8"

    # As bytes

    @cached_property
    def delimiter_bytes(self) -> bytes:
        """The delimiter among bytes."""
        return self.delimiter.encode(self.bytes_encoding)

    @cached_property
    def quote_bytes(self) -> bytes:
        """The quote among bytes; none: b""."""
        return (self.quote or "").encode(self.bytes_encoding)

    @cached_property
    def escape_bytes(self) -> bytes:
        """The escape among bytes; none: b""."""
        return (self.escape or "").encode(self.bytes_encoding)

    @cached_property
    def comment_bytes(self) -> bytes:
        """The bytes that begin a comment; b"" for none."""
        return (self.comment or "").encode(self.bytes_encoding)

    @property
    def blanks(self) -> bytes:
        """The characters that `trim` takes off: blanks and tabs, but not the delimiter."""
        return b" \t".replace(self.delimiter_bytes, b"")

    @cached_property
    def overlaps_itself(self) -> bool:
        """True if an end of the delimiter is its beginning (`||`): it can then be recognised only from the field's start.

        >>> Dialect(delimiter="||").overlaps_itself, Dialect(delimiter="<>").overlaps_itself
        (True, False)
        """
        mark = self.delimiter_bytes
        return any(mark.startswith(mark[at:]) for at in range(1, len(mark)))
