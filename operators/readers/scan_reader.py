"""ScanReader: files of rows and columns, as batches."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import FileBlockMetadata, InputPort, OperatorContext
from dagflow.arrow_types import type_text
from dagflow.errors import ScanError
from dagflow.ranges import OffsetRangeTracker
from dagflow.scan import (
    AgreedSchema,
    FileFacts,
    FileScan,
    Format,
    TableSchema,
    describe_columns,
    is_number,
    make_scan,
    reads_array,
)
from dagflow.storage import explained
from operators.contexts.errors import ReadError
from operators.formats.named import format_named
from operators.formats.predicates import Predicate, predicates
from operators.names import names_of_columns
from operators.problems import all_problems, problems_of
from operators.readers.abstract_scan_reader import ReadsColumns
from operators.readers.path_filter import PathFilter
from operators.readers.planned_files import ReadsPlannedFiles
from operators.readers.reading.record_finder import clipped


def a_format(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that holds a format."""
    if not isinstance(value, Format):
        raise TypeError(f"{attribute.name} is {value!r}, but must be a format: CsvFormat(…), JsonLinesFormat(…), …")


T = TypeVar("T", default=Any)

if TYPE_CHECKING:
    FormatOrName = Format
else:
    FormatOrName = Format | str  # configuration may give a name, which the converter replaces


@attrs.define
class ScanReader(ReadsPlannedFiles, ReadsColumns[T], Generic[T]):
    r"""Reads blocks of files of a format (CSV, JSON lines, Parquet…) and emits batches of their columns.

    The columns and their types are settled before the first window, from a sample of the files, and then stay the same: see
    docs/explanation/scans.md. `ScanReader[Trip](…)` reads the fields of the attrs class `Trip`, and no others, as columns of
    their types: operators behind it get `Trip`s, or batches of them. `schema` may then say how their text is read:
    `{"day": Column(format="%d.%m.%Y")}`.

    Args:
        format: the format, with its options: `CsvFormat(delimiter=";")`. Or the name of one without options: `csv`,
            `json_lines`, `parquet`, `avro`, or a name that an installed package offers.
        columns: which columns, in this order; None or `["*"]`: all that the files have; []: only the number of rows matters.
            `a.b` is a field of a struct, `a[0]` an element of a list; `filename`, `dir0`, … are known of each file.
        schema: the columns with their types, as text (`"id: int64, tags: list<string>"`), a mapping, a `pyarrow.Schema` or a
            TableSchema; None: what is found in the files.
        drift: what becomes of files that are not as the schema says.
        on_bad_row: "fail" ends the run at a row that cannot be read; "drop" leaves it out (counter `bad_rows`), "route" also
            emits it on the port `errors`, as a BadRow.
        limits: how large batches get.
        null_type: the type of columns of which no value was seen.
        root: the folder below which `dir0` begins; None: the deepest one that has all files of the first window.
        sample_files: how many files are looked at, at most.
        where: conditions on what paths say, `[("year", ">=", 2024), ("filename", "!=", "old.csv")]`: only files for which all
            hold are read; others are not opened (counter `blocks_pruned`).
        only: the columns that are emitted; None: all. Names that files do not have may be among them. The planner gives those
            that operators behind the reader read, where `format` can leave the others out.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.
        allow_growth: see ReadsPlannedFiles.

    Counters: `blocks`, `records`, `batches`, `bytes` (of blocks), `bad_rows`, `values_nulled`, `values_rescued`,
    `columns_in_another_case` (files that lack a column, and have one whose name differs only in case), `streams_opened`,
    `blocks_unsplittable`, `time_ms`.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import JsonLinesFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.jsonl")
    ...     _ = path.write_text('{"n": 1, "m": {"s": "one"}}\n{"n": 2}\n')
    ...     scan_table(ScanReader(JsonLinesFormat(), columns=["m.s", "n", "filename"]), path).to_pylist()
    [{'m.s': 'one', 'n': 1, 'filename': 'a.jsonl'}, {'m.s': None, 'n': 2, 'filename': 'a.jsonl'}]
    """

    format: FormatOrName = attrs.field(converter=format_named, validator=a_format)
    root: str | None = attrs.field(default=None, kw_only=True)
    sample_files: int = attrs.field(
        default=64, kw_only=True, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)]
    )

    where: tuple[Predicate, ...] = attrs.field(default=(), kw_only=True, converter=predicates)
    only: frozenset[str] | None = attrs.field(default=None, kw_only=True, converter=attrs.converters.optional(names_of_columns))

    blocks_metadata_input = InputPort[FileBlockMetadata]()

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if not problems:  # the schema can be made
                problems.extend(problems_of(lambda: reads_array(self.format, self.scan_settings)))

    def number_problems(self) -> list[str]:
        """Return the problems of columns with a spelling of numbers, and of the format with it."""
        name, of_format = type(self.format).__name__, self.format.numbers
        schema = self.scan_settings.schema
        columns = {} if schema is None else {n: c for n, c in schema.columns.items() if c.spells_numbers}
        if of_format is None:
            return [f"column {n!r} has decimal or thousands, but numbers of {name} are not text" for n in columns]
        problems = []
        for column, settings in columns.items():
            if not is_number(settings.arrow):
                problems.append(f"column {column!r} has decimal or thousands, but is of type {type_text(settings.arrow)}")
                continue
            numbers = settings.numbers(of_format)
            problem = numbers.problem() or self.format.number_problem(numbers)
            problems += [f"column {column!r}: {problem}"] if problem else []
        return problems

    # For the planner

    @property
    def splittable(self) -> bool:
        """True if a block may be cut anywhere, also while it is being read."""
        return self.format.cuts == "any"

    def can_split(self, item: FileBlockMetadata) -> bool:
        """Return True if a block may be split into parts that are read by different readers."""
        return self.splittable and item.as_planned

    def tracker_of(self, item: FileBlockMetadata) -> OffsetRangeTracker:
        """Return a new tracker of the range of a block, or of a part of one."""
        return OffsetRangeTracker(item.start, item.stop)

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Ask the format."""
        return self.format.ends_records(end, quote)

    def why_no_parts(self) -> str:
        """Name the format."""
        return f"records of {type(self.format).__name__} do not end there"

    def agree(self, items: Sequence[FileBlockMetadata], before: Any, context: OperatorContext) -> Any:
        """On the driver, before a window's plan is published: what all its readers are to know, as plain data.

        The first window's files are looked at; what was found stays for all later ones. Those of later windows are looked at
        where columns are asked for that no file had, and where `drift` says that columns or types widen.
        """
        from dagflow.scan import agree, extend_schema, files_of, is_enough

        self.check_parts(items, context.name)
        known = None if before is None else AgreedSchema.of(before)
        if known is not None and is_enough(self.format, self.scan_settings, known):
            return before
        by_path = {item.file_path: item for item in items}

        filters: list[PathFilter] = []

        def keeps(facts: FileFacts, keys: Mapping[str, str]) -> bool:
            if not filters:
                filters.append(PathFilter(self.where, keys))
                filters[0].check()
            return filters[0].keeps(facts)

        def opened(path: str) -> Any:
            return self.setup_stream(by_path[path])

        try:
            with explained(next(iter(by_path), ""), "reading"):
                agreed = agree(
                    self.format,
                    self.scan_settings,
                    files_of(map(self._by_now, items)),
                    opened,
                    keeps,
                    warn=context.warn,
                    before=known,
                )
            folders = {item.folder_columns for item in items}
            if None not in folders:
                columns = [column for text in sorted(map(str, folders)) for column in TableSchema.of(text).columns.items()]
                agreed = attrs.evolve(agreed, keys={name: str(column.type) for name, column in columns})
            if known is not None:
                agreed = extend_schema(known, agreed, self.drift)
            self._made(agreed, context).close()  # what is asked for, and not there, is told before anything runs
        except (ReadError, ScanError) as error:
            error.reader = context.name
            raise
        return agreed.to_plain()

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """Return the columns that were agreed on."""
        if port != "batches" or agreed is None:
            return None
        scan = self._made(AgreedSchema.of(agreed), OperatorContext())
        return [(field.name, str(field.type)) for field in scan.schema]

    def describe_columns(self, port: str) -> str | None:
        """Name the source of the columns, for `dagflow plan`."""
        if port != "batches":
            return None
        read = "" if self.only is None else f", of which {', '.join(sorted(self.only)) or 'none'} are read"
        return describe_columns(self.format, self.scan_settings) + read

    def reading_only(self, port: str, columns: frozenset[str]) -> ScanReader[T]:
        """Leave out the other columns, where the format can."""
        if port != "batches" or self.only is not None or not self.format.leaves_out_columns:
            return self
        other = copy.copy(self)
        other.only = columns
        return other

    # Reading

    def setup(self, context: OperatorContext) -> None:
        """Prepare the scan."""
        agreed = AgreedSchema() if context.agreed is None else AgreedSchema.of(context.agreed)
        self._paths, self._root = PathFilter(self.where, agreed.keys), agreed.root
        self._files = self._made(agreed, context)
        self.begin(context, self._files)

    @blocks_metadata_input.process
    def read_block(self, block: FileBlockMetadata) -> None:
        """Read one block."""
        context = self._context
        context.at(block.file_path, block.start)
        self._time.begin_block()
        try:
            with explained(block.file_path, "reading"):
                self._read(block)
        except (ReadError, ScanError) as error:
            error.reader = context.name
            raise
        part = context.part
        context.count("blocks", int(part is None or part.start is None))
        context.count("bytes", self._files.consumed(block))
        self._time.end_block()

    def _read(self, block: FileBlockMetadata) -> None:
        count = self._context.count
        if self.where:
            facts = FileFacts.of(block.file_path, self._root, empty_is_null=block.empty_is_null)
            if not self._paths.keeps(facts):
                count("blocks_pruned")
                return
        if not block.as_planned:
            block = self._by_now(block)
            if block.start >= block.stop:
                count("blocks_beyond_end")
                return
        for batch in self._files.read(block):
            count("records", batch.num_rows)
            count("batches")
            with self._time.excluded:
                self.batches.emit_batch(batch)

    def _by_now(self, block: FileBlockMetadata) -> FileBlockMetadata:
        """Return the part of a planned block that is still there, where the file may have changed since."""
        return block if block.as_planned else clipped(block, self.length_by_now(block.file_path))

    def _made(self, agreed: AgreedSchema, context: OperatorContext) -> FileScan:
        return make_scan(self.format)(
            format=self.format,
            settings=self.scan_settings,
            agreed=agreed,
            context=context,
            open_stream=self._open,
            route=self._route,
        )

    def _open(self, block: FileBlockMetadata) -> Any:
        self._context.count("streams_opened")
        return self.setup_stream(block)
