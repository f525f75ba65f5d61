"""The base class of formats: their properties, and the readers that they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.scan.files import FileSchemaNegotiator
    from dagflow.scan.readers.managed import ManagedReader
    from dagflow.scan.schema.numbers import NumberText
    from dagflow.storage import BinaryReader


class Format(ABC):
    """A file format: an attrs class whose fields are its options. `ScanReader(format=…)` reads it, `scan_table` without a run.

    A subclass defines `make_reader`, and declares its abilities in class attributes.
    """

    cuts: ClassVar[Literal["any", "none"]] = "none"
    """"any": the rows do not depend on how the file is cut into blocks, since each reader finds the first row that starts in its
    range (a line, a row group, a sync mark) and reads to the end of the last one. "none": a file is read as a whole, by the
    reader of its first block."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The usual suffixes of such files, without the dot."""

    leaves_out_columns: ClassVar[bool] = False
    """True if readers need not load the columns that no operator reads, where a file has them with the types of the scan: then
    no row is bad for a value in one of them."""

    offers_array: ClassVar[bool] = False
    """True if a row may be read as the array `columns` of its fields: for text whose columns may have no names."""

    has_encoding: ClassVar[bool] = False
    """True if the format has the option `encoding`, which messages about bytes that are not text name."""

    has_header: bool = True
    """With `offers_array`: whether the files name their columns. A field or property of the format may override it. If it is
    False and there is no schema, there is only the array."""

    @property
    def numbers(self) -> NumberText | None:
        """The spelling of numbers in files of text; None for formats whose numbers are not text, or have a syntax of their own.

        `is_inferred` False says that options of the format declare the types of columns, so that `007` may be a number.
        """
        return None

    def number_problem(self, numbers: NumberText) -> str | None:
        """Return the problem of a spelling of numbers that a column has in these files, None without any."""
        return None

    @property
    def tested_columns(self) -> tuple[str, ...]:
        """The columns, and fields of structs, that the format has conditions on, as they are written in a projection.

        If files are sampled, one of them, or its folders, must have each.
        """
        return ()

    def column_name(self, asked: str) -> str:
        """Return the name of the column that is selected as `asked`, if no column has that name: for formats that clean names."""
        return asked

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return whether each `end` outside of `quote`s ends a record. Then files that grow may be read in parts."""
        return False

    @abstractmethod
    def make_reader(self) -> ManagedReader[FileSchemaNegotiator]:
        """Return a fresh reader for one block of one file."""

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of a file, from its header or a bounded sample of its beginning; None if they cannot be known.

        The columns of all sampled files are combined before data flows, so that all readers return the same types. A column of
        nulls has the type `pa.null()`. Without this method, the sample is the first rows that the reader loads.
        """
        return None
