"""The places in the life of a shared task where it may be killed, by name. Tests put something else than nothing there."""

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
    "taken over",
    "asked",
    "narrowed",
    "after give",
    "after refuse",
    "before finish",
    "after finish",
    "before report",
    "after report",
)


def nothing(step: str) -> None:
    """What happens at each step."""


hook: Callable[[str], None] = nothing


def hit(step: str) -> None:
    """A task has come to this step."""
    hook(step)
