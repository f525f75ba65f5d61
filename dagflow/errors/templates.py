"""Templates of messages: a text with the fields of an error in it."""

from __future__ import annotations

import string
from operator import attrgetter
from typing import Any

from dagflow.errors.wording import definition, did_you_mean, shown

_FORMATTER = string.Formatter()


def filled(template: str, error: object) -> str:
    """Return a template with the attributes of an error in it, written as `str.format` does.

    What follows a colon may also be one of these, where a text may have fields itself:

    - `{names}`, `{names!r}`, `{names:; }`: the items of a tuple or a list, with `, ` or the given text between them.
    - `{key}`: of bytes, the hexadecimal digits in brackets.
    - `{path:?in {path}}`, `{path:?in {path}|anywhere}`: a text for a field that has a value, another one for None, False and what is
      empty. Zero is a value.
    - `{rows:=1?a row|{rows:,} rows}`, `{side:=right?…}`: a text for a field with this value, another one for all else.
    - `{name:~known}`, `{name:~known|otherwise}`: ` Did you mean 'x'?`, of the names that the field `known` has.
    - `{operator:-D on_error=skip}`: the `-D` that sets a property of the operator that the field names.

    >>> from types import SimpleNamespace
    >>> some = SimpleNamespace(operator="sink", name="contry", known=("country", "city"), rows=2, path=None)
    >>> filled("{name!r} is none of {known!r}.{name:~known}{path:? ({path})}", some)
    "'contry' is none of 'country', 'city'. Did you mean 'country'?"
    >>> filled("{rows:=1?a row|{rows:,} rows} with {operator:-D by={name}}", some)
    '2 rows with -D operator.sink.by=contry'
    """
    return "".join(
        text if name is None else text + _field(error, name, spec or "", conversion)
        for text, name, spec, conversion in _FORMATTER.parse(template)
    )


def _has_value(value: Any) -> bool:
    return bool(value) or (value == 0 and value is not False)


def _field(error: object, name: str, spec: str, conversion: Any) -> str:
    value = attrgetter(name)(error)
    form, _, otherwise = spec.partition("|")
    if spec.startswith("?"):
        return filled(form[1:] if _has_value(value) else otherwise, error)
    if spec.startswith("="):
        expected, _, text = form[1:].partition("?")
        return filled(text if str(value) == expected else otherwise, error)
    if spec.startswith("~"):
        return did_you_mean(value, getattr(error, form[1:]), otherwise=filled(otherwise, error))
    if spec.startswith("-D "):
        key, _, setting = filled(spec[3:], error).partition("=")
        return definition(value, key, setting)
    if isinstance(value, bytes) and not conversion:
        return shown(value)
    if isinstance(value, tuple | list):
        return (spec or ", ").join(str(_FORMATTER.convert_field(each, conversion)) for each in value)
    return format(_FORMATTER.convert_field(value, conversion), spec)
