"""The rows that earlier runs have left in a table: refused or named, so that no launch doubles them silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dagflow import SinkLaunch
from operators.sinks.tables.errors import TableHasRows
from operators.sinks.tables.modes import Mode


def earlier_rows(
    launch: SinkLaunch, mode: Mode, table: str, published: Mapping[str, int], has_rows: Callable[[], bool]
) -> list[str]:
    """Return warnings about the rows that earlier runs have left in a table, for the first launch of a run.

    `table`: its name and place; `published`: the newest windows that a sink of this name has published to it, by the identity
    of the application; `has_rows`: looks whether the table has any.
    Raises TableHasRows where `--fresh` would append rows that are there already. If the run folder does not say which identity
    `--fresh` replaces, it may be any of this application.

    >>> launch = SinkLaunch(name="shop", sink="sales", fresh=True, replaces="shop-1f")
    >>> earlier_rows(launch, "upsert", "'sales' in shop.db", {"shop-1f": 3}, lambda: True)
    ["--fresh leaves the rows of 'sales' in shop.db: those whose keys the new run does not write stay"]
    """
    if mode == "replace":
        return []
    others = sum(window + 1 for application, window in published.items() if launch.is_earlier_run(application))
    if launch.replaces in published:
        replaced = published[launch.replaces] + 1
    else:
        replaced = others if launch.fresh and not launch.replaces else 0
    if replaced:
        if not has_rows():
            return []
        if mode == "append":
            raise TableHasRows(sink=launch.sink, table=table, windows=replaced)
        return [f"--fresh leaves the rows of {table}: those whose keys the new run does not write stay"]
    if not others or not has_rows():
        return []
    windows = "a window" if others == 1 else f"{others:,} windows"
    what = "rows whose keys this run does not write stay" if mode == "upsert" else "its rows will be there twice"
    return [
        f"{table} has {windows} of earlier runs of this application, on another run folder: if they read the same "
        f"input, {what}; empty the table then, and start over with --fresh"
    ]
