"""Lines as they stand in one block, for readers that recognise a partial record themselves."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
from typing_extensions import override

from operators.contexts.lines import LinesContext
from operators.contexts.source import Source


@attrs.define
class LineReaderContext(LinesContext):
    r"""Lines, without a look at what stands before the block.

    The last line that starts before the block's stop is read to its end; if a line ends exactly at stop, nothing is read
    past it. A block that begins inside a line yields the tail of that line as a record, which the block before
    has yielded whole: `convert_to_record` must recognise such tails (by their length, say) and return None for them.
    So the records depend on the cuts, and used bytes sum to more than the file's length. Where every line is to come
    once and no test of a record is at hand, use ReadAheadLineReaderContext.

    Departures from Malhar: blank lines are records; bytes are not decoded to find lines;
    the end of a file is found however long its last line is.

    >>> import io
    >>> from dagflow import FileBlockMetadata
    >>> context = LineReaderContext()
    >>> context.initialize(io.BytesIO(b"ab\ncd\nef\n"), FileBlockMetadata(1, "f", start=4, stop=8, file_length=9), False)
    >>> context.next().record, context.next().record, context.next()
    (b'd', b'ef', None)
    """

    cuts: ClassVar[Literal["any", "fixed"]] = "fixed"

    @override
    def _reuse(self, stopped_at: int, source: Source) -> bool:
        at = source.start - self._base
        if not 0 <= at <= len(self._data):
            return False
        self._at = at
        source.seek(self._base + len(self._data))
        return True

    @override
    def _align(self, source: Source) -> None:
        """Do nothing: the block's first byte is taken for the beginning of a record."""
