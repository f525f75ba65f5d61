from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from dagflow import InputPort, Operator, RenamedProperty
from dagflow.config import apply_operators, read_layers


@attrs.define
class Head(Operator):
    max_rows: int = 10
    limit: int = attrs.field(default=1, kw_only=True)
    most_rows = RenamedProperty("max_rows")

    input = InputPort[str]()

    @input.process
    def each(self, record: str) -> None: ...


@attrs.define
class Wider(Head):
    width: int = attrs.field(default=2, kw_only=True)


def make(cls: Any, **properties: Any) -> Any:
    return cls(**properties)


@pytest.mark.parametrize("cls", [Head, Wider])
def test_the_constructor_takes_the_old_name_and_says_what_to_write(cls: Any) -> None:
    with pytest.warns(FutureWarning, match=f"is now called max_rows: write {cls.__name__}"):
        assert make(cls, most_rows=5).max_rows == 5
    assert cls(6, limit=3).max_rows == 6


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(TypeError, match="most_rows is the old name of max_rows: give max_rows only"):
        make(Head, most_rows=5, max_rows=6)


def test_the_attribute_has_the_old_name_too() -> None:
    head = Head(5)
    with pytest.warns(FutureWarning, match=r"write \.max_rows"):
        assert head.most_rows == 5
    with pytest.warns(FutureWarning, match=r"write \.max_rows = …"):
        head.most_rows = 7
    assert head.max_rows == 7
    assert pickle.loads(pickle.dumps(head)).max_rows == 7


@pytest.mark.parametrize(
    "given",
    [
        {"definitions": ["operator.head.most_rows=5"]},
        {"definitions": ["operator.*.most_rows=5"]},
        {"environment": {"DAGFLOW_OPERATOR__HEAD__MOST_ROWS": "5"}},
    ],
)
def test_settings_have_the_old_name_too(given: dict[str, Any]) -> None:
    head = Head()
    with pytest.warns(FutureWarning, match="now called max_rows: write "):
        apply_operators({"head": head}, read_layers(**given))
    assert head.max_rows == 5
