"""Fixtures of the tests that rebalance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dagflow.runtime.rebalancing import failpoints


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One file: all the work is in its first quarter."""
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f"{'slow' if n < 200 else 'fast'} line {n:04d}\n" for n in range(800)]
    (folder / "a.txt").write_text("".join(lines))
    return folder


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    """After a test, nothing happens at the steps."""
    yield
    failpoints.hook = failpoints.nothing
