"""Options of formats, each with values of other types: refused with the option's name, when the format is made."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from dagflow.scan import BatchLimits
from operators import AvroFormat, CsvFormat, FixedWidthFormat, JsonLinesFormat, ParquetFormat, RegexFormat

NEEDED: dict[type, dict[str, Any]] = {
    AvroFormat: {},
    CsvFormat: {},
    FixedWidthFormat: {"columns": {"a": (0, 1)}},
    JsonLinesFormat: {},
    ParquetFormat: {},
    RegexFormat: {"pattern": "(?P<a>.)"},
    BatchLimits: {},
}
OPTIONS = [(kind, field.name) for kind in NEEDED for field in attrs.fields(kind)]
OF_NO_OPTION = [5.5, object(), b"x", [None], [1], {1: 2}, {"a": None}]


@pytest.mark.parametrize(("kind", "option"), OPTIONS)
@pytest.mark.parametrize(
    "value", OF_NO_OPTION, ids=["float", "object", "bytes", "list of None", "list of int", "dict of int", "dict of None"]
)
def test_a_value_of_another_type_is_refused_with_the_name(kind: type, option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=option):
        kind(**{**NEEDED[kind], option: value})


@pytest.mark.parametrize("option", ["quote", "escape", "comment", "delimiter", "encoding"])
@pytest.mark.parametrize("value", [5, True, ("a",)])
def test_what_is_no_text(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{option} is .*, but must be a string"):
        CsvFormat(**{option: value})


def test_a_text_that_stands_for_a_list() -> None:
    with pytest.raises(TypeError, match=r"nulls is the string 'NA', but must be a list of strings: \['NA'\]"):
        CsvFormat(nulls="NA")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"null is the string 'NA', but must be a list of strings: \['NA'\]"):
        RegexFormat("(?P<a>.)", null="NA")
    with pytest.raises(TypeError, match=r"where is 'n > 1', but must be a list of conditions: \[\(column, operator, value\)\]"):
        ParquetFormat(where="n > 1")  # type: ignore[arg-type]
