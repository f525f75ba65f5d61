"""The tests of the processes themselves start them as launches do."""

from __future__ import annotations

import pytest

from dagflow.local import boot, pool


@pytest.fixture(autouse=True)
def _cold_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "boot", boot.boot)
