from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagflow.render.style import LEAST, Style, cells, cut, style_for, table

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")), max_size=30)


@given(TEXTS, st.integers(1, 40))
def test_what_is_cut_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=5), st.integers(3 * LEAST + 4, 80))
def test_tables_fit_any_width_that_holds_their_columns(rows: list[tuple[str, str, str]], width: int) -> None:
    assert max(cells(line) for line in table(rows, "lLl", Style(width=width))) <= width


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_without_a_width_nothing_is_cut(rows: list[tuple[str, str]]) -> None:
    lines = table(rows, "lL")
    assert all(left in line and right.rstrip() in line for line, (left, right) in zip(lines, rows, strict=True))


def test_numbers_are_never_cut() -> None:
    lines = table([["an operator with a very long name", "1,234,567,890"]], "lr", Style(width=20))
    assert lines == ["an oper…  1,234,567,890"]


def test_colour_needs_a_terminal_that_wants_it() -> None:
    assert style_for(True, 80, {"TERM": "xterm"}) == Style(80, colour=True)
    assert style_for(False, None, {"TERM": "xterm"}) == Style(None, colour=False)
    assert not style_for(True, 80, {"NO_COLOR": "1"}).colour
    assert style_for(True, 80, {"NO_COLOR": ""}).colour
    assert not style_for(True, 80, {"TERM": "dumb"}).colour
