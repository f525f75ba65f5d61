"""Distributions that only look installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.packaging.libraries import Installed

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Write a distribution into a folder `site-packages`, with its files and what it requires."""
    top = tmp_path / "site-packages"

    def install(name: str, *requires: str, version: str = "1.0", files: tuple[str, ...] = ()) -> Path:
        info = top / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", *(f"Requires-Dist: {each}\n" for each in requires)]
        (info / "METADATA").write_text("".join(lines))
        (info / "direct_url.json").write_text('{"url": "https://user:secret@index.example/x.whl"}')
        written = files or (f"{name}.py",)
        for path in written:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text("x = 1\n")
        names = [*written, f"{info.name}/METADATA", f"{info.name}/direct_url.json", f"{info.name}/RECORD", "../../bin/tool"]
        (info / "RECORD").write_text("".join(f"{each},,\n" for each in names))
        return top

    return install


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[], Installed]:
    return lambda: Installed.here([str(tmp_path / "site-packages")])
