"""Every operator of the library is in random DAGs, or is exempt and says why."""

from __future__ import annotations

import inspect

import operators
from dagflow import Operator
from tests.laws.application import FOLDERS
from tests.laws.cases import random_case
from tests.laws.registry import EXEMPT, KINDS, SINKS, SOURCES


def exported() -> set[str]:
    every = {name: getattr(operators, name) for name in operators.__all__}
    return {name for name, value in every.items() if inspect.isclass(value) and issubclass(value, Operator)}


def test_every_operator_takes_part_or_says_why_not() -> None:
    tried = {operator.__name__ for kind in KINDS.values() for operator in kind.operators} | {*SOURCES, *SINKS}
    assert exported() - tried - EXEMPT.keys() == set(), "put it into KINDS or EXEMPT of tests/laws/registry.py"
    assert EXEMPT.keys() <= exported(), "no operators"
    assert not tried & EXEMPT.keys()


def test_random_dags_have_all_kinds() -> None:
    cases = [random_case(seed) for seed in range(200)]
    kinds = {node.kind for case in cases for node in case.nodes}
    follows = KINDS["total"].operators[0].takes_changes
    assert kinds == {*KINDS} - (set() if follows else {"total"})
    assert {target.kind for case in cases for target in case.targets} >= {*FOLDERS, "sqlite", "collector"}
