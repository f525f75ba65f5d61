"""Errors of all sinks that write tables."""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF669", kw_only=True, is_fatal=True)
class TableHasRows(RunError):
    """A launch with `--fresh` would append all rows again to a table that has the rows of an earlier run.

    `table`: its name and place; `windows`: how many windows that run has published.
    """

    sink: str
    table: str
    windows: int
    template = (
        "{sink}: --fresh writes all rows again, and {table} has those of {windows:=1?a window|{windows:,} windows} of the runs "
        "before: they would be there twice. Nothing was removed\n"
        "  help: empty the table, or drop it, and launch with --fresh again; to keep its rows and add to them, set another\n"
        "        run_folder and launch without --fresh"
    )
    example = {"sink": "sales", "table": "'sales' in localhost:5432/shop", "windows": 12}


@error("DF721", kw_only=True)
class RuleBroken(RunError, ValueError):
    """Rows do not keep a rule of their table: a constraint, an invariant or a generated column. `reason`: what its library says."""

    operator: str
    table: str
    reason: str
    template = (
        "{operator}: the table {table} refuses rows: {reason}\n"
        "  help: leave such rows out with Filter(…), or on_error='skip'; or drop the rule of the table"
    )
    example = {"operator": "DeltaWriter", "table": "data/sales", "reason": "Invalid data found: 1 rows failed validation check."}


@error("DF790", kw_only=True, is_fatal=True)
class KeysNotUnique(RunError, ValueError):
    """Rows of a window that stand have the same keys, in a stream whose rows are taken back by their keys."""

    sink: str
    table: str
    window: int
    keys: tuple[str, ...]
    template = (
        "{sink}: {table}: several rows have the same {keys}, and rows are taken back by their keys; "
        "window {window} is not decided\n"
        "  help: name keys that identify a row: the columns that the rows are grouped by, for example"
    )
    example = {"sink": "totals", "table": "data/totals", "window": 7, "keys": ("country",)}


@error("DF663", kw_only=True, is_fatal=True)
class ForeignChange(RunError):
    """Another writer has changed a table whose content each window replaces. `changes`: a phrase for each; `help`: what to do."""

    sink: str
    table: str
    window: int
    changes: tuple[str, ...]
    help: str = "restore the version before, and launch again: the run resumes; let that writer have a table of its own"
    template = (
        "{sink}: {table}: another writer has changed the table, and mode='replace' would remove its rows; "
        "window {window} was not published\n"
        "    {changes:\n    }\n"
        "  help: {help}"
    )
    example = {"sink": "totals", "table": "data/totals", "window": 7, "changes": ("version 13: WRITE at 2026-03-01T12:00:00Z",)}


@error("DF819", kw_only=True, is_fatal=True)
class RowsMissing(RunError):
    """Rows that are taken back by all of their columns are not in the table, or not so often. `row`: one of them."""

    sink: str
    table: str
    window: int
    rows: int
    row: str
    template = (
        "{sink}: {table}: {rows:=1?a row that is taken back is|{rows:,} rows that are taken back are} not in the table: "
        "{rows:=1?|one is }{row}; window {window} is not published\n"
        "  help: another writer, or a trigger, has changed {rows:=1?it|them}: put {rows:=1?it|them} back, and launch again: the run "
        "resumes;\n        or drop the table, and launch with --fresh"
    )
    example = {"sink": "totals", "table": "data/totals", "window": 7, "rows": 1, "row": "{'shop': 'north', 'sold': 2}"}


@error("DF815", kw_only=True, is_fatal=True)
class ChangeTypeTaken(RunError, ValueError):
    """Rows have a column with the name of the one that a changelog writes the kinds of changes to."""

    operator: str
    template = (
        "{operator}: the rows have a column '_change_type', to which mode='changelog' writes the kind of each change\n"
        "  help: rename the column, or leave it out, with Map(…) before the sink"
    )
    example = {"operator": "changes.current"}
