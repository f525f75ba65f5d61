"""The parts of a docstring in Google's style: description, documented names, examples."""

from __future__ import annotations

import inspect
import re

import attrs

_SECTION = re.compile(r"^(Args|Attributes):$")


@attrs.frozen
class DocParts:
    """A docstring in parts.

    Attributes:
        summary: the first paragraph, on one line.
        text: the paragraphs after it, without examples and names.
        names: the description of each name of the sections `Args` and `Attributes`, on one line.
        example: the lines of the examples, with their output.
    """

    summary: str = ""
    text: str = ""
    names: dict[str, str] = attrs.field(factory=dict)
    example: str = ""


def doc_parts(docstring: str | None) -> DocParts:
    r"""Return the parts of a docstring.

    >>> parts = doc_parts("Keep records.\n\nArgs:\n    a, b: both\n        of them.\n\nMore.\n\n>>> 1\n1\n")
    >>> parts.summary, parts.text, parts.names, parts.example
    ('Keep records.', 'More.', {'a': 'both of them.', 'b': 'both of them.'}, '>>> 1\n1')
    """
    names: dict[str, str] = {}
    paragraphs: list[str] = []
    examples: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", inspect.cleandoc(docstring or "")):
        lines = paragraph.splitlines()
        if lines and _SECTION.match(lines[0]):
            names.update(_names(lines[1:]))
        elif lines and lines[0].startswith(">>>"):
            examples.append(paragraph)
        elif paragraph:
            paragraphs.append(paragraph)
    summary, *rest = paragraphs or [""]
    return DocParts(" ".join(summary.split()), "\n\n".join(rest), names, "\n\n".join(examples))


def _names(lines: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    current: list[str] = []
    for line in inspect.cleandoc("\n".join(["", *lines])).splitlines():
        head, colon, text = line.partition(":")
        if colon and not line.startswith(" ") and re.fullmatch(r"\w+(, \w+)*", head):
            current = head.split(", ")
            texts |= dict.fromkeys(current, text.strip())
        else:
            texts |= {name: f"{texts[name]} {line.strip()}".strip() for name in current}
    return texts
