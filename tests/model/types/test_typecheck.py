from __future__ import annotations

from typing import Any, TypeVar

import pytest

from dagflow import FileBlockMetadata, ReaderRecord
from dagflow.model.types.typecheck import fits, type_check

T = TypeVar("T")


@pytest.mark.parametrize(
    ("value", "tp", "fitting"),
    [
        (1, Any, True),
        (1, object, True),
        (1, T, True),
        (None, None, True),
        (0, None, False),
        (None, str, False),
        (None, str | None, True),
        (1, str | None, False),
        (True, int, True),
        (1, float, True),
        (1.0, int, False),
        ([1, "a"], list[int], False),
        ([1, "a"], list[Any], True),
        ([], list[int], True),
        ({1}, set[int], True),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ({1: 1}, dict[str, int], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        ((1, 2, 3), tuple[int, ...], True),
        (ReaderRecord(1, 2, "a"), ReaderRecord[str], True),
        (ReaderRecord(1, 2, "a"), ReaderRecord[int], False),
        (ReaderRecord(1, 2, "a"), ReaderRecord, True),
        ((1, 2, "a"), ReaderRecord[str], False),
        (FileBlockMetadata(1, "p", 0, 1, 1), FileBlockMetadata, True),
        (FileBlockMetadata, type, True),
    ],
)
def test_values_and_types(value: Any, tp: Any, fitting: bool) -> None:
    assert fits(value, tp) == fitting


def test_nothing_is_checked_where_everything_fits() -> None:
    assert type_check("port", Any) is None
    assert type_check("port", object) is None
    assert type_check("port", int) is not None
