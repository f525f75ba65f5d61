"""Staged files, after launches that have died."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators.sinks.table_formats.staged_files import move_into_table
from tests.operators.sinks.synced import Synced


def test_the_name_of_a_file_that_a_dead_launch_has_moved_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "staged").write_text("abc")
    for _ in range(2):  # the first one may have died before it synced anything
        synced = Synced.noted(monkeypatch)
        move_into_table(str(tmp_path / "table"), [(str(tmp_path / "staged"), "k=1/part", 3)], sink="sink", window=0)
        assert synced.has(tmp_path / "table", tmp_path / "table" / "k=1")
