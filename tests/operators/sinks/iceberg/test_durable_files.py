"""Iceberg metadata on local disks are synced before the catalog names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from operators.sinks.iceberg.landed import LandedCommits
from tests.operators.sinks.restored import Subject

pytestmark = pytest.mark.full


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
def test_files_are_synced_before_the_commit(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    missed: list[str] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    commit = LandedCommits.commit_table

    def committed(self: Any, *args: Any) -> Any:
        answer = commit(self, *args)
        written = [path for path in (tmp_path / "root" / "warehouse" / "shop").rglob("*") if path.is_file()]
        missed.extend(str(path) for path in written if str(path) not in synced and not path.name.startswith("part-"))
        return answer

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(LandedCommits, "commit_table", committed)
    subject = Subject(f"iceberg_{mode}", tmp_path / "root", tmp_path / "copies")
    for number in range(2):
        subject.deliver(number)
        subject.launch()
    assert missed == []
    assert any(path.endswith(".metadata.json") for path in synced)
    assert str(tmp_path / "root") in synced  # the folder of the catalog's journal
    assert subject.wrong_rows() is None
