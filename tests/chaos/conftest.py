"""What tests that kill processes share."""

from __future__ import annotations

from tests.cluster.places import begin, place

__all__ = ["begin", "place"]
