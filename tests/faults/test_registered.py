"""Each sink of the library, in each of its modes, has an application whose launches are hit."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import operators
from tests.faults.applications import APPLICATIONS, CHANGING, KEEPS_NOTHING, OUTPUTS, SAME_AS_APPEND
from tests.faults.results import RESULTS
from tests.faults.tables import TABLES


def named(kind: Any) -> tuple[str, ...]:
    """The texts that a type names, alone or among others."""
    if isinstance(kind, str):
        return (kind,)
    return tuple(mode for each in typing.get_args(kind) for mode in named(each))


def sinks() -> dict[str, tuple[str, ...]]:
    """The modes of each sink that the library offers."""
    found = {}
    library: Any = operators
    for name in library.__all__:
        sink: Any = getattr(operators, name)
        if inspect.isclass(sink) and sink.__module__.startswith("operators.sinks."):
            types = (typing.get_type_hints(base).get("mode") for base in sink.__mro__)
            found[name] = next(filter(None, map(named, types)), ("",))
    return found


def test_the_sinks_are_known_by_their_package() -> None:
    assert {"RecordWriter", "DeltaWriter", "PostgresWriter", "NatsWriter", "Console"} <= sinks().keys()
    assert sinks()["SqlWriter"] == ("append", "upsert", "replace")


def test_each_sink_has_a_case() -> None:
    wanted = {(name, mode) for name, modes in sinks().items() if name not in KEEPS_NOTHING for mode in modes}
    have = {(output.sink, output.mode) for output in OUTPUTS}
    missing = sorted((name, mode) for name, mode in wanted - have if mode not in SAME_AS_APPEND)
    assert not missing, f"{missing}: add an Output to OUTPUTS in tests/faults/applications.py, or a reason to KEEPS_NOTHING"
    assert have <= wanted, f"{sorted(have - wanted)} are not sinks of the library"


def test_each_output_is_in_an_application_of_its_own() -> None:
    assert all(APPLICATIONS[output.name].outputs == (output,) for output in OUTPUTS)


def test_each_result_and_each_table_that_follows_changes_is_in_an_application() -> None:
    used = [each for _, *results in CHANGING.values() for each in results]
    assert {result for result, _ in used} == RESULTS.keys()
    assert {table for _, table in used} == TABLES.keys()


def test_each_sink_of_rows_follows_changes() -> None:
    following = {table.sink for table in TABLES.values()}
    assert sinks().keys() - following - {"RecordWriter"} == KEEPS_NOTHING.keys(), "add a Table to tests/faults/tables.py"
