from __future__ import annotations

from pathlib import Path

import pytest

from dagflow.local import cores
from dagflow.local.cores import available_cores, quota_of


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, files: dict[str, str], quota: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert quota_of(str(tmp_path)) == quota


def test_a_quota_counts_beside_the_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_CGROUPS", str(tmp_path))
    everything = available_cores()
    assert everything >= 1
    (tmp_path / "cpu.max").write_text("1000 100000")
    assert available_cores() == 1
    (tmp_path / "cpu.max").write_text("100000000 100000")
    assert available_cores() == everything
