"""PostgreSQL for the table of values."""

from tests.operators.conftest import postgres, server

__all__ = ["postgres", "server"]
