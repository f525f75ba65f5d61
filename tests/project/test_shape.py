from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES = 500
MOST_MODULES = 12

CROWDED: dict[str, tuple[int, str]] = {}
"""Packages with more than `MOST_MODULES` modules: how many, and why. The numbers may only fall."""

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


def test_no_module_grows_past_what_one_can_read() -> None:
    modules = [path for path in kept_files() if path.suffix == ".py"]
    assert modules
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_package_has_more_modules_than_one_can_keep_in_mind() -> None:
    modules = Counter(
        str(path.parent.relative_to(ROOT))
        for path in kept_files()
        if path.suffix == ".py"
        and path.name != "__init__.py"
        and path.relative_to(ROOT).parts[0] in ("dagflow", "operators", "apps")
    )
    assert modules
    too_many = {package: count for package, count in modules.items() if count > CROWDED.get(package, (MOST_MODULES, ""))[0]}
    assert too_many == {}, f"a package has {MOST_MODULES} modules at most: make a package of those that belong together"
    stale = {package: modules[package] for package, (count, _) in CROWDED.items() if modules[package] < count}
    assert stale == {}, "these packages have become smaller: lower their numbers in CROWDED, or take them out"


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
    layers = text.partition("layers = [")[2].partition("]")[0]
    assert sorted([*packages, "__main__", "bounded_json", "exports", "logs"]) == sorted(re.findall(r"\w+", layers))


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
