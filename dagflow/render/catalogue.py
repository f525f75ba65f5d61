"""The catalogue of operators as text and JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from dagflow.catalogue.entries import BrokenPlugin, CatalogueEntry, ports_of_entry, properties_of
from dagflow.model.operator.call_sites import shown
from dagflow.render.style import Style, indented, narrower, pad, table

VERSION = 1
_WIDTH = 80  # of texts, where nothing says how wide they may be


def catalogue_text(entries: Sequence[CatalogueEntry], style: Style) -> str:
    """Return the first sentence of each operator, in groups."""
    width = max(len(entry.name) for entry in entries)
    lines: list[str] = []
    for group, members in groupby(entries, key=lambda entry: entry.group):
        lines += ["", style.paint("bold", group)]
        for entry in members:
            package = f" ({entry.package})" if entry.package else ""
            text = _wrapped(f"{_first_sentence(entry.doc.summary)}{package}", (style.width or _WIDTH) - width - 4)
            lines += [f"  {pad(entry.name if not i else '', width)}  {line}" for i, line in enumerate(text)]
    return "\n".join([*lines[1:], "", "dagflow operators NAME shows ports, properties and an example."])


def entry_text(entry: CatalogueEntry, entries: list[CatalogueEntry], style: Style) -> str:
    """Return all that the catalogue knows of one operator."""
    width = style.width or _WIDTH
    package = f"  ({entry.package})" if entry.package else ""
    lines = [f"{style.paint('bold', entry.name)}{package}", *_wrapped(entry.doc.summary, width)]
    for paragraph in filter(None, entry.doc.text.split("\n\n")):
        is_list = any(line.startswith(("-", " ")) for line in paragraph.splitlines())
        lines += ["", *(paragraph.splitlines() if is_list else _wrapped(paragraph, width))]
    ports = [
        [port.name, port.direction, port.type, "optional" if port.optional and port.direction == "in" else ""]
        for port in ports_of_entry(entry)
    ]
    if ports:
        lines += ["", style.paint("bold", "Ports"), *indented(table(ports, "llLl", narrower(style, 2)))]
    properties = properties_of(entry, entries)
    if properties:
        lines += ["", style.paint("bold", "Properties")]
        for each in properties:
            default = "required" if each.default is None else f"default {each.default}"
            lines.append(style.cut(f"  {each.name}: {each.type}  {style.paint('dim', default)}"))
            lines += indented(_wrapped(each.doc, width - 6), 6)
    if entry.doc.example:
        lines += ["", style.paint("bold", "Example"), *indented(entry.doc.example.splitlines())]
    return "\n".join([*lines, "", entry.import_line, f"source: {shown(entry.source)}"])


def catalogue_json(entries: Sequence[CatalogueEntry], broken: Sequence[BrokenPlugin]) -> dict[str, Any]:
    """Return the list as plain data; `v` is the version of the form."""
    listed = [_head(entry) for entry in entries]
    return {
        "v": VERSION,
        "operators": listed,
        "broken": [{"name": each.name, "package": each.package, "problem": each.problem} for each in broken],
    }


def entry_json(entry: CatalogueEntry, entries: list[CatalogueEntry]) -> dict[str, Any]:
    """Return one entry as plain data."""
    return {
        "v": VERSION,
        **_head(entry),
        "text": entry.doc.text,
        "ports": [
            {"name": port.name, "direction": port.direction, "type": port.type, "optional": port.optional}
            for port in ports_of_entry(entry)
        ],
        "properties": [
            {"name": each.name, "type": each.type, "required": each.default is None, "default": each.default, "doc": each.doc}
            for each in properties_of(entry, entries)
        ],
        "example": entry.doc.example,
        "import": entry.import_line,
        "source": entry.source,
    }


def _head(entry: CatalogueEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "group": entry.group,
        "summary": entry.doc.summary,
        "package": entry.package or None,
        "class": f"{entry.cls.__module__}.{entry.cls.__qualname__}",
    }


def _first_sentence(text: str) -> str:
    """Return the first sentence, with its end.

    >>> _first_sentence("Parquet. Readers share."), _first_sentence("Text (RFC 4180, e.g. it).")
    ('Parquet.', 'Text (RFC 4180, e.g. it).')
    """
    match = re.match(r".*?[.](?= [A-Z])", text)
    return text if match is None else match[0]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(20, width), break_long_words=False, break_on_hyphens=False)
