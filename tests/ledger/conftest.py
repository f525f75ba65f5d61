"""Fixtures of the ledger's tests; the chains that they build upon are in chains.py."""

from __future__ import annotations

import pytest


@pytest.fixture
def folder(tmp_path):
    """A dataset's folder."""
    return str(tmp_path / "dataset")
