"""The base of formats: what a format says of itself, and how it makes readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.scan.files import FileSchemaNegotiator
    from dagflow.scan.readers.managed import ManagedReader
    from dagflow.storage import BinaryReader


class Format(ABC):
    """A file format: an attrs class whose fields are its options. `ScanReader(format=…)` reads it, `scan_table` without a run.

    A subclass writes `make_reader`, and says with class attributes what it can do.
    """

    cuts: ClassVar[Literal["any", "none"]] = "none"
    """"any": rows are the same however the file is cut into blocks, since each reader finds the first row that starts in its
    range (a line, a row group, a sync mark) and reads on to the end of the last. "none": a file is read as a whole, by the
    reader of its first block; the others have nothing."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The usual suffixes of such files, without the dot."""

    offers_array: ClassVar[bool] = False
    """True if a row may be read as the array `columns` of its fields: for text whose columns may have no names."""

    has_header: bool = True
    """With `offers_array`: whether the files name their columns. A field or property of the format may say it; where it is False
    and no schema is given, there is only the array."""

    @property
    def tested_columns(self) -> tuple[str, ...]:
        """The columns, and fields of structs, that the format has conditions on, as they are asked for.

        Where files are looked at, one of them, or their folders, must have each.
        """
        return ()

    def column_name(self, asked: str) -> str:
        """Return the name of the column that is asked for as `asked`, if no column is called that: where formats clean names."""
        return asked

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return whether every record of a file is whole up to the end of any `end`, outside of `quote`s where that is not None.

        Then files that are appended to may be read in parts.
        """
        return False

    @abstractmethod
    def make_reader(self) -> ManagedReader[FileSchemaNegotiator]:
        """Return a fresh reader for one block of one file."""

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of a file, told from its header or a bounded sample of its beginning; None: nothing can be told.

        What every file of a scan says is put together before data flows, so that all readers give the same types. A column of
        which only nulls were seen has the type `pa.null()`. Without this method, the first rows that the reader loads tell.
        """
        return None
