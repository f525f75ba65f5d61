from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from dagflow.errors import DagflowError, error
from dagflow.errors.templates import filled


@pytest.mark.parametrize(
    ("template", "fields", "text"),
    [
        ("{path}: {size:,} bytes of {name!r}, {{so}}", {"path": "a", "size": 1234, "name": "x"}, "a: 1,234 bytes of 'x', {so}"),
        ("{names}", {"names": ("a", "b")}, "a, b"),
        ("{names!r:; }", {"names": ["a", "b"]}, "'a'; 'b'"),
        ("{path:?in {path}|anywhere}", {"path": "a"}, "in a"),
        ("{path:?in {path}|anywhere}", {"path": None}, "anywhere"),
        ("{path:?in {path}}", {"path": ""}, ""),
        ("{window:?window {window}}", {"window": 0}, "window 0"),
        ("{is_last:?the last|{names:?one of {names}|none}}", {"is_last": False, "names": ()}, "none"),
        ("{rows:=1?a row|{rows:,} rows}", {"rows": 1}, "a row"),
        ("{rows:=1?a row|{rows:,} rows}", {"rows": 1000}, "1,000 rows"),
        ("{side:=right?declare {side!r}}", {"side": "right"}, "declare 'right'"),
        ("no {name}.{name:~known}", {"name": "contry", "known": ("country", "city")}, "no contry. Did you mean 'country'?"),
        ("no {name}.{name:~known| Known: {known}.}", {"name": "x", "known": ("country", "city")}, "no x. Known: country, city."),
        ("{operator:-D by={column}}", {"operator": "all logs", "column": "x=1"}, "-D 'operator.all logs.by=x=1'"),
    ],
)
def test_forms(template: str, fields: dict[str, object], text: str) -> None:
    assert filled(template, SimpleNamespace(**fields)) == text


def test_values_are_not_templates() -> None:
    assert filled("{reason:?: {reason}|none}", SimpleNamespace(reason="{a}|b{")) == ": {a}|b{"


@error("DF999", kw_only=True, is_fatal=True)
class TooWarm(DagflowError):
    """A reader is too warm."""

    reader: str
    degrees: int = 50
    template = "{reader} has {degrees} degrees"


def test_a_template_is_the_message() -> None:
    warm = TooWarm(reader="lines")
    assert (warm.code, warm.is_fatal, warm.is_transient) == ("DF999", True, False)
    assert str(warm) == warm.message() == "lines has 50 degrees"
    assert repr(warm) == "TooWarm('lines has 50 degrees')"
    again = pickle.loads(pickle.dumps(warm))
    assert (type(again), again.reader, again.message()) == (TooWarm, "lines", "lines has 50 degrees")


def test_secrets_in_fields_are_masked() -> None:
    assert TooWarm(reader="sftp://ada:pw@host/logs").message() == "sftp://ada:***@host/logs has 50 degrees"
