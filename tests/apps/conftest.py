"""Fixtures of the tests of applications."""

from __future__ import annotations

from tests.operators.conftest import postgres, server

__all__ = ["postgres", "server"]
