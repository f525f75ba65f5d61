"""Formats of dates and times other than ISO 8601, with the directives of `strptime`: what they may say, and text parsed by them.

Not by `strptime`: that of Arrow takes 31 February for 2 March, does not know %f, and reads past %Z. Here the parts of a text are
put into ISO 8601, which Arrow parses exactly.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import pyarrow as pa

_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september"]
_MONTHS += ["october", "november", "december"]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _names(words: list[str]) -> str:
    return "(?i:" + "|".join([*words, *(word[:3] for word in words)]) + ")"


DIRECTIVES: dict[str, str] = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "1[0-2]|0?[1-9]",
    "b": _names(_MONTHS),
    "d": "3[01]|[12][0-9]|[0 ]?[1-9]",
    "j": "36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0?[1-9][0-9]|0{0,2}[1-9]",
    "a": _names(_DAYS),
    "H": "2[0-3]|[01]?[0-9]",
    "I": "1[0-2]|0?[1-9]",
    "p": "(?i:am|pm)",
    "M": "[0-5]?[0-9]",
    "S": "[0-5]?[0-9]",
    "f": "[0-9]{1,9}",
    "z": "[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?",
}
"""The directives, and the text that each stands for."""
_FULL = {
    **dict.fromkeys("ymdHMS", ("[0-9]{2}", 2)),
    "Y": ("[0-9]{4}", 4),
    "b": ("[A-Za-z]{3}", 3),
    "j": ("[0-9]{3}", 3),
    "a": ("[A-Za-z]{3}", 3),
    "I": ("(?:0[1-9]|1[0-2])", 2),
    "p": ("(?i:am|pm)", 2),
    "f": ("[0-9]{1,9}", 0),
    "z": ("[+-][0-9]{4}", 5),
}
"""The text of directives with all their digits, and its length: also what stands between numbers without a mark between them."""
_SAME = {"B": "b", "h": "b", "A": "a", "e": "d"}
_SHORT = {"F": "%Y-%m-%d", "D": "%m/%d/%y", "T": "%H:%M:%S", "R": "%H:%M", "n": " ", "t": " "}
_TWICE = ("Yy", "mb", "mj", "bj", "dj", "HI")
"""Directives of which a format has one at the most."""
_NEEDS = {"I": "p", "p": "I", "f": "S"}


def format_problem(written: str, kind: pa.DataType) -> str | None:
    """Return the problem of a format for columns of a type; None if there is none.

    >>> import pyarrow as pa
    >>> format_problem("%d.%m.%Y", pa.date32())
    >>> print(format_problem("%H:%M %Z", pa.time32("s")))
    format has %Z, which is not supported: it may have %Y %y %m %b %d %j %a %H %I %p %M %S %f %z, %B %h %A %e %F %D %T %R
    """
    import pyarrow.types as t

    if not (t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind)):
        return f"format is for dates and times, and the type is {kind}"
    parts = _parts(written)
    own = [name for name, is_directive in parts if is_directive]
    for name in own:
        if name not in DIRECTIVES:
            known = " ".join(f"%{each}" for each in DIRECTIVES)
            return f"format has %{name}, which is not supported: it may have {known}, %B %h %A %e %F %D %T %R"
    if twice := next((name for name in own if own.count(name) > 1), None):
        return f"format has %{twice} twice"
    if both := next((pair for pair in _TWICE if set(pair) <= set(own)), None):
        return f"format has %{both[0]} and %{both[1]}, which say the same"
    if alone := next((name for name in own if name in _NEEDS and _NEEDS[name] not in own), None):
        return f"format has %{alone} without %{_NEEDS[alone]}"
    if not own:
        return "format has no directive, such as %Y"
    if "z" in own and not (t.is_timestamp(kind) and kind.tz is not None):
        return f"format has %z: give the column a type with a zone, such as timestamp[us, tz=UTC], in place of {kind}"
    if t.is_time(kind) and (day := next((name for name in own if name in "YymbdjaA"), None)):
        return f"format has %{day}, which a {kind} does not keep: give the column the type of a timestamp"
    return None


def parsed(text: pa.Array, written: str, kind: Any) -> pa.Array:
    """Return text as dates, times or timestamps. Nulls stay; raises ValueError if one is not in the format, or does not exist.

    Timestamps have the zone UTC if the format has %z, and no zone if not. `kind` says their unit.

    >>> import pyarrow as pa
    >>> parsed(pa.array(["29.2.2020 1:05 PM"]), "%d.%m.%Y %I:%M %p", pa.timestamp("s")).to_pylist()
    [datetime.datetime(2020, 2, 29, 13, 5)]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    part = _found(text, _pattern(written))
    if part is None:
        raise ValueError(f"a text is not as {written!r} has it")
    zero = pa.scalar("00")
    year, month, day = _date(part)
    hour, minute, second = _hour(part), part.get("M", zero), part.get("S", zero)
    rest = [".", pc.utf8_rpad(pc.utf8_rtrim(part["f"], "0"), 1, "0")] if "f" in part else []  # zeros that a unit does not have
    rest += [pc.utf8_upper(part["z"])] if "z" in part else []
    iso = pc.binary_join_element_wise(year, "-", month, "-", day, "T", hour, ":", minute, ":", second, *rest, "")
    if iso.null_count > text.null_count or pc.any(pc.starts_with(iso, "0000")).as_py():
        raise ValueError("a month or a year that does not exist")
    stamps = iso.cast(pa.timestamp(getattr(kind, "unit", "us"), "UTC" if "z" in part else None))
    if "a" in part and not _are_days(part["a"], pc.utf8_slice_codeunits(iso, 0, 10).cast(pa.date32())):
        raise ValueError("a day of the week that it is not")
    return stamps


@attrs.frozen
class _Pattern:
    """The regular expression of a format, with a group for each directive; and of texts in full, and where parts lie in them."""

    regex: str
    names: tuple[str, ...]
    full: str
    places: dict[str, tuple[int, int | None]] | None


@functools.lru_cache(maxsize=256)
def _pattern(written: str) -> _Pattern:
    parts = _parts(written)
    regex = full = ""
    places: dict[str, tuple[int, int | None]] | None = {}
    at = 0
    for number, (text, is_directive) in enumerate(parts):
        if not is_directive:
            regex, full, at = regex + _literal(text), full + re.escape(text), at + len(text)
            continue
        of_full, width = _FULL[text]
        is_beside = any(beside for _, beside in (*parts[max(number - 1, 0) : number], *parts[number + 1 : number + 2]))
        regex += f"(?P<{text}>{of_full if is_beside and text in 'ymdHIMSj' else DIRECTIVES[text]})"
        full += of_full
        if places is not None:
            places[text] = (at, at + width if width else None)
            places = places if width or number == len(parts) - 1 else None
        at += width
    return _Pattern(f"^(?:{regex})$", tuple(text for text, is_directive in parts if is_directive), f"^(?:{full})$", places)


def _found(text: Any, pattern: _Pattern) -> dict[str, Any] | None:
    """Return the parts of texts, by directive; None if a text is not in the format. Where all are in full, they are cut out."""
    import pyarrow.compute as pc

    if pattern.places is not None and pc.all(pc.match_substring_regex(text, pattern.full), min_count=0).as_py():
        return {name: pc.utf8_slice_codeunits(text, start, stop) for name, (start, stop) in pattern.places.items()}
    captured = pc.extract_regex(text, pattern.regex)
    if captured.null_count > text.null_count:
        return None
    parts = {name: pc.struct_field(captured, [name]) for name in pattern.names}
    return {name: _padded(part) if name in "mdHIMS" else part for name, part in parts.items()}


def _literal(text: str) -> str:
    return re.sub(r"(?:\\\s|\s)+", r"\\s+", re.escape(text))


def _parts(written: str) -> list[tuple[str, bool]]:
    """Return the directives of a format, short ones written out, and what stands between them."""
    parts: list[tuple[str, bool]] = []
    for literal, directive in re.findall(r"([^%]+)|%(.?)", written, re.DOTALL):
        if literal:
            parts.append((literal, False))
        elif directive in _SHORT:
            parts += _parts(_SHORT[directive])
        elif directive == "%":
            parts.append(("%", False))
        else:
            parts.append((str(_SAME.get(directive, directive)), True))
    return parts


def _padded(values: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_lpad(pc.utf8_ltrim_whitespace(values), 2, "0")


def _number_of(names: Any, words: list[str]) -> Any:
    """Return the numbers of names, from 0, by their first three letters."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.index_in(pc.utf8_slice_codeunits(pc.utf8_lower(names), 0, 3), value_set=pa.array([word[:3] for word in words]))


def _date(part: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return years, months and days, as text. What a format does not have is that of 1900-01-01, as in `strptime`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    year, month = part.get("Y", pa.scalar("1900")), part.get("m", pa.scalar("01"))
    if "y" in part:
        year = pc.binary_join_element_wise(pc.if_else(pc.greater(part["y"], "68"), "19", "20"), part["y"], "")
    if "j" in part:
        new_year = pc.if_else(part["j"].is_valid(), "01-01", pa.scalar(None, pa.string()))
        first = pc.binary_join_element_wise(year, new_year, "-").cast(pa.date32())
        days = pc.add(first.cast(pa.int32()), pc.subtract(part["j"].cast(pa.int32()), pa.scalar(1, pa.int32()))).cast(pa.date32())
        if not pc.all(pc.equal(pc.year(days), pc.year(first)), min_count=0).as_py():
            raise ValueError("a year that does not have so many days")
        text = days.cast(pa.string())
        return year, pc.utf8_slice_codeunits(text, 5, 7), pc.utf8_slice_codeunits(text, 8, 10)
    if "b" in part:
        month = pa.array([f"{number:02}" for number in range(1, 13)]).take(_number_of(part["b"], _MONTHS))
    return year, month, part.get("d", pa.scalar("01"))


def _hour(part: dict[str, Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if "I" not in part:
        return part.get("H", pa.scalar("00"))
    of_half = pc.if_else(pc.equal(part["I"], "12"), 0, part["I"].cast(pa.int64()))
    return _padded(pc.add(of_half, pc.if_else(pc.equal(pc.utf8_lower(part["p"]), "pm"), 12, 0)).cast(pa.string()))


def _are_days(names: Any, days: Any) -> bool:
    """Return whether names are those of the days of the week."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.equal(pc.day_of_week(days), _number_of(names, _DAYS)), min_count=0).as_py())
