"""The failpoints of rebalancing: named places at which tests kill a task."""

from __future__ import annotations

from collections.abc import Callable

NAMES = (
    "before start",
    "after start",
    "recovered",
    "before ask",
    "after ask",
    "before withdraw",
    "after withdraw",
    "stolen",
    "asked",
    "narrowed",
    "after grant",
    "after refuse",
    "before finish",
    "after finish",
    "before report",
    "after report",
)


def nothing(name: str) -> None:
    """Do nothing: the hook outside tests."""


hook: Callable[[str], None] = nothing


def hit(name: str) -> None:
    """Run the hook: a task has come to this failpoint."""
    hook(name)
