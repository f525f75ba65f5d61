from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "publish_operators.md"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes packages that are found as installed ones are: modules, and their `.dist-info`."""
    before = set(sys.modules)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def make(name: str, entry_points: str, **modules: str) -> None:
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)

    yield make
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def temperature(install: Callable[..., None]) -> None:
    """The package of the how-to page."""
    blocks = dict(re.findall(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
    groups = tomllib.loads(blocks["pyproject.toml"])["project"]["entry-points"]
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{name} = {points[name]}" for name in points))
    ]
    install("dagflow-temperature", "\n".join(lines), dagflow_temperature=blocks["dagflow_temperature.py"])
