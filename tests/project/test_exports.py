"""The stub beside a package is the table of its public names: each name is there, and type checkers see the same one."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["dagflow", "operators", "dagflow.scan"]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_of_the_stub_is_the_object_of_its_module(package: str) -> None:
    stub = ast.parse((ROOT / package.replace(".", "/") / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [(node.module, alias) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    module = import_module(package)
    assert module.__all__ == sorted(alias.name for _, alias in imports)
    for origin, alias in imports:
        assert alias.asname == alias.name, "type checkers take an import for a public name only as `Name as Name`"
        assert getattr(module, alias.name) is getattr(import_module(str(origin)), alias.name)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_stub_holds_nothing_but_names(package: str) -> None:
    stub = ast.parse((ROOT / package.replace(".", "/") / "__init__.pyi").read_text(encoding="utf-8"))
    assert [ast.unparse(node) for node in stub.body if not isinstance(node, ast.ImportFrom)] == []


def test_names_are_listed_before_they_are_imported() -> None:
    assert {"Filter", "RecordWriter"} <= set(dir(import_module("operators")))


def test_a_wrong_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(AttributeError, match="module 'operators' has no 'Fliter'; did you mean 'Filter'"):
        _ = import_module("operators").Fliter
