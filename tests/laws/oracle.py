"""The same DAGs in SQL over the whole input: DuckDB says whether the reference is right.

SQL has no word for `Sample`, so its rows are those of the reference. Sums of floats and means are functions of Python there, too:
DuckDB rounds with each value that it adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from tests.laws.cases import Case
from tests.laws.columns import Columns, Rows, as_rows, names_of, table_of
from tests.laws.reference import exact_mean, exact_quantile, exact_stddev, exact_sum
from tests.laws.registry import KINDS


def connected() -> Any:
    """Return a database with the functions that the queries use."""
    database: Any = duckdb.connect(config={"threads": 1})
    database.execute("SET TimeZone = 'UTC'")
    for name, function, kind in (
        ("exact_sum", exact_sum, "DOUBLE[]"),
        ("exact_mean", exact_mean, "DOUBLE[]"),
        ("exact_mean_of_texts", exact_mean, "VARCHAR[]"),
    ):
        database.create_function(name, function, [kind], "DOUBLE")
    for name, some in (("exact_quantile", exact_quantile), ("exact_stddev", exact_stddev)):
        for of_texts, kind in (("", "DOUBLE[]"), ("_of_texts", "VARCHAR[]")):
            database.create_function(name + of_texts, _as_text(some), [kind], "VARCHAR")
    return database


def _as_text(function: Any) -> Any:
    """Return a function of a list whose result is a text, empty for none: DuckDB makes null of a NaN of Python."""

    def text(values: list[Any]) -> str:
        result = function([float("nan") if value is None else value for value in values])
        return "" if result is None else repr(result)

    return text


def differences(database: Any, case: Case, expected: Mapping[str, Rows]) -> list[str]:
    """Return where the reference and SQL differ."""
    streams, tables, wrong = case.streams(), {}, []
    for number in range(len(case.sources)):
        tables[f"s{number}"] = _table(database, f"s{number}", expected[f"s{number}"], streams[f"s{number}"].columns)
    for number, node in enumerate(case.nodes):
        queries = KINDS[node.kind].sql(node, [streams[name] for name in node.inputs], [tables[name] for name in node.inputs])
        ports = [name for name in streams if name.startswith(f"n{number}.")]
        for name in ports:
            columns = streams[name].columns
            if queries is None:
                tables[name] = _table(database, name, expected[name], columns)
                continue
            query = queries[name.partition(".")[2]]
            tables[name] = f'"{name}"'
            database.execute(f"CREATE OR REPLACE TEMP TABLE {tables[name]} AS {query}")
            found = database.sql(f"SELECT * FROM {tables[name]}").to_arrow_table()
            if tuple(found.column_names) != names_of(columns):
                wrong.append(f"{name}: SQL has the columns {found.column_names}, the reference {names_of(columns)}")
                continue
            rows = as_rows(found.to_pylist(), columns)
            wrong += compared(f"{name} in SQL ({query})", expected[name], rows)
    return wrong


def _table(database: Any, name: str, rows: Rows, columns: Columns) -> str:
    arrow = table_of(rows, columns)
    database.register("given", arrow)
    kinds = ", ".join(f'"{column.name}"::{column.of.sql} AS "{column.name}"' for column in columns)
    database.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT {kinds} FROM given')
    database.unregister("given")
    return f'"{name}"'


def compared(what: str, expected: Rows, rows: Rows, most: int = 3) -> list[str]:
    """Return the differences between the rows that are right and those that are there."""
    wrong = []
    for name, some in (("missing", expected - rows), ("too many", rows - expected)):
        wrong += [f"{what}: {name} {n} times {row}" for row, n in list(some.items())[:most]]
        if len(some) > most:
            wrong.append(f"{what}: {name} {len(some) - most} more rows")
    return wrong
