"""The columns of a window, by those of the table and of the window before. Without a server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dagflow.scan import Drift
from operators.database.postgres_types import arrow_type
from operators.sources.errors import SourceColumnsChanged
from operators.sources.postgres.columns import ReadColumn, agreed_columns


def table(**types: str) -> dict[str, ReadColumn]:
    return {name: ReadColumn(name, f'"{name}"', kind, arrow_type(kind), (23, -1)) for name, kind in types.items()}


def agreed(now: dict[str, ReadColumn], before: Any, drift: Drift, specs: Any = None) -> tuple[ReadColumn, ...]:
    known = None if before is None else list(before.values())
    return agreed_columns(now, known, specs, drift, operator="reader", table="public.sales")


def test_the_first_window_takes_the_columns_of_the_table() -> None:
    assert [each.name for each in agreed(table(id="bigint", item="text"), None, Drift())] == ["id", "item"]


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(SourceColumnsChanged, match=r"column 'itme' is not there\n  help: did you mean 'item'\?"):
        agreed(table(item="text"), None, Drift(), ("itme",))


def test_new_columns() -> None:
    before, now = table(id="bigint"), table(vat="integer", id="bigint")
    with pytest.raises(SourceColumnsChanged, match=r"column 'vat' \(integer\) is new\n  help: drift.extra = ignore leaves"):
        agreed(now, before, Drift())
    assert [each.name for each in agreed(now, before, Drift(extra="ignore"))] == ["id"]
    assert [each.name for each in agreed(now, before, Drift(extra="widen"))] == ["id", "vat"]


def test_columns_that_are_gone() -> None:
    before, now = table(id="bigint", vat="numeric(5,2)"), table(id="bigint")
    with pytest.raises(SourceColumnsChanged, match=r"column 'vat' is not there any more\n  help: drift.missing = null"):
        agreed(now, before, Drift(missing="error"))
    vat = agreed(now, before, Drift())[1]
    assert (vat.sql, vat.type) == ("NULL::numeric(5,2)", pa.decimal128(5, 2))


def test_columns_of_other_types() -> None:
    with pytest.raises(SourceColumnsChanged, match=r"column 'n' was integer and is bigint\n  help: drift.changed = widen"):
        agreed(table(n="bigint"), table(n="integer"), Drift())
    widened = Drift(changed="widen")
    assert agreed(table(n="bigint"), table(n="integer"), widened)[0].type == pa.int64()
    narrowed = agreed(table(n="integer"), table(n="bigint"), widened)[0]
    assert (narrowed.sql, narrowed.type) == ('"n"::bigint', pa.int64())
    other = agreed(table(n="date"), table(n="bigint"), widened)[0]
    assert (other.sql, other.type) == ('"n"::text', pa.string())


def test_columns_that_are_asked_for_may_change_between_launches() -> None:
    before, now = table(id="bigint", item="text"), table(at="date", id="bigint")
    assert [each.name for each in agreed(now, before, Drift(), ("at", "id"))] == ["at", "id"]
    with pytest.raises(SourceColumnsChanged, match="column 'vat' is not there"):
        agreed(now, before, Drift(), ("id", "vat"))


def test_a_column_comes_back_from_a_plan() -> None:
    for column in table(a="integer[]", b="timestamp with time zone", c="numeric(9,2)").values():
        assert ReadColumn.of(column.to_plain()) == column
