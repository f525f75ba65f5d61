from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest

from dagflow.errors import ProjectionError
from dagflow.scan import Format, ScanSettings, TableSchema, reads_array
from dagflow.scan.schema.projection import ColumnPath, Projection


@pytest.mark.parametrize(
    ("text", "root", "steps"),
    [
        ("a", "a", ()),
        ("a b-c/ü", "a b-c/ü", ()),
        ("`a.b`", "a.b", ()),
        ("`a[0]`.c", "a[0]", ("c",)),
        ("m.x.y", "m", ("x", "y")),
        ("`*`", "*", ()),
        ("l[0][12].z", "l", (0, 12, "z")),
    ],
)
def test_what_a_text_asks_for(text: str, root: str, steps: tuple[Any, ...]) -> None:
    path = ColumnPath.of(text)
    assert (path.root, path.steps) == (root, steps)


@pytest.mark.parametrize("text", ["", ".a", "a.", "a[", "a[x]", "a[-1]", "a]b", "a..b", "`a"])
def test_what_is_no_column(text: str) -> None:
    with pytest.raises(ProjectionError, match="does not name a column"):
        ColumnPath.of(text)


@pytest.mark.parametrize("columns", [["a", "a"], ["*", "*"], ["m.x", "m.x"], ["columns", "columns"]])
def test_nothing_is_asked_for_twice(columns: list[str]) -> None:
    with pytest.raises(ProjectionError, match="asked for twice"):
        Projection.of(columns)


def test_a_column_called_star_is_not_all_columns() -> None:
    assert not Projection.of(["`*`"]).has_star
    assert Projection.of(["`*`", "*"]).has_star


@attrs.define
class Text(Format):
    """A format whose files may have no header."""

    offers_array: ClassVar[bool] = True
    has_header: bool = True

    def make_reader(self) -> Any:
        raise NotImplementedError


NAMED = TableSchema.of("a: string, b: string")


@pytest.mark.parametrize(
    ("columns", "header", "schema", "is_array"),
    [
        (None, True, None, False),
        (None, False, None, True),
        (["*"], False, None, True),
        (["columns"], False, None, True),
        (["columns[2]", "columns[4]"], False, None, True),
        (["columns", "columns[4]", "filename", "dir0"], False, None, True),
        (["columns"], True, None, True),
        (["a"], True, None, False),
        (None, False, NAMED, False),
        (["a"], False, NAMED, False),
        (["filename"], False, None, True),
        (["columns"], True, TableSchema.of("columns: string"), False),
    ],
)
def test_where_rows_are_read_as_the_array(columns: Any, header: bool, schema: Any, is_array: bool) -> None:
    assert reads_array(Text(has_header=header), ScanSettings(columns=columns, schema=schema)) is is_array


@pytest.mark.parametrize(
    ("columns", "header", "reason"),
    [
        (["columns", "a"], False, "does not go with named columns"),
        (["a", "columns[1]"], True, "does not go with named columns"),
        (["columns.x"], False, "a list of texts"),
        (["columns[0].x"], False, "a list of texts"),
        (["columns[70000]"], False, "at most 65536 fields"),
        (["a"], False, "no header"),
    ],
)
def test_rules_of_the_array(columns: list[str], header: bool, reason: str) -> None:
    with pytest.raises(ProjectionError, match=reason):
        reads_array(Text(has_header=header), ScanSettings(columns=tuple(columns)))
