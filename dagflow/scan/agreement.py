"""The schema of many files, agreed on before data flows, from headers and bounded samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import pyarrow as pa

from dagflow.arrow_types import type_text, wider
from dagflow.model.operator.context import OperatorContext
from dagflow.model.types.records import FileBlockMetadata
from dagflow.ranges import OffsetRangeTracker
from dagflow.scan.columns import reads_array
from dagflow.scan.files import FileSchemaNegotiator, FileSplit
from dagflow.scan.format import Format
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.loader import BatchLimits, ResultSetLoader, rows_without_columns
from dagflow.scan.readers.machine import closing
from dagflow.scan.readers.managed import ManagedReader, SchemaNegotiator
from dagflow.scan.schema.implicit import FileFacts, common_folder, key_types
from dagflow.scan.schema.plain import plain_schema
from dagflow.scan.schema.projection import is_implicit
from dagflow.scan.schema.shape import AgreedSchema
from dagflow.scan.schema.table import RESCUED, Drift
from dagflow.scan.schema.types import to_type

if TYPE_CHECKING:
    from dagflow.scan.settings import ScanSettings
    from dagflow.storage import BinaryReader

SAMPLE_ROWS = 10_000

T = TypeVar("T")

Files = Mapping[str, int]
"""The lengths of files, by path."""
Open = Callable[[str], AbstractContextManager[Any]]


def agree(
    format: Format,
    settings: ScanSettings,
    files: Files,
    open_file: Open,
    keeps: Callable[[FileFacts, Mapping[str, str]], bool] = lambda facts, keys: True,
    *,
    warn: Callable[[str], None] = lambda text: None,
    before: AgreedSchema | None = None,
) -> AgreedSchema:
    """Return the schema of these files, from a sample of at most `settings.sample_files`.

    The sample is evenly spread from the first file to the last. Each file has columns (`Format.sample_schema`), and a column gets
    the type that is wide enough for all files. No file is opened if the settings say all columns, nor one that
    `keeps(facts, types of keys)` refuses. `warn` is told of names that differ only in case, also from those of earlier windows.
    """
    root = settings.root if settings.root is not None else common_folder(files)
    facts = {path: FileFacts.of(path, root) for path in files}
    keys = key_types(facts.values())
    readable = [path for path, length in files.items() if length > 0 and keeps(facts[path], keys)]
    chosen = spread(readable, settings.sample_files) if needs_sampling(format, settings) else []
    merged = MergedColumns.beside(settings, before, warn)
    files_with_columns = 0
    for path in chosen:
        with open_file(path) as stream:
            look = _first_loaded if type(format).sample_schema is Format.sample_schema else type(format).sample_schema
            schema = look(format, stream, path, files[path])
        files_with_columns += bool(schema)
        merged.add(schema or pa.schema([]), path)
    return AgreedSchema(columns=merged.columns, files=files_with_columns, root=root, keys=keys)


@attrs.define
class MergedColumns:
    """The columns of files or blocks, with types that are wide enough for all.

    `warn` is told of columns that differ only in case from those of another file or of the schema: names are compared as written.
    """

    warn: Callable[[str], None]
    _spellings: dict[str, dict[str, str]] = attrs.field(factory=dict)  # by the folded name: where each spelling was seen first
    _types: dict[str, pa.DataType] = attrs.field(factory=dict)

    @classmethod
    def beside(cls, settings: ScanSettings, before: AgreedSchema | None, warn: Callable[[str], None]) -> MergedColumns:
        """Return no columns yet, of files that are read with a schema, and after those of earlier windows."""
        merged = cls(warn)
        for name in () if settings.schema is None else settings.schema.columns:
            merged._spellings.setdefault(name.casefold(), {})[name] = "the schema"
        for name, _ in () if before is None else before.columns:
            merged._spellings.setdefault(name.casefold(), {}).setdefault(name, "files of earlier windows")
        return merged

    def add(self, schema: pa.Schema, place: str) -> None:
        """Add the columns of a file or block."""
        names = frozenset(schema.names)
        for f in plain_schema(schema):
            self._types[f.name] = wider(self._types[f.name], f.type) if f.name in self._types else f.type
            spellings = self._spellings.setdefault(f.name.casefold(), {})
            if f.name in spellings:
                continue
            other = next((name for name in spellings if name not in names), None)  # a file may have both
            if other is not None:
                self.warn(
                    f"{place}: the column {f.name!r} differs from {other!r} of {spellings[other]} only in case: names are "
                    "compared as written, so they are two columns, each null where the other has values. If they are one, write "
                    f"{other!r} there, too, or merge the two behind the reader"
                )
            spellings[f.name] = place

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The names and types, as an AgreedSchema has them."""
        return tuple((name, type_text(kind)) for name, kind in self._types.items())


def _first_loaded(format: Format, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
    """Return the columns that a reader of the format declares, or loads first. Rows that it cannot read are ignored."""
    block = FileBlockMetadata(0, path, 0, length, length, is_last_block=True)
    limits = BatchLimits()
    tracker = OffsetRangeTracker(0, length)
    negotiator = FileSchemaNegotiator(
        context=OperatorContext(),
        limits=limits,
        build=lambda asking: ResultSetLoader(limits=limits, path=path),
        report=lambda row: None,
        tracker=tracker,
        split=FileSplit(path, 0, length, length, block, tracker),
        stream=stream,
        options=format,
    )
    return loaded_schema(format.make_reader(), negotiator)


def loaded_schema(managed: ManagedReader[Any], negotiator: SchemaNegotiator) -> pa.Schema | None:
    """Return the columns that a reader declares, or loads first; None if there are none."""
    reader = ManagedBatchReader(
        reader=managed,
        negotiator=negotiator,
        output=lambda harvest: harvest.batch,
        empty_of=lambda: rows_without_columns(0),
    )
    rows = 0
    with closing(reader.close):
        if reader.open() and not negotiator.is_schema_complete:
            while rows < SAMPLE_ROWS and (batch := reader.next()) is not None:
                rows += batch.num_rows
    loaded = negotiator.loader.schema if negotiator.loader is not None else None
    table_schema = negotiator.table_schema
    if table_schema is None or loaded is None:
        return table_schema if loaded is None else loaded
    known = frozenset(table_schema.names)
    return pa.schema([*table_schema, *(field for field in loaded if field.name not in known)])


def extend_schema(before: AgreedSchema, new: AgreedSchema, drift: Drift) -> AgreedSchema:
    """Add the columns of new files to the schema of earlier windows, whose columns and types stay.

    If `drift.changed` is "widen", types become wide enough for the new files.

    >>> one, two = AgreedSchema(columns=(("a", "int64"),)), AgreedSchema(columns=(("b", "bool"), ("a", "string")))
    >>> extend_schema(one, two, Drift()).columns, extend_schema(one, two, Drift(changed="widen")).columns
    ((('a', 'int64'), ('b', 'bool')), (('a', 'string'), ('b', 'bool')))
    """
    columns = dict(before.columns)
    for name, kind in new.columns:
        if name not in columns or columns[name] == "null":
            columns[name] = kind
        elif drift.changed == "widen":
            columns[name] = type_text(wider(to_type(columns[name]), to_type(kind)))
    return AgreedSchema(
        columns=tuple(columns.items()),
        files=before.files + new.files,
        root=before.root,
        keys={**new.keys, **before.keys},
    )


def is_enough(format: Format, settings: ScanSettings, agreed: AgreedSchema) -> bool:
    """Return whether the schema of earlier windows is enough for further files, without a sample of them."""
    if not needs_sampling(format, settings):
        return True
    return has_all_columns(settings, agreed, format.column_name)


def has_all_columns(
    settings: ScanSettings, agreed: AgreedSchema, named_as: Callable[[str], str] = str, has_files: bool = True
) -> bool:
    """Return whether an agreed schema has all columns that are selected, and may not get more."""
    drift = settings.drift
    if not agreed.files or (settings.projection.has_star and "widen" in (drift.extra, drift.changed)):
        return False
    provided = () if settings.schema is None else settings.schema.columns
    available = {name for name, _ in agreed.columns}.union(agreed.keys, provided)
    roots = [a.root for a in settings.projection.paths or () if not a.is_star]
    return all(r in available or named_as(r) in available or r == RESCUED or (has_files and is_implicit(r)) for r in roots)


def needs_sampling(format: Format, settings: ScanSettings) -> bool:
    """Return whether files must be sampled: not if a schema says all columns that are selected."""
    if reads_array(format, settings) or not format.has_header:  # without names, all columns come from a schema
        return False
    return needs_columns(settings)


def needs_columns(settings: ScanSettings) -> bool:
    """Return whether columns are selected that the schema of the user does not say."""
    schema, paths = settings.schema, settings.projection.paths
    if schema is None:
        return paths is None or bool(paths)
    return not schema.strict and (settings.projection.has_star or any(a.root not in schema.columns for a in paths or ()))


def describe_columns(format: Format, settings: ScanSettings) -> str:
    """Return a text for plans: the columns of a scan, or where they come from."""
    if reads_array(format, settings):
        return "columns: list<string>"
    return described(settings, f"{settings.sample_files} files" if needs_sampling(format, settings) else None)


def described(settings: ScanSettings, sample: str | None) -> str:
    """Return a text for plans: the columns of a scan. `sample`: the largest sample that they come from; None: there is none."""
    provided = () if settings.schema is None else settings.schema.columns.items()
    if sample is not None:
        when = f"agreed on before window 0, from a sample of at most {sample}"
        selected = "" if settings.columns is None else f": {', '.join(settings.columns)}"
        return f"{when}{selected}" + (f"; provided: {', '.join(name for name, _ in provided)}" if provided else "")
    columns = dict(provided) if settings.projection.has_star else {each.root: None for each in settings.projection.paths or ()}
    names = [
        f"{name}: {type_text(settings.schema.columns[name].arrow)}"
        if settings.schema and name in settings.schema.columns
        else name
        for name in columns
    ]
    return ", ".join(names) if names else "no columns, only the number of rows"


def spread(paths: Sequence[T], count: int) -> list[T]:
    """Return at most `count` items, evenly spread, with the first and the last one.

    >>> spread("abcdefg", 3), spread("ab", 3)
    (['a', 'd', 'g'], ['a', 'b'])
    """
    if len(paths) <= count:
        return list(paths)
    if count < 2:
        return list(paths[:count])
    return [paths[round(n * (len(paths) - 1) / (count - 1))] for n in range(count)]


def files_of(blocks: Iterable[Any]) -> dict[str, int]:
    """Return the files of blocks, in order, with their lengths."""
    return {block.file_path: block.file_length for block in blocks}
