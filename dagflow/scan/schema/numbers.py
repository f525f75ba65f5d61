"""Numbers as text writes them: decimal points, separators of thousands, and which texts are numbers at all."""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # its functions are made at run time

_WORDS = r"(?i:nan|inf|infinity)"
_TRUTH = "true|True|TRUE|false|False|FALSE"
_LONG = r"^-?[0-9]{16,}"
"""Integer parts that float64 may not tell from their neighbours."""


@attrs.frozen
class NumberText:
    """The spelling of numbers in text.

    Attributes:
        decimal: the character before a fraction.
        thousands: the character between groups of three digits, which a number may have or not; "" for none.
        is_inferred: the type of a column comes from a sample, not from the user. Then a text is a number only if the number can
            be written as this text again: without a plus sign, leading zeros or lost digits, and `-0` is not an integer. Zeros at
            the end of a fraction and the form of an exponent may differ: `1.50` and `1e5` are floats, `1.0` is the integer 1.
            Fractions become the nearest float. `true` and `false` are the only booleans.

    >>> texts, wrong = NumberText(",", ".").plain(pa.array(["1.234,5", "7", "1.5"]), pa.float64())
    >>> texts.to_pylist(), wrong.to_pylist()
    (['1234.5', '7', '1.5'], [False, False, True])
    """

    decimal: str = "."
    thousands: str = ""
    is_inferred: bool = False

    def problem(self) -> str | None:
        """Return the problem of the two characters in words, None without any.

        >>> NumberText(".", ".").problem()
        "decimal and thousands are both '.'"
        """
        for name, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            is_missing = name == "thousands" and not mark
            if not is_missing and (len(mark) != 1 or mark.isalnum() or mark in '+-"\r\n'):
                return (
                    f"{name} is {mark!r}, but must be one character that is not a letter, a digit, a sign, a quote or a line end"
                )
        return f"decimal and thousands are both {self.decimal!r}" if self.decimal == self.thousands else None

    @property
    def is_plain(self) -> bool:
        """Return whether numbers are spelled as parsers take them."""
        return self.decimal == "." and not self.thousands

    def plain(self, texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
        """Return texts with numbers as parsers take them, and which of them are not values of a type (None: none, or unknown).

        Blanks around texts have been removed. Types that are not numbers are not checked, but for inferred booleans.
        """
        pattern = self._pattern(kind)
        if pattern is None:
            return texts, None
        wrong = pc.and_kleene(pc.is_valid(texts), pc.invert(pc.match_substring_regex(texts, pattern)))
        if not self.is_plain and not pa.types.is_boolean(kind):
            result = pc.replace_substring(texts, self.thousands, "") if self.thousands else texts
            texts = pc.if_else(wrong, texts, pc.replace_substring(result, self.decimal, "."))
        if self.is_inferred and pa.types.is_floating(kind):
            wrong = _with_lost_digits(texts, wrong)
        return texts, wrong if pc.any(wrong, min_count=0).as_py() else None

    def inferred_type(self, texts: pa.Array) -> pa.DataType | None:
        """Return int64 or float64 if all texts are such numbers, None otherwise. There are no nulls and no blanks around them.

        >>> inferred = NumberText(is_inferred=True)
        >>> [str(inferred.inferred_type(pa.array(each))) for each in (["1", "-2"], ["1", "2.50"], ["007"], ["+1"], ["-0", "5"])]
        ['int64', 'double', 'None', 'None', 'double']
        """
        for kind in (pa.int64(), pa.float64()):
            plain, wrong = self.plain(texts, kind)
            if wrong is not None or (kind == pa.int64() and pc.any(pc.match_substring(texts, self.decimal)).as_py()):
                continue
            try:
                numbers = pc.cast(plain, kind)
            except pa.ArrowInvalid:
                continue
            return None if is_overflown(numbers, plain) else kind
        return None

    def _pattern(self, kind: pa.DataType) -> str | None:
        """Return the form of the texts that are values of a type; None if all may be."""
        types = pa.types
        if self.is_inferred and types.is_boolean(kind):
            return f"^({_TRUTH})$"
        if (self.is_plain and not self.is_inferred) or not is_number(kind):
            return None
        return _form(self.decimal, self.thousands, self.is_inferred, types.is_integer(kind), types.is_floating(kind))


INFERRED = NumberText(is_inferred=True)


@functools.lru_cache(maxsize=64)
def _form(decimal: str, thousands: str, is_inferred: bool, is_integer: bool, has_words: bool) -> str:
    point, mark = re.escape(decimal), re.escape(thousands)
    sign = "-?" if is_inferred else "[-+]?"
    whole = "0|[1-9][0-9]*" if is_inferred else "[0-9]+"
    if thousands:
        whole += f"|{'[1-9][0-9]{0,2}' if is_inferred else '[0-9]{1,3}'}(?:{mark}[0-9]{{3}})+"
    if is_integer:
        number = f"(?:{whole})(?:{point}0*)?"
        if is_inferred:  # a negative zero is not an integer
            return f"^(?:{number}|-{number.replace('0|', '', 1)})$"
        return f"^{sign}{number}$"
    number = rf"(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?"
    return f"^{sign}(?:{number}{f'|{_WORDS}' if has_words else ''})$"


def _with_lost_digits(texts: pa.Array, wrong: pa.Array) -> pa.Array:
    """Also mark long integers, and integer parts, that a float changes."""
    is_long = pc.and_kleene(pc.is_valid(texts), pc.and_not(pc.match_substring_regex(texts, _LONG), wrong))
    if not pc.any(is_long, min_count=0).as_py():
        return wrong
    marks = wrong.to_pylist()
    for row in pc.indices_nonzero(is_long).to_pylist():
        marks[row] = not _is_kept(texts[row].as_py())
    return pa.array(marks, pa.bool_())


def _is_kept(text: str) -> bool:
    """Return whether a float keeps the digits of a number, exactly or when it is written again.

    >>> _is_kept("12345678901234567"), _is_kept("9007199254740992.0")
    (False, True)
    """
    number, exact = float(text), Decimal(text)
    return exact in (Decimal(number), Decimal(repr(number)))


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_overflown(numbers: pa.Array, text: pa.Array) -> bool:
    """Return whether a number parsed from text is infinite or negative, but its text does not say so.

    Arrow takes hexadecimal digits for the bits of an integer: as an int8, `0xFF` would be -1.

    >>> is_overflown(pa.array([1.0, float("inf")]), pa.array(["1", "1e400"])), is_overflown(pa.array([-1]), pa.array(["-1"]))
    (True, False)
    """
    if pa.types.is_floating(numbers.type):
        is_odd, sign = pc.is_inf(numbers), "inf"
    elif has_negative(numbers):
        is_odd, sign = pc.less(numbers, 0), "-"
    else:
        return False
    return bool(pc.any(is_odd).as_py() and pc.any(pc.and_not(is_odd, pc.match_substring(text, sign, ignore_case=True))).as_py())


def has_negative(numbers: pa.Array) -> bool:
    """Return whether integers have a negative one among them. A comparison of each would load pandas."""
    least = pc.min(numbers).as_py() if pa.types.is_signed_integer(numbers.type) else None
    return least is not None and least < 0
