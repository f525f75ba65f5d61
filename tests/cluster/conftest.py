"""Fixtures of cluster tests."""

from __future__ import annotations

from tests.cluster.places import begin, place

__all__ = ["begin", "place"]
collect_ignore = ["application"]  # runs as users' code does, not as modules of the tests
