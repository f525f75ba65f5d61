"""From text, or from a value that is typed already, to a value of an annotated type.

Nothing is converted silently: 8.7 is not an integer, `yes` is not a boolean, `abc` is not the list of its letters.
The rules are written down for users in docs/reference/settings.md.
"""

from __future__ import annotations

import collections.abc
import enum
import math
import operator
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs

from dagflow.config.values import hints, units
from dagflow.config.values.hints import NoneType, kind
from dagflow.errors.wording import suggest


@attrs.define(slots=False, eq=False, str=False)
class Mismatch(ValueError):
    """A value does not fit a type. `reason` is empty where `expected` says it all."""

    expected: str
    reason: str = ""

    def __str__(self) -> str:
        return "; ".join(part for part in (self.reason, f"expected {self.expected}") if part)


def from_text(hint: Any, text: str) -> Any:
    """Return a value of type `hint` from text of the command line or the environment. Raises Mismatch.

    >>> from dagflow.config import Bytes
    >>> from_text(list[str], "logs"), from_text(list[int], "[1, 2]"), from_text(Bytes, "64MiB")
    (['logs'], [1, 2], 67108864)
    >>> from_text(list[str], "a,b"), from_text(tuple[int, ...], "1, 2")
    (['a', 'b'], (1, 2))
    """
    parts = hints.members(hint)
    if text == "none" and any(kind(part) is NoneType for part in parts):
        return None
    if len(parts) > 1:
        return _first_fit(hint, _ordered(parts, tables_first=text.lstrip()[:1] in ("[", "{")), lambda part: from_text(part, text))
    what = kind(hint)
    if hints.is_text(hint):
        return _text_value(hint, text)
    if what is Any or hints.is_table(hint) or hints.is_list(hint):
        if text.lstrip()[:1] in ("[", "{"):
            return from_value(hint, toml_value(hint, text))
        if hints.is_list(hint):
            return from_list(hint, _listed(hint, text), from_text)
        if what is Any:
            return text
        raise Mismatch(hints.expected(hint), "" if text else "it is empty")
    return _scalar_from_text(hint, text.strip())


def from_value(hint: Any, value: Any, *, from_code: bool = False) -> Any:
    """Return a value of type `hint` from a typed value of a TOML file or of code. Raises Mismatch.

    Sizes and durations may be words here too. What a TOML file cannot say but the type allows, the word "none" says.

    >>> from dagflow.config import Seconds
    >>> from_value(Seconds, "500ms"), from_value(float, 8), from_value(list[str], "logs"), from_value(int | None, "none")
    (0.5, 8.0, ['logs'], None)
    """
    parts = hints.members(hint)
    if value is None:
        if any(kind(part) in (NoneType, Any) for part in parts):
            return None
        raise Mismatch(hints.expected(hint))
    if len(parts) > 1:
        if value == "none" and type(value) is str and not from_code and any(kind(part) is NoneType for part in parts):
            return None
        same = [part for part in parts if kind(part) is type(value)]
        order = same + [part for part in _ordered(parts, tables_first=not isinstance(value, str)) if part not in same]
        return _first_fit(hint, order, lambda part: from_value(part, value, from_code=from_code))
    what = kind(hint)
    if what is Any:
        return value
    if hints.is_list(hint):
        if isinstance(value, (list, tuple, set, frozenset, range)):
            return from_list(hint, list(value), lambda part, it: from_value(part, it, from_code=from_code))
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, collections.abc.Iterable):
            return from_list(hint, [value], lambda part, it: from_value(part, it, from_code=from_code))
        return value if isinstance(value, what) else _refuse(hint)
    if hints.is_dict(hint):
        if not isinstance(value, Mapping):
            raise Mismatch(hints.expected(hint))
        return {key: _inside(f"`{key}`", hints.element(hint, 1), it, from_code) for key, it in value.items()}
    if hints.is_attrs(hint) and isinstance(value, Mapping) and not isinstance(value, what):
        return attrs_from_table(what, value, from_code)
    return _scalar_from_value(hint, value, from_code)


def toml_value(hint: Any, text: str) -> Any:
    """Parse `text` as a TOML value. Raises Mismatch."""
    import tomllib

    try:
        document = tomllib.loads(f"it = {text.strip()}\n")
    except (ValueError, RecursionError) as error:
        what = "array" if text.lstrip()[0] == "[" else "inline table"
        reason = re.sub(r" \(at .*\)$", "", str(error)) or "it is nested too deeply"
        words = f"what begins with {text.lstrip()[0]} must be a TOML {what}, with text in quotes ({reason})"
        raise Mismatch(hints.expected(hint), words) from None
    if list(document) != ["it"]:
        raise Mismatch(hints.expected(hint), "there is more text after its end")
    return document["it"]


def comma_list(text: str) -> list[str]:
    r"""Return the values of a list that is written with commas. A comma that belongs to a value is written as `\,`.

    >>> comma_list("a, b"), comma_list(r"a\,b"), comma_list("")
    (['a', 'b'], ['a,b'], [''])
    """
    if "," not in text:
        return [text]
    return [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]


def _listed(hint: Any, text: str) -> list[str]:
    """Return the values of a list from text. For delimiters and regular expressions, which may hold commas, that is one value."""
    element = hints.element(hint)
    takes_commas = any(kind(part) in (bytes, re.Pattern) for part in hints.members(element))
    return [text] if takes_commas else comma_list(text)


def from_list(hint: Any, values: list[Any], convert: Callable[[Any, Any], Any]) -> Any:
    """Return a list, tuple or set of converted elements, as `hint` wants it."""
    what, arguments = kind(hint), get_args(hints.unwrap(hint)[0])
    if what is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(values) != len(arguments):
            raise Mismatch(hints.expected(hint), f"it has {len(values)} elements")
        wanted = list(arguments)
    else:
        wanted = [hints.element(hint)] * len(values)
    result = []
    for number, (part, value) in enumerate(zip(wanted, values, strict=True), 1):
        try:
            result.append(convert(part, value))
        except Mismatch as error:
            if len(values) == 1 and not error.reason:
                raise Mismatch(hints.expected(hint)) from None
            raise Mismatch(hints.expected(hint), _nested(f"element {number}", part, value, error)) from None
    if what is tuple:
        return tuple(result)
    if what is frozenset:
        return frozenset(result)
    return set(result) if what in hints.SETS else result


def attrs_from_table(cls: type, table: Mapping[str, Any], from_code: bool = False) -> Any:
    """Return an attrs object from a table, by the names of its constructor's arguments. Raises Mismatch."""
    fields, given = hints.settable(cls), {}
    for key, value in table.items():
        if key not in fields:
            meant = suggest(str(key), fields)
            raise Mismatch(hints.expected(cls), f"there is no `{key}` in it" + (f": did you mean `{meant}`?" if meant else ""))
        given[key] = _inside(f"`{key}`", hints.field_hint(cls, fields[key]), value, from_code)
    missing = [key for key, field in fields.items() if field.default is attrs.NOTHING and key not in given]
    if missing:
        raise Mismatch(hints.expected(cls), f"it lacks {', '.join(f'`{key}`' for key in missing)}")
    try:
        return cls(**given)
    except (ValueError, TypeError) as error:
        raise Mismatch(hints.expected(cls), "its own check refuses it" if holds_secret(cls) else reason_of(error)) from None


def holds_secret(hint: Any) -> bool:
    """Return True if values of this type contain a secret, also in fields of attrs classes."""
    return _holds_secret(hint, ())


def _holds_secret(hint: Any, seen: tuple[type, ...]) -> bool:
    if hints.is_secret(hint):
        return True
    for part in hints.members(hint):
        if hints.is_attrs(part):
            cls = kind(part)
            if cls not in seen and any(_holds_secret(hints.field_hint(cls, a), (*seen, cls)) for a in attrs.fields(cls)):
                return True
        elif kind(part) is not Literal:
            arguments = get_args(hints.unwrap(part)[0])
            if any(_holds_secret(argument, seen) for argument in arguments if not isinstance(argument, list)):
                return True
    return False


def reason_of(error: BaseException) -> str:
    """Return the text of a validator's error, without the further arguments of those of attrs."""
    return str(error.args[0]) if error.args else type(error).__name__


def _nested(where: str, hint: Any, value: Any, error: Mismatch) -> str:
    if error.reason:
        return f"{where}: {error.reason}"
    return f"{where} is {show_plain(value, hint)}, expected {error.expected}"


def show_plain(value: Any, hint: Any = Any) -> str:
    """Return a value as errors show it: quoted text, cut when it is long; `***` when the type holds a secret."""
    if holds_secret(hint):
        return "***"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def _inside(where: str, hint: Any, value: Any, from_code: bool) -> Any:
    try:
        return from_value(hint, value, from_code=from_code)
    except Mismatch as error:
        raise Mismatch(error.expected, _nested(where, hint, value, error)) from None


def _refuse(hint: Any, reason: str = "") -> Any:
    raise Mismatch(hints.expected(hint), reason)


def _ordered(parts: tuple[Any, ...], *, tables_first: bool) -> list[Any]:
    """Return the members of a union in the order to try: those that accept any text last, then lists of one element."""

    def rank(part: Any) -> int:
        if hints.is_table(part) or hints.is_list(part):
            return 0 if tables_first else 4
        if hints.is_text(part) or kind(part) is Any:
            return 3
        return 2 if kind(part) is float else 1

    return sorted((part for part in parts if kind(part) is not NoneType), key=rank)


def _first_fit(hint: Any, parts: list[Any], convert: Callable[[Any], Any]) -> Any:
    reasons = []
    for part in parts:
        try:
            return convert(part)
        except Mismatch as error:
            reasons.append(error.reason)
    raise Mismatch(hints.expected(hint), reasons[0] if len(parts) == 1 else "")


def _text_value(hint: Any, text: str) -> Any:
    what = kind(hint)
    if what is str:
        return text
    if what is bytes:
        return text.encode()
    if what is re.Pattern:
        try:
            return re.compile(text.encode() if get_args(hints.unwrap(hint)[0]) == (bytes,) else text)
        except re.error as error:
            raise Mismatch(hints.expected(hint), f"{error}") from None
    return what(text) if text else _refuse(hint, "it is empty")


def _scalar_from_text(hint: Any, text: str) -> Any:
    what, unit = kind(hint), hints.unit_of(hint)
    if what is bool:
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(hint)
    try:
        if unit is not None:
            return _from_words(unit, what, text)
        if what is int:
            return units.parse_whole(text)
        if what is float:
            return float(text)
    except ValueError as error:
        raise Mismatch(hints.expected(hint), str(error) if unit is not None and text[:1].isdigit() else "") from None
    if what is Literal:
        for option in get_args(hints.unwrap(hint)[0]):
            if text == (str(option).lower() if isinstance(option, bool) or option is None else str(option)):
                return option
        raise Mismatch(hints.expected(hint))
    if isinstance(what, type) and issubclass(what, enum.Enum):
        return _enum_member(hint, what, text)
    if what is NoneType:
        raise Mismatch("none")
    return _from_iso(hint, what, text)


def _from_iso(hint: Any, what: Any, text: str) -> Any:
    import datetime

    if what is datetime.timedelta:
        try:
            return datetime.timedelta(seconds=units.parse_seconds(text))
        except (ValueError, OverflowError) as error:
            raise Mismatch(hints.expected(hint), str(error) if text[:1].isdigit() else "") from None
    if what in (datetime.datetime, datetime.date, datetime.time):
        try:
            return what.fromisoformat(text)
        except ValueError:
            raise Mismatch(hints.expected(hint)) from None
    raise Mismatch(hints.expected(hint))


def _scalar_from_value(hint: Any, value: Any, from_code: bool) -> Any:
    what, unit = kind(hint), hints.unit_of(hint)
    if isinstance(value, str):
        if what is str:
            return value
        if unit is not None or getattr(what, "__name__", "") == "timedelta":
            return _scalar_from_text(hint, value)
        if isinstance(what, type) and issubclass(what, enum.Enum) and not isinstance(value, what):
            return _enum_member(hint, what, value)
        if hints.is_text(hint):
            return _text_value(hint, value)
    if what is Literal:
        for option in get_args(hints.unwrap(hint)[0]):
            if type(option) is type(value) and option == value:
                return option
        raise Mismatch(hints.expected(hint))
    if isinstance(value, bool) or what is bool:
        return value if what is bool and isinstance(value, bool) else _refuse(hint)
    if what is int:
        return _whole(hint, value)
    if what is float:
        if not isinstance(value, float) and not hasattr(value, "__index__"):
            raise Mismatch(hints.expected(hint))
        number = float(value)
        if unit is not None and not math.isfinite(number):
            raise Mismatch(hints.expected(hint), "it is not finite")
        return number
    if what is str and from_code and isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        fits = callable(value) if what is collections.abc.Callable else isinstance(value, what)
    except TypeError:
        fits = from_code  # what cannot be checked at run time (protocols) is believed of code only
    return value if fits or (isinstance(what, hints.Opaque) and from_code) else _refuse(hint)


def _whole(hint: Any, value: Any) -> int:
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise Mismatch(hints.expected(hint))
    return operator.index(value)


def seconds_of(value: Any) -> Any:
    """Return a duration that may be written in words, as a converter of properties.

    >>> seconds_of("5min"), seconds_of(0.5)
    (300.0, 0.5)
    """
    return _of_words(units.Seconds, value)


def millis_of(value: Any) -> Any:
    """Return a duration in milliseconds that may be written in words, as a converter of properties.

    >>> millis_of("5s"), millis_of(200)
    (5000, 200)
    """
    return _of_words(units.Millis, value)


def size_of(value: int | str | None) -> Any:
    """Return a size that may be written in words, as a converter of properties.

    >>> size_of("64MiB"), size_of(4096)
    (67108864, 4096)
    """
    return _of_words(units.Bytes, value)


def _of_words(hint: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return from_text(hint, value)
    except Mismatch as error:
        raise ValueError(f"{value!r}: {error}") from None


def _from_words(unit: str, what: Any, text: str) -> Any:
    if unit == "bytes":
        return units.parse_size(text)
    if what is int and unit == "milliseconds":
        return units.parse_millis(text)
    if unit == "seconds" and what is float:
        return units.parse_seconds(text)
    return units.parse_whole(text) if what is int else float(text)  # a unit of the application: plain numbers


def _enum_member(hint: Any, what: type[enum.Enum], text: str) -> enum.Enum:
    if text in what.__members__:
        return what.__members__[text]
    alike = [member for name, member in what.__members__.items() if name.lower() == text.lower()]
    return alike[0] if alike else _refuse(hint)
