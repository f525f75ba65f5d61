"""A module in the package."""

from __future__ import annotations


def loud(text: str) -> str:
    """Capitals."""
    return text.upper()
