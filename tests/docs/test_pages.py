"""All pages: their examples run, their links lead somewhere, and the site's navigation lists them."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from tests.docs.properties import with_tables

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BESIDE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("apps/*/README.md")),
    ROOT / "benchmarks" / "RESULTS.md",
]
FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
TOML = re.compile(r"^```toml\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def has_examples(path: Path) -> bool:
    """Return whether this module runs the page; test_spark_operator.py runs the one that needs Spark."""
    return ">>> " in path.read_text(encoding="utf-8") and path.name != "dataframe_operators.md"


@pytest.mark.parametrize("path", [path for path in [*PAGES, *BESIDE] if has_examples(path)], ids=name)
def test_the_examples_of_a_page_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for file, content in TOML.findall(text):
        Path(file).write_text(f"# {file}\n{content}", encoding="utf-8")
    printed: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, name(path), str(path), 0)
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=printed.append)
    assert not printed, "".join(printed)


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=name)
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        page = (path.parent / target).resolve() if target else path
        outside = path in PAGES and not page.is_relative_to(DOCS)
        if outside or not page.is_file() or (anchor and page.suffix == ".md" and anchor not in anchors(page)):
            broken.append(f"{target}#{anchor}" + " leaves the site" * outside)
    assert broken == []


def test_the_navigation_lists_each_page_once() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2])
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in PAGES)


def test_the_page_about_events_lists_them_with_their_fields() -> None:
    from dagflow.runtime import events

    kinds = {kind.kind: kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)}
    page = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|(.*)\|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == list(kinds)
    for kind, fields in rows[1:]:
        names = ["from" if field.name == "source" else field.name for field in kinds[kind].__attrs_attrs__ if field.name != "at"]
        assert [name for name in names if f"`{name}`" not in fields] == [], kind


def test_codes_of_errors_that_pages_name_are_codes() -> None:
    sources = [path for package in ("dagflow", "operators") for path in (ROOT / package).rglob("*.py")]
    codes = {code for path in sources for code in re.findall(r'"(DF\d{3})"', path.read_text(encoding="utf-8"))}
    named = {code: name(path) for path in PAGES for code in re.findall(r"\bDF\d{3}\b", path.read_text(encoding="utf-8"))}
    assert {code: page for code, page in named.items() if code not in codes} == {}


@pytest.mark.parametrize("module", ["dagflow", "dagflow.ranges", "dagflow.scaling", "dagflow.testing", "operators"])
def test_the_page_of_a_package_documents_each_public_name(module: str) -> None:
    page = DOCS / "reference" / "api" / f"{module.rpartition('.')[2]}.md"
    documented = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    missing = set(importlib.import_module(module).__all__) - set(documented)
    assert missing == set(), "\n".join(f"add to {page.relative_to(ROOT)}:  ::: {module}.{name}" for name in sorted(missing))
    assert sorted(documented) == sorted(importlib.import_module(module).__all__)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_tables_of_properties_say_what_the_classes_say(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == with_tables(text), "`python -m tests.docs.properties` writes the tables anew"
