"""The table of fault cases in README.md of this folder."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_table_of_fault_cases_names_tests_that_are_there() -> None:
    here = Path(__file__).parent
    text = (here / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    numbers = [int(found[1]) for row in rows if (found := re.match(r"\| (\d+) ", row))]
    assert numbers == list(range(1, 50))
    runs = (here.parent / "conformance" / "faults" / "test_faults.py").read_text(encoding="utf-8")
    for name in re.findall(r"`([^` ]+)`", text):
        if name.endswith(".py"):
            places = [here.parents[1] / name] if "/" in name else [here / name, here.parent / "conformance" / "faults" / name]
            if name.startswith("test_") and "tests/" not in name:
                places += [here.parent / folder / name for folder in ("runtime", "storage")]
            assert any(place.is_file() for place in places), name
        elif name.startswith(("test_", "Test")):
            assert f" {name.removesuffix('…')}" in runs, name
