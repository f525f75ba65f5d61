"""From text and from typed values to values of an annotated type."""

from __future__ import annotations

import collections.abc
import contextlib
import datetime
import enum
import pathlib
import re
from typing import Annotated, Any, Literal, NewType, TypeVar

import attr
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.config import SECRET, Bytes, MiB, Millis, RunSettings, Seconds, Secret, Unit, from_text, from_value
from dagflow.config.values.conversion import Mismatch, holds_secret, show_plain
from dagflow.config.values.hints import field_hint, settable, type_name


class Colour(enum.Enum):
    RED = 1
    light_blue = 2


@attrs.frozen
class Rule:
    name: str
    least: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    size: Bytes = 0


@attrs.frozen
class Login:
    user: str
    password: Secret = ""


UserName = NewType("UserName", str)


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (str, "abc", "abc"),
        (str, "", ""),
        (str, " a ", " a "),
        (str, "[INFO]", "[INFO]"),
        (str, "{", "{"),
        (UserName, "ann", "ann"),
        (int, "8", 8),
        (int, " 8 ", 8),
        (int, "-8", -8),
        (float, "8", 8.0),
        (float, "1e3", 1000.0),
        (bool, "true", True),
        (bool, "false", False),
        (Bytes, "64MiB", 64 * MiB),
        (Seconds, "500ms", 0.5),
        (Millis, "2s", 2000),
        (Annotated[int, Unit("rows")], "7", 7),
        (datetime.timedelta, "5 min", datetime.timedelta(minutes=5)),
        (datetime.date, "2026-11-20", datetime.date(2026, 11, 20)),
        (Secret, "hunter2", "hunter2"),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (re.Pattern[str], "[a-z]+", re.compile("[a-z]+")),
        (re.Pattern[bytes], "[a-z]+", re.compile(b"[a-z]+")),
        (list[str], "abc", ["abc"]),
        (list[str], '["a", "b"]', ["a", "b"]),
        (list[str], "[]", []),
        (list[str], "a,b", ["a", "b"]),
        (list[str], r"a\,b, c", ["a,b", "c"]),
        (list[str], '["a,b"]', ["a,b"]),
        (tuple[str, ...], "a,b", ("a", "b")),
        (list[bytes], ",", [b","]),
        (list[re.Pattern], "a{1,2}", [re.compile("a{1,2}")]),
        (str | list[str], "a,b", "a,b"),
        (list[int], "8", [8]),
        (list[Bytes], '["1KiB", 2]', [1024, 2]),
        (list[Seconds], "2s", [2.0]),
        (list[list[int]], "[[1], [2, 3]]", [[1], [2, 3]]),
        (collections.abc.Sequence[str], "abc", ["abc"]),
        (tuple[int, ...], "[1, 2]", (1, 2)),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (tuple[bytes, ...], '["\\n", "é"]', (b"\n", "é".encode())),
        (set[str], '["a", "a"]', {"a"}),
        (frozenset[int], "3", frozenset({3})),
        (dict[str, int], "{a = 1}", {"a": 1}),
        (dict[str, list[str]], '{a = "x", b = ["y"]}', {"a": ["x"], "b": ["y"]}),
        (int | None, "none", None),
        (int | None, "8", 8),
        (str | None, "none", None),
        (str | None, "", ""),
        (int | str, "8", 8),
        (str | int, "8", 8),
        (float | int, "8", 8),
        (float | int, "8.5", 8.5),
        (str | int, "x", "x"),
        (str | list[str], "a", "a"),
        (str | list[str], '["a"]', ["a"]),
        (str | list[str], "[a-z]", "[a-z]"),
        (list[str] | None, "none", None),
        (Literal["a", "b"], "b", "b"),
        (Literal["auto", 1, True], "1", 1),
        (Literal["auto", 1, True], "true", True),
        (Literal["fail", "skip"] | None, "none", None),
        (Colour, "red", Colour.RED),
        (Colour, "LIGHT_BLUE", Colour.light_blue),
        (Rule, '{name = "x", size = "1KiB"}', Rule("x", size=1024)),
        (list[Rule], '[{name = "x"}, {name = "y", least = 2}]', [Rule("x"), Rule("y", 2)]),
        (Any, "8", "8"),
        (Any, "[8]", [8]),
        (object, "x", "x"),
    ],
)
def test_text(hint: Any, text: str, value: Any) -> None:
    result = from_text(hint, text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("hint", "text", "message"),
    [
        (int, "8.7", "expected an integer, such as 8"),
        (int, "8.0", "expected an integer, such as 8"),
        (int, "", "expected an integer, such as 8"),
        (int, "9" * 5000, "expected an integer, such as 8"),
        (float, "fast", "expected a number, such as 0.5"),
        (bool, "True", "expected true or false"),
        (bool, "yes", "expected true or false"),
        (bool, "1", "expected true or false"),
        (int | None, "nil", "expected an integer, such as 8, or none"),
        (int | bool, "x", "expected an integer, such as 8, or true or false"),
        (Bytes, "lots", "expected a size in bytes, such as 4096, 64MiB or 1GB"),
        (
            Bytes | None,
            "1G",
            ("`G` is not a unit: write GB (a power of 1000) or GiB (a power of 1024); "
            "expected a size in bytes, such as 4096, 64MiB or 1GB, or none"),
        ),
        (Seconds, "5M", ("`M` is not a unit of time; "
         "expected a duration, such as 500ms, 2s or 5min (a bare number is in seconds)")),
        (Millis, "0.5", ("it is not a number with a unit; "
         "expected a duration, such as 500ms, 2s or 5min (a bare integer is in milliseconds)")),
        (list[int], '[1, "x"]', ("element 2 is 'x', expected an integer, such as 8; "
         "expected a list, each element an integer, such as 8")),
        (list[int], "abc", "expected a list, each element an integer, such as 8"),
        (list[str], "[1]", "expected a list, each element text"),
        (
            list[str],
            "[a-z]*",
            "what begins with [ must be a TOML array, with text in quotes (Invalid value); expected a list, each element text",
        ),
        (list[str], '["a"] # c\nx = 1', "there is more text after its end; expected a list, each element text"),
        (tuple[int, int], "[1]", "it has 1 elements; expected a list of 2: an integer, such as 8, an integer, such as 8"),
        (dict[str, int], "x", "expected a table, each value an integer, such as 8"),
        (dict[str, int], "{a = 1.5}", "`a` is 1.5, expected an integer, such as 8; expected an integer, such as 8"),
        (Literal["a", "b"], "c", "expected one of a, b"),
        (Colour, "green", "expected one of RED, light_blue"),
        (re.Pattern[str], "(", "missing ), unterminated subpattern at position 0; expected a regular expression"),
        (pathlib.Path, "", "it is empty; expected a path"),
        (datetime.date, "today", "expected a date as in ISO 8601"),
        (Rule, "x", "expected a table with name, least, size"),
        (Rule, "{nam = 1}", "there is no `nam` in it: did you mean `name`?; expected a table with name, least, size"),
        (Rule, "{least = 2}", "it lacks `name`; expected a table with name, least, size"),
        (Rule, '{name = "x", least = 0}', "'least' must be >= 1: 0; expected a table with name, least, size"),
        (collections.abc.Callable[[int], str], "len", "expected a value of type Callable[[int], str], which only code can give"),
    ],
)  # fmt: skip
def test_text_that_does_not_fit(hint: Any, text: str, message: str) -> None:
    with pytest.raises(Mismatch) as caught:
        from_text(hint, text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("hint", "given_value", "value"),
    [
        (float, 8, 8.0),
        (Bytes, 4096, 4096),
        (Bytes, "4KiB", 4096),
        (Seconds, 2, 2.0),
        (Seconds, "2s", 2.0),
        (Seconds | None, "none", None),
        (Seconds | None, "2s", 2.0),
        (list[str], "a", ["a"]),
        (list[int], 1, [1]),
        (tuple[str, ...], ["a"], ("a",)),
        (pathlib.Path, "a", pathlib.Path("a")),
        (datetime.date, datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        (Colour, "Red", Colour.RED),
        (Any, {"a": 1}, {"a": 1}),
        (str | list[str], ["a"], ["a"]),
        (str | list[str], "a", "a"),
        (float | int, 8, 8),
    ],
)
def test_values_of_toml(hint: Any, given_value: Any, value: Any) -> None:
    result = from_value(hint, given_value)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "8"),
        (int, 8.0),
        (int, True),
        (float, True),
        (float, "0.5"),
        (float, None),
        (bool, 1),
        (bool, "true"),
        (str, 8),
        (str, ["a"]),
        (Bytes, 1.5),
        (Seconds, float("inf")),
        (list[int], ["8"]),
        (dict[str, int], [1]),
        (Literal[1], True),
        (Literal["a"], 1),
        (Colour, 1),
        (pathlib.Path, 1),
        (Rule, 3),
    ],
)
def test_values_of_toml_are_never_bent(hint: Any, value: Any) -> None:
    with pytest.raises(Mismatch):
        from_value(hint, value)


def test_code_may_give_what_text_cannot() -> None:
    assert from_value(collections.abc.Callable[[int], str], str, from_code=True) is str
    assert from_value(str, pathlib.Path("a/b"), from_code=True) == "a/b"
    assert from_value(str | None, "none", from_code=True) == "none"
    rule = Rule("x")
    assert from_value(Rule | None, rule, from_code=True) is rule
    assert from_value(list[str], ("a", "b"), from_code=True) == ["a", "b"]


SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False)),
    (str, st.text()),
    (list[str], st.lists(st.text())),
    (int | None, st.none() | st.integers()),
    (dict[str, int], st.dictionaries(st.text(), st.integers())),
]


@given(st.sampled_from(SIMPLE).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
def test_a_value_of_the_type_stays_as_it_is(pair: tuple[Any, Any]) -> None:
    hint, value = pair
    result = from_value(hint, value)
    assert result == value
    assert type(result) is type(value)


@given(
    st.sampled_from(
        [int, float, bool, Bytes, Seconds, Millis, Literal["a"], Colour, list[int], int | None, dict[str, int], Rule]
    ),
    st.text(),
)
def test_any_text_gives_a_value_or_a_mismatch(hint: Any, text: str) -> None:
    with contextlib.suppress(Mismatch):
        from_text(hint, text)


def test_secrets_are_found_wherever_they_are() -> None:
    for hint in (Secret, Secret | None, list[Secret], dict[str, Secret], Login, list[Login] | None, Annotated[str, SECRET]):
        assert holds_secret(hint), hint
        assert show_plain({"password": "hunter2"}, hint) == "***"
    for hint in (str, list[str], Rule, Literal["a"], Any):
        assert not holds_secret(hint), hint


def test_long_values_are_cut_in_errors() -> None:
    assert show_plain("x" * 1000) == "'" + "x" * 59 + "… (1002 characters)"


def test_names_that_only_type_checkers_know() -> None:
    @attrs.define
    class Mine:
        schema: pa.Schema | None = None  # type: ignore[name-defined]  # noqa: F821
        either: str | pa.Schema = ""  # type: ignore[name-defined]  # noqa: F821
        inside: list[pa.Table[int]] = attrs.field(factory=list)  # type: ignore[name-defined]  # noqa: F821
        quoted: list["Later"] = attrs.field(factory=list)  # type: ignore[name-defined]  # noqa: F821, UP037
        broken: "not an annotation" = None  # type: ignore[valid-type]  # noqa: F722

    named = {name: field_hint(Mine, field) for name, field in settable(Mine).items()}
    assert [type_name(hint) for hint in named.values()] == [
        "pa.Schema | None",
        "str | pa.Schema",
        "list[pa.Table]",
        "list[Later]",
        "not an annotation",
    ]
    assert from_text(named["either"], "x") == "x"
    thing = object()
    assert from_value(named["schema"], thing, from_code=True) is thing
    with pytest.raises(Mismatch, match=r"a value of type pa\.Schema, which only code can give, or none"):
        from_text(named["schema"], "x")
    with pytest.raises(Mismatch):
        from_value(named["schema"], thing)


def test_fields_without_annotations_go_by_their_defaults() -> None:
    @attr.s
    class Old:
        count = attr.ib(default=3)
        what = attr.ib(default=None)

    fields = settable(Old)
    assert [field_hint(Old, fields[name]) for name in ("count", "what")] == [int, Any]


def test_annotations_mean_what_they_mean_where_they_stand() -> None:
    hint = field_hint(RunSettings, settable(RunSettings)["window"])  # another module's annotation
    assert type_name(hint) == "Seconds | None"


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        (Bytes, "Bytes"),
        (Annotated[int, Unit("rows")], "int (rows)"),
        (list[Secret] | None, "list[Secret] | None"),
        (dict[str, tuple[int, ...]], "dict[str, tuple[int, ...]]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (collections.abc.Callable[[int, str], bool], "Callable[[int, str], bool]"),
        (UserName, "str"),
        (TypeVar("T"), "T"),
        (Any, "Any"),
        (Rule, "Rule"),
        (None, "None"),
    ],
)
def test_names_of_types(hint: Any, name: str) -> None:
    assert type_name(hint) == name
