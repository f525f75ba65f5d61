from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from dagflow.errors import DagflowError
from dagflow.render.explanations import cause_of, errors_page, example_of, explain, explanation_text, explanations

PAGE = Path(__file__).parents[2] / "docs/reference/errors.md"


def test_every_code_has_a_cause_and_what_is_raised_has_an_example_and_a_remedy() -> None:
    branches = {"DF200", "DF300", "DF400", "DF500", "DF608", "DF339", "DF350"}
    for code, each in explanations().items():
        assert each.cause.endswith("."), code
        assert not re.match(r"(What|Whether|How|Where)\b", each.cause) or not each.name, f"{code}: {each.cause}"
        if code not in branches and each.name:
            assert each.example, f"{code} {each.name} lacks an example"
            assert each.remedy, f"{code} {each.name} lacks a remedy"


def test_examples_are_laid_out_alike() -> None:
    """The first line says what is wrong; what follows is set in by two blanks or belongs to a list of several errors."""
    for code, each in explanations().items():
        assert each.example == each.example.strip(), code
        assert "\n  help:\n" not in each.example, code


def test_the_page_of_errors_is_made_from_the_classes() -> None:
    again = "dagflow explain --markdown > docs/reference/errors.md"
    assert PAGE.read_text(encoding="utf-8") == errors_page(), f"run {again}"


@pytest.mark.parametrize("spelling", ["DF012", "df012", "012", "PortTypeError", "porttypeerror"])
def test_an_error_is_found_by_its_code_and_its_class(spelling: str) -> None:
    assert explain(spelling).name == "PortTypeError"


def test_a_rule_of_the_ledger_has_an_explanation() -> None:
    assert explain("DF522").cause == "An entry holds the hash of the one before; the first holds none."
    assert "exit code 1" in explanation_text(explain("DF522"))


@pytest.mark.parametrize(
    ("wrong", "near"), [("DF02", "DF0"), ("PortTypError", "PortTypeError"), ("?", "`dagflow explain` lists all")]
)
def test_an_unknown_code_gets_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(LookupError, match=near):
        explain(wrong)


def test_several_errors_in_one_have_an_example() -> None:
    assert "DF001" in explain("DF010").example


def test_fields_are_no_part_of_a_cause() -> None:
    @attrs.define
    class Mine(DagflowError):
        """A file is gone: `path` says which.

        More.
        """

    assert cause_of(Mine) == "A file is gone."
    assert isinstance(example_of(Mine), Mine)
