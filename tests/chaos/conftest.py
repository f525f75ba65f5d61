"""Fixtures of the tests that kill processes."""

from __future__ import annotations

from tests.cluster.places import begin, place

__all__ = ["begin", "place"]
