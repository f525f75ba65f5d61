"""A splitter with a reader of rows, as `dag.read` adds them, and the format of files by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import attrs

from dagflow.errors import suggest
from dagflow.storage import PACKED, absolute, local_path
from operators.files.scanner import TimeBasedDirectoryScanner
from operators.files.scanner import paths as as_paths
from operators.files.splitter_input import FileSplitterInput
from operators.formats.csv import CsvFormat
from operators.formats.named import format_named
from operators.readers.scan_reader import ScanReader

ENDS = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json_lines"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".avro": "avro",
    ".csv": "csv",
    ".tsv": CsvFormat(delimiter="\t"),
}
"""The formats of files whose names end so."""
GLOB = re.compile(r"[*?]|\[[^/\]]+\]")
"""The signs of a pattern."""
MANY = 10_000
"""The most files of a folder that are looked at for one whose name tells a format."""


@attrs.frozen
class Parts:
    """The splitter and the reader. `problem`: why no format is known; None where one is."""

    splitter: FileSplitterInput
    reader: ScanReader[Any]
    problem: str | None = None


def parts_of(paths: Any, kind: Any, **properties: Any) -> Parts:
    """Return the operators that read files. `kind`: the format; `properties`: of the reader or the splitter.

    Raises TypeError for a property that neither has.

    >>> parts_of("sales.csv", None, block_size=997, on_bad_row="drop").reader.on_bad_row
    'drop'
    >>> parts_of("sales.csv", None, on_bad_rows="drop")
    Traceback (most recent call last):
    TypeError: dag.read() has no property 'on_bad_rows'; did you mean 'on_bad_row'?
    """
    names, problem = as_paths(paths), None
    if kind is None:
        formats = {path: _format_of(path) for path in names}
        unknown = [path for path, each in formats.items() if each is None]
        several = len({str(kind) for kind in formats.values()}) > 1
        if unknown:
            problem = f"the name {unknown[0]!r} does not tell the format of the files"
        elif several:
            problem = f"the files have several formats: {', '.join(formats)}"
        kind = "csv" if problem else next(iter(formats.values()), "csv")
    folders, scanner = _inputs(names)
    of_reader, of_splitter = (
        {field.alias for field in attrs.fields(each) if field.init} - {"format", "files", "scanner"}
        for each in (ScanReader, FileSplitterInput)
    )
    for name in properties.keys() - of_reader - of_splitter:
        close = suggest(name, [*of_reader, *of_splitter, "format", "name"])
        raise TypeError(f"dag.read() has no property {name!r}" + (f"; did you mean {close!r}?" if close else ""))
    return Parts(
        FileSplitterInput(files=folders, scanner=scanner, **{n: properties[n] for n in properties.keys() - of_reader}),
        ScanReader[Any](format_named(kind), **{n: properties[n] for n in properties.keys() & of_reader}),
        problem,
    )


def _inputs(names: list[str]) -> tuple[list[str], TimeBasedDirectoryScanner]:
    """Return the files and folders of paths and patterns, and the scanner that finds in them what the patterns match."""
    if not any(map(GLOB.search, names)):
        return names, TimeBasedDirectoryScanner()
    folders, accepted, is_deep = [], [], False
    for name in names:
        words = name.split("/")
        first = next((at for at, word in enumerate(words) if GLOB.search(word)), len(words))
        folder = "/".join(words[:first]) or ("/" if name.startswith("/") else ".")
        if words[-1] == "**":
            words.append("*")
        own = "".join(map(_regular, words[first:-1])) + _regular(words[-1])[:-1] if first < len(words) else "(.*/)?[^/]*"
        folders.append(folder)
        accepted.append(re.escape(absolute(folder).rstrip("/")) + ("/" if first < len(words) else "/?") + own)
        is_deep = is_deep or first < len(words) - 1 or first == len(words)
    pattern = "|".join(f"(?:{each})" for each in accepted)
    return list(dict.fromkeys(folders)), TimeBasedDirectoryScanner(file_pattern_regular_exp=pattern, recursive=is_deep)


def _regular(word: str) -> str:
    r"""Return a part of a pattern, with the slash behind it, as a regular expression.

    >>> _regular("part-*.csv"), _regular("**")
    ('part\\-[^/]*\\.csv/', '(.*/)?')
    """
    if word == "**":
        return "(.*/)?"
    meanings = {"*": "[^/]*", "?": "[^/]"}
    parts = (
        meanings.get(part[:1], part.replace("[!", "[^")) if GLOB.match(part) else re.escape(part)
        for part in re.split(r"(\*+|\?|\[[^/\]]+\])", word)
    )
    return "".join(parts) + "/"


def _format_of(path: str) -> Any:
    """Return the format of the files of a path, pattern or local folder by their names; None if they do not tell it."""
    for name in (path, *_below(path)):
        stem, end = os.path.splitext(name.lower())
        if (known := ENDS.get(os.path.splitext(stem)[1] if end in PACKED else end)) is not None:
            return known
    return None


def _below(path: str) -> Iterator[str]:
    """Yield the names of files in a local folder, in order: not those that are hidden."""
    folder = local_path(path)
    if folder is None or not os.path.isdir(folder):
        return
    for _, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each[0] not in "._")
        yield from sorted(each for each in files if each[0] not in "._")[:MANY]
