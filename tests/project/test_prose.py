"""Rules of the house style that a machine can check: plain English in docstrings, comments, messages and pages.

The rules are in `RULES`. No text breaks any of them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

import attrs
import pytest

ROOT = Path(__file__).parents[2]


@attrs.frozen
class Rule:
    """A pattern that prose must not match, and why. `only`: the kind of text it is about; None: all kinds."""

    name: str
    pattern: str
    reason: str
    instead: str
    only: str | None = None

    def matches(self, kind: str, text: str) -> list[str]:
        """Return what breaks the rule in a text."""
        if self.only not in (None, kind):
            return []
        return [match.group() for match in re.finditer(self.pattern, text, 0 if self.only else re.IGNORECASE)]


RULES = (
    Rule(
        "opening",
        r"\A(What|Whether|How|Where)\b[^?]*?(\.|:|\Z)",
        "a docstring starts with a verb or a noun",
        '"Return the…", "Read…", "The range that a reader owns."',
        only="docstring",
    ),
    Rule(
        "people",
        r"\b(nobody|whoever|whomever|somebody|anybody)\b",
        "machines are not people",
        "reader, task, launch, caller, no other operator",
    ),
    Rule("integer", r"\bwhole numbers?\b", "the field's term", "integer"),
    Rule("skipped", r"\blets? (?:\w+ )?pass\b(?! through)|\blet pass\b", "the field's term", "skipped"),
    Rule("resumes", r"\b(?:goes|go|going|went) on (?:with|where|from)\b", "the field's term", "resumes, continues"),
    Rule("surroundings", r"\bsurroundings\b", "the field's term", "infrastructure, environment"),
    Rule(
        "negation",
        r"(?<!there )\b(?:is|was|are|were) no (?!(?:longer|more|less|later|earlier|other|one|matter)\b)\w+",
        "English negates the verb, not the noun",
        '"is not a split point of"',
    ),
    Rule("has not", r"\b(?:has|have|had) not(?=[.,;:)]|\Z)", "English negates the verb", '"does not support", "does not have"'),
)


def package_of(path: Path) -> str:
    """Return the package whose counts a file belongs to: `dagflow/planning`, `operators/files`, `docs`, `tests`, …"""
    parts = path.relative_to(ROOT).parts
    if parts[0] in ("dagflow", "operators"):
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    return parts[0]


def prose_of_page(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of a page without code and without words that are only mentioned (in code or italics)."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield "page", number, re.sub(r"`[^`]*`|(?<!\*)\*[^*]+\*(?!\*)", "…", line)


def is_string(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def prose_of_module(text: str, with_strings: bool) -> Iterator[tuple[str, int, str]]:
    """Yield docstrings and comments; of code that users run, string literals with blanks too: messages, help, reports."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            constant = node.body[0].value  # type: ignore[attr-defined]
            docstrings.add(constant)
            yield "docstring", constant.lineno, constant.value
        for before, after in pairwise(node.body if isinstance(node, ast.Module | ast.ClassDef) else ()):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr) and is_string(after.value):
                docstrings.add(after.value)  # below a constant or a field
                yield "docstring", after.lineno, after.value.value
    if with_strings:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and node not in docstrings:
                yield "string", node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield "comment", token.start[0], token.string.lstrip("# ")


@cache
def broken() -> dict[str, list[str]]:
    """Return what breaks each rule."""
    found = defaultdict(list)
    for path in sources():
        text = path.read_text(encoding="utf-8")
        strings = path.relative_to(ROOT).parts[0] != "tests"
        for kind, line, prose in prose_of_page(text) if path.suffix == ".md" else prose_of_module(text, strings):
            for rule in RULES:
                for match in rule.matches(kind, prose):
                    shown = " ".join(match.split())[:80]
                    found[rule.name].append(f"{path.relative_to(ROOT)}:{line}: {shown!r}")
    return dict(found)


def sources() -> list[Path]:
    """Return the modules and pages that people read, without this module, and without the page that quotes all messages."""
    modules = [path for top in ("dagflow", "operators", "apps", "benchmarks", "tests") for path in (ROOT / top).rglob("*.py")]
    return sorted(
        path
        for path in [*modules, *(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
        if path != Path(__file__)
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_prose_keeps_the_rule(rule: Rule) -> None:
    assert broken().get(rule.name, []) == [], f"{rule.reason}; write {rule.instead}"


def test_one_name_is_one_class() -> None:
    names = Counter(
        node.name
        for path in sources()
        if package_of(path).startswith(("dagflow", "operators")) and path.suffix == ".py" and "templates" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_local_is_named_by_a_bare_participle() -> None:
    """A noun says what it holds."""
    modules = (path for folder in ("dagflow", "operators", "apps") for path in (ROOT / folder).rglob("*.py"))
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in ("found", "told")
    ]
    assert not named


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        ("docstring", "What a task has before it.", ["opening"]),
        ("docstring", "The work items that a task has not started.", []),
        ("comment", "What it is", []),
        ("comment", "nobody knows how many whole numbers there are", ["people", "integer"]),
        ("string", "the line is let pass", ["skipped"]),
        ("page", "The launch goes on with the next window.", ["resumes"]),
        ("page", "This is no split point of the reader.", ["negation"]),
        ("page", "There is no longer a way to ask.", []),
        ("page", "types that Spark has not.", ["has not"]),
        ("page", "it has not been asked", []),
    ],
)
def test_the_rules_find_what_they_are_for(kind: str, text: str, names: list[str]) -> None:
    assert [rule.name for rule in RULES if rule.matches(kind, text)] == names


def test_what_stands_below_a_constant_is_a_docstring() -> None:
    module = 'A = 1\n"""What it is."""\nclass B:\n    c: int\n    """How it is."""\n    def d(self): "e"\n'
    found = [text for kind, _, text in prose_of_module(module, False) if kind == "docstring"]
    assert sorted(found) == ["How it is.", "What it is.", "e"]


def test_words_that_are_only_mentioned_are_not_prose() -> None:
    page = "integer (not *whole number*)\n```\nnobody\n```\n`nobody` is **nobody**"
    assert [text for _, _, text in prose_of_page(page)] == ["integer (not …)", "… is **nobody**"]
