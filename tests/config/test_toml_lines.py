"""Which line of a TOML file says what."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dagflow.config.toml_lines import key_lines, line_of

DOCUMENT = r'''# a comment with a = 1 and [brackets]
text = """several
lines = "in one" # no comment
"""
raw = 'a \ b'
quoted."with.dots" = {inner = 1, "other" = [1, {deep = 2}]} # behind
[table . 'two']
date = 1979-05-27 07:32:00
array = [ # not the end: ]
  "]",
  1,
]
[[tables]]
x = 1
[tables.sub]
y = 2
[[tables]]
x = 3
[operator."*"]
on_error='skip'
empty = ""
nothing = ''
quotes = """a"""""
tricky = "\"#\\"
"\u0041" = 3
nested = {a = {b = {c = 1}},
  d = 2} # allowed by TOML 1.1 only'''


def test_every_kind_of_key_and_value() -> None:
    document = DOCUMENT.replace(",\n  d = 2} # allowed by TOML 1.1 only", "}")
    assert tomllib.loads(document)["operator"]["*"]["tricky"] == '"#\\'
    assert key_lines(document) == {
        ("text",): 2,
        ("raw",): 5,
        ("quoted", "with.dots"): 6,
        ("quoted", "with.dots", "inner"): 6,
        ("quoted", "with.dots", "other"): 6,
        ("table", "two"): 7,
        ("table", "two", "date"): 8,
        ("table", "two", "array"): 9,
        ("tables",): 13,
        ("operator", "*"): 19,
        ("operator", "*", "on_error"): 20,
        ("operator", "*", "empty"): 21,
        ("operator", "*", "nothing"): 22,
        ("operator", "*", "quotes"): 23,
        ("operator", "*", "tricky"): 24,
        ("operator", "*", "A"): 25,
        ("operator", "*", "nested"): 26,
        ("operator", "*", "nested", "a"): 26,
        ("operator", "*", "nested", "a", "b"): 26,
        ("operator", "*", "nested", "a", "b", "c"): 26,
    }


def test_tables_over_several_lines_are_ready_for_toml_1_1() -> None:
    assert key_lines(DOCUMENT)["operator", "*", "nested"] == 26
    assert key_lines(DOCUMENT)["operator", "*", "nested", "d"] == 27


def test_what_has_no_line_of_its_own_has_that_of_its_surroundings() -> None:
    lines = key_lines("a = 1\n[b]\nc = [\n{d = 1}]\n")
    assert line_of(lines, ("b", "c", "d")) == 3
    assert line_of(lines, ("b", "x")) == 2
    assert line_of(lines, ("x",)) == 1


def test_an_empty_document() -> None:
    assert key_lines("") == {}
    assert key_lines("# nothing") == {}


names = st.text("abcxyz019_-", min_size=1, max_size=4)
odd_names = st.text("ab.c =#[]{}'é", min_size=1, max_size=6)
keys = st.lists(names | odd_names, min_size=1, max_size=3).map(tuple)
VALUES = [
    "1",
    "true",
    '"a # b = c"',
    "'[x]'",
    '"""x\ny = 1\n"""',
    "[\n 1, # ]\n [2],\n]",
    "{}",
    "{q = 1}",
    "07:32:00",
    "'''\n'''",
]


def written(part: str) -> str:
    return part if part.isascii() and part.replace("-", "a").isidentifier() else '"' + part + '"'


def paths(document: Mapping[str, Any], before: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found = set()
    for key, value in document.items():
        found.add((*before, key))
        if isinstance(value, dict):
            found |= paths(value, (*before, key))
    return found


@given(st.lists(st.tuples(keys, st.sampled_from(VALUES), st.sampled_from(["", "\n", "# x = 1\n", " \t"])), max_size=8), st.data())
def test_lines_of_documents_of_any_make(statements: list[tuple[tuple[str, ...], str, str]], data: st.DataObject) -> None:
    text, expected, table = "", {}, ()
    for path, value, before in statements:
        header = data.draw(st.booleans())
        dotted = ".".join(map(written, path))
        trial = text + before + (f"[{dotted}]\n" if header else f"{dotted} = {value} # end\n")
        try:
            tomllib.loads(trial)
        except tomllib.TOMLDecodeError:
            continue  # the same key twice, or the like
        table, whole = (path, path) if header else (table, (*table, *path))
        expected.setdefault(whole, text.count("\n") + before.count("\n") + 1)
        text = trial
    lines = key_lines(text)
    assert {path: lines[path] for path in expected} == expected
    assert set(lines) <= paths(tomllib.loads(text))
