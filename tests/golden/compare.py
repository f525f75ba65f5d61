"""Golden files: what is printed today is what was looked at when the file was made."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPTION = "--update-golden"


def add_option(parser: pytest.Parser) -> None:
    """Adds the switch that writes the files anew; two folders have it."""
    try:
        parser.addoption(OPTION, action="store_true", help="write the golden files anew")
    except ValueError:
        assert parser  # another folder's conftest was here first


class Golden:
    """Compares text with a file of this folder."""

    def __init__(self, update: bool, replace: dict[str, str]) -> None:
        self._update = update
        self._replace = replace

    def __call__(self, name: str, text: str) -> None:
        for what, by in self._replace.items():
            text = text.replace(what, by)
        path = HERE / name
        if self._update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"{path} is missing: look at the text, then write it with {OPTION}\n{text}"
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), f"tests/golden/{name}", "now", lineterm="")
            pytest.fail("\n".join(lines) + f"\n({OPTION} writes the file anew)", pytrace=False)
