"""The catalogue knows every public operator, with its ports and properties."""

from __future__ import annotations

import inspect
import json

import attrs
import pytest

import operators
from dagflow.catalogue.docstrings import doc_parts
from dagflow.catalogue.entries import CatalogueEntry, catalogue, entry_named, ports_of_entry, properties_of
from dagflow.cli.main import main
from dagflow.config.values import hints
from dagflow.errors import NoSuchOperator
from dagflow.model.graph.module import Module
from dagflow.model.operator.base import Operator
from dagflow.render.catalogue import catalogue_text, entry_json, entry_text
from dagflow.render.style import Style, cells

ENTRIES = [entry for entry in catalogue()[0] if not entry.package]
BY_NAME = {entry.name: entry for entry in ENTRIES}


def test_every_operator_of_the_library_is_listed() -> None:
    exported = {name: getattr(operators, name) for name in operators.__all__}
    public = {name for name, each in exported.items() if inspect.isclass(each) and issubclass(each, Operator | Module)}
    assert public <= set(BY_NAME)
    assert list(dict.fromkeys(entry.group for entry in ENTRIES))[:3] == ["Sources", "Readers", "Transforms"]
    text = catalogue_text(ENTRIES, Style(width=80))
    assert [name for name in BY_NAME if f"\n  {name} " not in text] == []
    assert max(map(cells, text.splitlines())) <= 80
    assert "…\n" not in text
    assert catalogue_text(ENTRIES, Style()) == text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_property_has_a_type_and_a_meaning(entry: CatalogueEntry) -> None:
    assert entry.doc.summary.endswith(".")
    if not attrs.has(entry.cls):
        return
    found = properties_of(entry, ENTRIES)
    assert sorted(each.name for each in found) == sorted(hints.settable(entry.cls))
    assert [each.name for each in found if not each.doc] == []
    assert json.dumps(entry_json(entry, ENTRIES))


def test_an_entry_in_full() -> None:
    entry = BY_NAME["Filter"]
    assert [(port.name, port.direction, port.type) for port in ports_of_entry(entry)] == [
        ("input", "in", "T"),
        ("output", "out", "T"),
        ("errors", "out", "ErrorRecord"),
    ]
    text = entry_text(entry, ENTRIES, Style(width=80))
    assert "  predicate: Callable[[T], Any] | AnyExpression  required\n" in text
    assert "  >>> from dagflow.testing import run_operator\n" in text
    assert "\nfrom operators import Filter\nsource: " in text
    assert entry.source == f"{inspect.getsourcefile(entry.cls)}:{inspect.getsourcelines(entry.cls)[1]}"


def test_a_description_that_refers_to_another_class_is_followed() -> None:
    docs = {each.name: each.doc for each in properties_of(BY_NAME["FileInput"], ENTRIES)}
    assert docs["max_readers"].startswith("how many readers a window has")
    assert docs["reader_context"] == "finds the bytes of each record."
    assert [name for name, doc in docs.items() if "see BlockReader" in doc or "see FileSplitterInput" in doc] == []


def test_properties_that_must_be_given_come_first() -> None:
    assert next((each.name, each.default) for each in properties_of(BY_NAME["TopN"], ENTRIES)) == ("n", None)


@pytest.mark.parametrize("name", ["filter", "Filter", "FILTER"])
def test_a_name_is_found_in_any_case(name: str) -> None:
    assert entry_named(name, ENTRIES).name == "Filter"


def test_an_unknown_name_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoSuchOperator):
        entry_named("Fliter", ENTRIES)
    assert main(["operators", "Fliter"]) == 2
    assert "there is no operator 'Fliter'. Did you mean 'Filter'?" in capsys.readouterr().err
    assert entry_named("operators.Filter", ENTRIES) is BY_NAME["Filter"]
    with pytest.raises(NoSuchOperator, match="Did you mean 'Filter'"):
        entry_named("other.Filter", ENTRIES)
    with pytest.raises(NoSuchOperator, match="`dagflow operators` lists the names"):
        entry_named("zzz", ENTRIES)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operators", "Count", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["name"], data["group"], data["import"]) == ("Count", "By key", "from operators import Count")
    assert {each["name"]: each["default"] for each in data["properties"]}["combiner"] == "true"


def test_parts_of_a_docstring() -> None:
    parts = doc_parts("Do it.\n\n    Attributes:\n        a: one: two\n            three\n\n    - x\n    - y\n")
    assert (parts.summary, parts.text, parts.names) == ("Do it.", "- x\n- y", {"a": "one: two three"})
    assert doc_parts(None).summary == ""
