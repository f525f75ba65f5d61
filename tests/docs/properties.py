"""The tables of properties in the pages, made from the classes: `python -m tests.docs.properties` writes them anew.

A table stands behind a comment that names its class and, in their order, the properties: those of all operators are left out
without any. `as PART` puts the name of a part of a module before them.

    <!-- properties of KafkaSplitterInput as splitter: block_bytes, window_blocks -->
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from dagflow.catalogue.entries import PropertyEntry, catalogue, entry_named, properties_of

DOCS = Path(__file__).parents[2] / "docs"
MARK = re.compile(r"(<!-- properties of (\w+)(?: as (\w+))?(?:: ([\w, ]+))? -->\n)((?:\|.*\n)*)")
OF_ALL = ("on_error", "max_rejects")


@functools.cache
def of_class(name: str) -> dict[str, PropertyEntry]:
    entries, _ = catalogue()
    return {each.name: each for each in properties_of(entry_named(name, entries), entries)}


def table(name: str, part: str = "", names: Sequence[str] = ()) -> str:
    """The table of some properties of a class, or of all its own."""
    known, rows = of_class(name), []
    for each in names or [each for each in known if each not in OF_ALL]:
        value = known[each].default
        default = "required" if value is None else "" if value == "***" else f"`{value}`"
        meaning = known[each].doc.replace("|", "\\|")
        rows.append(f"| `{f'{part}.' if part else ''}{each}` | {default} | {meaning} |\n")
    return "".join(["| property | default | meaning |\n", "| --- | --- | --- |\n", *rows])


def with_tables(text: str) -> str:
    """The text of a page with its tables as the classes say."""
    return MARK.sub(lambda m: m[1] + table(m[2], m[3] or "", m[4].split(", ") if m[4] else ()), text)


if __name__ == "__main__":
    for page in DOCS.rglob("*.md"):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
