"""The schema of many files, agreed on before data flows: a bounded look at headers and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dagflow.arrow_types import type_text, wider
from dagflow.model.operator.context import OperatorContext
from dagflow.model.types.records import FileBlockMetadata
from dagflow.ranges import OffsetRangeTracker
from dagflow.scan.columns import reads_array
from dagflow.scan.files import FileSchemaNegotiator, FileSplit
from dagflow.scan.format import Format
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.loader import BatchLimits, ResultSetLoader, counted
from dagflow.scan.readers.machine import closing
from dagflow.scan.schema.implicit import FileFacts, common_folder, key_types
from dagflow.scan.schema.plain import plain_schema
from dagflow.scan.schema.projection import is_implicit
from dagflow.scan.schema.shape import Agreed
from dagflow.scan.schema.table import RESCUED, Drift
from dagflow.scan.schema.types import to_type

if TYPE_CHECKING:
    from dagflow.scan.settings import ScanSettings
    from dagflow.storage import BinaryReader

SAMPLE_ROWS = 10_000

Files = Mapping[str, int]
"""Files by path, with their lengths."""
Open = Callable[[str], AbstractContextManager[Any]]


def agree(
    format: Format,
    settings: ScanSettings,
    files: Files,
    open_file: Open,
    keeps: Callable[[FileFacts, Mapping[str, str]], bool] = lambda facts, keys: True,
) -> Agreed:
    """Return what all readers of these files need to know, from a look at `settings.sample_files` of them at most.

    Looked at are files from the first to the last, evenly spread; each says its columns itself (`Format.sample_schema`), and what
    they say is put together: a column has the type that is wide enough for all. Nothing is opened where the user has said all,
    and no file that `keeps(facts, types of keys)` refuses.
    """
    root = settings.root if settings.root is not None else common_folder(files)
    facts = {path: FileFacts.of(path, root) for path in files}
    keys = key_types(facts.values())
    readable = [path for path, length in files.items() if length > 0 and keeps(facts[path], keys)]
    chosen = spread(readable, settings.sample_files) if looks(format, settings) else []
    found: dict[str, pa.DataType] = {}
    telling = 0
    for path in chosen:
        with open_file(path) as stream:
            look = _first_loaded if type(format).sample_schema is Format.sample_schema else type(format).sample_schema
            said = look(format, stream, path, files[path])
        telling += bool(said)
        for f in plain_schema(said or pa.schema([])):
            found[f.name] = wider(found[f.name], f.type) if f.name in found else f.type
    columns = tuple((name, type_text(kind)) for name, kind in found.items())
    return Agreed(columns=columns, files=telling, root=root, keys=keys)


def _first_loaded(format: Format, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
    """Return the columns that a format's reader says, or loads first; rows that it cannot read say nothing."""
    block = FileBlockMetadata(0, path, 0, length, length, is_last_block=True)
    limits = BatchLimits()
    negotiator = FileSchemaNegotiator(
        context=OperatorContext(),
        limits=limits,
        build=lambda asking: ResultSetLoader(limits=limits, path=path),
        report=lambda row: None,
        split=FileSplit(path, 0, length, length, block, OffsetRangeTracker(0, length)),
        stream=stream,
        options=format,
    )
    reader = ManagedBatchReader(
        reader=format.make_reader(), negotiator=negotiator, output=lambda harvest: harvest.batch, empty_of=lambda: counted(0)
    )
    rows = 0
    with closing(reader.close):
        if reader.open() and not negotiator.is_schema_complete:
            while rows < SAMPLE_ROWS and (batch := reader.next()) is not None:
                rows += batch.num_rows
    loaded = negotiator.loader.schema if negotiator.loader is not None else None
    said = negotiator.table_schema
    if said is None or loaded is None:
        return said if loaded is None else loaded
    return pa.schema([*said, *(f for f in loaded if f.name not in said.names)])


def go_on(before: Agreed, found: Agreed, drift: Drift) -> Agreed:
    """Add what was found now to what was agreed on for earlier windows. What is there stays, types included.

    Types become wide enough for what was found, where `drift.changed` is "widen".

    >>> one, two = Agreed(columns=(("a", "int64"),)), Agreed(columns=(("b", "bool"), ("a", "string")))
    >>> go_on(one, two, Drift()).columns, go_on(one, two, Drift(changed="widen")).columns
    ((('a', 'int64'), ('b', 'bool')), (('a', 'string'), ('b', 'bool')))
    """
    columns = dict(before.columns)
    for name, kind in found.columns:
        if name not in columns or columns[name] == "null":
            columns[name] = kind
        elif drift.changed == "widen":
            columns[name] = type_text(wider(to_type(columns[name]), to_type(kind)))
    return Agreed(
        columns=tuple(columns.items()),
        files=before.files + found.files,
        root=before.root,
        keys={**found.keys, **before.keys},
    )


def is_enough(format: Format, settings: ScanSettings, agreed: Agreed) -> bool:
    """Return whether what was agreed on for earlier windows says all that has to be known of further files."""
    drift = settings.drift
    if not looks(format, settings):
        return True
    if not agreed.files or (settings.projection.has_star and "widen" in (drift.extra, drift.changed)):
        return False
    given = () if settings.schema is None else settings.schema.columns
    known = {name for name, _ in agreed.columns}.union(agreed.keys, given)
    asked = [a.root for a in settings.projection.asked or () if not a.is_star]
    return all(r in known or format.column_name(r) in known or r == RESCUED or is_implicit(r) for r in asked)


def looks(format: Format, settings: ScanSettings) -> bool:
    """Return whether files have to be looked at: not where a schema says all that is asked for."""
    if reads_array(format, settings) or not format.has_header:  # without names, there is nothing beside a schema
        return False
    schema, asked = settings.schema, settings.projection.asked
    if schema is None:
        return asked is None or bool(asked)
    return not schema.strict and (settings.projection.has_star or any(a.root not in schema.columns for a in asked or ()))


def told(format: Format, settings: ScanSettings) -> str:
    """Describe in a plan where the columns of a scan come from."""
    if reads_array(format, settings):
        return "columns: list<string>"
    given = () if settings.schema is None else settings.schema.columns.items()
    if looks(format, settings):
        when = f"agreed on before window 0, by a look at {settings.sample_files} files at most"
        asked = "" if settings.columns is None else f": {', '.join(settings.columns)}"
        return f"{when}{asked}" + (f"; given: {', '.join(name for name, _ in given)}" if given else "")
    shown = dict(given) if settings.projection.has_star else {each.root: None for each in settings.projection.asked or ()}
    names = [
        f"{name}: {type_text(settings.schema.columns[name].arrow)}"
        if settings.schema and name in settings.schema.columns
        else name
        for name in shown
    ]
    return ", ".join(names) if names else "no columns, only the number of rows"


def spread(paths: Sequence[str], most: int) -> list[str]:
    """At most so many of a list, evenly spread, the first and the last among them.

    >>> spread("abcdefg", 3), spread("ab", 3)
    (['a', 'd', 'g'], ['a', 'b'])
    """
    if len(paths) <= most:
        return list(paths)
    if most < 2:
        return list(paths[:most])
    return [paths[round(n * (len(paths) - 1) / (most - 1))] for n in range(most)]


def files_of(blocks: Iterable[Any]) -> dict[str, int]:
    """Return the files of blocks, in the order in which they come."""
    return {block.file_path: block.file_length for block in blocks}
