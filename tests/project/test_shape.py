from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BUDGET = {
    "dagflow": 174,
    "dagflow/arrow_types": 318,
    "dagflow/catalogue": 196,
    "dagflow/cli": 1906,
    "dagflow/config": 1615,
    "dagflow/diagnosis": 229,
    "dagflow/errors": 229,
    "dagflow/launching": 986,
    "dagflow/ledger": 1916,
    "dagflow/lineage": 1410,
    "dagflow/local": 737,
    "dagflow/model": 4242,
    "dagflow/packaging": 516,
    "dagflow/page": 1444,
    "dagflow/planning": 1036,
    "dagflow/plugins": 30,
    "dagflow/ranges": 396,
    "dagflow/render": 1369,
    "dagflow/runtime": 7274,
    "dagflow/scaling": 297,
    "dagflow/scan": 1987,
    "dagflow/spark": 2091,
    "dagflow/state": 1368,
    "dagflow/storage": 1976,
    "dagflow/telemetry": 686,
    "dagflow/testing": 1508,
    "operators": 173,
    "operators/aggregate": 2809,
    "operators/compression": 655,
    "operators/contexts": 766,
    "operators/database": 103,
    "operators/expressions": 649,
    "operators/extras": 190,
    "operators/files": 1289,
    "operators/formats": 3147,
    "operators/join": 948,
    "operators/logs": 1901,
    "operators/readers": 1061,
    "operators/sinks": 5364,
    "operators/sources": 707,
    "operators/tables": 627,
    "operators/transform": 931,
}
"""Statements of each package, without imports and docstrings. A number may only fall: a commit that merges mechanisms lowers it.
A new capability raises the number of its own package in the commit that adds it, whose message says what it bought."""

UNORDERED = {
    "dagflow/cli/commands/applications": "one module a command, in no order",
    "dagflow/cli/commands/datasets": "one module a command, in no order",
    "dagflow/cli/commands/general": "one module a command, in no order",
    "dagflow/model/errors": "classes of errors, in no order",
}
"""Packages whose docstring names no order of reading, and why."""


def kept_files() -> list[Path]:
    """Return the files that belong to the project: those that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git work tree")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def statements(text: str) -> int:
    """Return how many statements a module has, without imports and docstrings."""
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(ast.parse(text))
    )


def counted() -> dict[str, int]:
    """Return how many statements each package has; modules beside the packages count for their parent."""
    counts: Counter[str] = Counter()
    for path in kept_files():
        parts = path.relative_to(ROOT).parts
        if path.suffix == ".py" and parts[0] in ("dagflow", "operators"):
            counts["/".join(parts[: min(2, len(parts) - 1)])] += statements(path.read_text(encoding="utf-8"))
    return dict(counts)


def test_packages_keep_to_their_budget_of_statements() -> None:
    counts = counted()
    assert counts
    over = {name: f"{count} of {BUDGET.get(name, 0)}" for name, count in counts.items() if count > BUDGET.get(name, 0)}
    assert over == {}, "look for the mechanism that can carry it; a new capability raises the number, and its commit says why"
    under = {name: counts.get(name, 0) for name, budget in BUDGET.items() if counts.get(name, 0) < budget}
    assert under == {}, "these packages are smaller than their budget: lower their numbers in BUDGET"


def test_each_package_says_in_what_order_to_read_its_modules() -> None:
    missing = {}
    for path in kept_files():
        package = str(path.parent.relative_to(ROOT))
        if path.name != "__init__.py" or not package.startswith(("dagflow/", "operators/")) or package in UNORDERED:
            continue
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        names = {name.partition(".")[0] for name in re.findall(r"`([\w.]+)`", text)}
        modules = {each.stem for each in path.parent.glob("*.py")} | {
            each.parent.name for each in path.parent.glob("*/__init__.py")
        }
        if len(modules - {"__init__", "errors"}) > 1 and (absent := modules - names - {"__init__", "errors"}):
            missing[package] = sorted(absent)
    assert missing == {}, "name these modules in the docstring of their package, at their place in the reading order"


def test_no_file_names_a_place_on_the_machine_that_it_was_written_on() -> None:
    place = re.compile(r"(?<![\w.:/<>{}$*-])/(?:home|root|Users|work|workspace)/[\w.-]+")
    found = []
    for path in kept_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in place.finditer(text)]
    assert found == []


@pytest.mark.parametrize("package", ["dagflow", "operators"])
def test_type_checkers_are_told_that_there_are_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_each_package_has_a_contract() -> None:
    """A new package that no contract names would be free to import anything."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "dagflow").glob("*/__init__.py")]
    modules = [path.stem for path in (ROOT / "dagflow").glob("*.py") if path.stem != "__init__"]
    layers = text.partition("layers = [")[2].partition("]")[0]
    assert sorted([*packages, *modules]) == sorted(re.findall(r"\w+", layers))


@pytest.mark.parametrize("what", ["run", "test"])
def test_the_readme_has_a_command_to_copy(what: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"<!-- {what} -->\s*```sh\n(.+?)\n```", text, re.DOTALL)
    assert block is not None
    assert "python3 -m venv .venv" in block.group(1)


def test_the_readme_names_files_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [name for name in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in name]
    assert [name for name in names if not (ROOT / name).exists()] == []
