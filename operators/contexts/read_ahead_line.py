"""Lines that are whole wherever a file is cut: the default context."""

from __future__ import annotations

import attrs
from typing_extensions import override

from dagflow.config import KiB
from operators.contexts.lines import LinesContext
from operators.contexts.source import Source
from operators.contexts.terminators import terminator_rules

WINDOW_BYTES = 64 * KiB  # how much is looked at a time when going back over a row of overlapping delimiters


@attrs.define
class ReadAheadLineReaderContext(LinesContext):
    r"""Lines; a line belongs to the block in which it starts, whole, wherever the file was cut.

    A block that does not begin its file looks at the byte before its start to know whether a line starts there, skips to
    the first line that does, and reads ahead, past its stop, to the end of the last line that starts before it, and no
    further than that takes. So every line comes once, and used bytes over all blocks sum to the file's length (without a
    `\r` alone after the last line, which is not a line).

    Departures from Malhar: a line that starts exactly at a block's stop belongs to the next block, not to this
    one; blank lines are records; text is never decoded to find lines.
    Terminators may be cut in half by a block's edge. Raises RecordTooLong, FileShortened.

    >>> import io
    >>> from dagflow import FileBlockMetadata
    >>> context = ReadAheadLineReaderContext()
    >>> context.initialize(io.BytesIO(b"ab\r\ncd\nef"), FileBlockMetadata(1, "f", start=3, stop=8, file_length=9), False)
    >>> context.next(), context.next()
    (Entity(record=b'cd', used_bytes=3, position=4, is_split_point=True),
     Entity(record=b'ef', used_bytes=2, position=7, is_split_point=True))
    >>> context.next() is None
    True
    """

    @override
    def look_back(self) -> int | None:
        rules = terminator_rules(self.terminators)
        return None if rules.is_overlapping else rules.look_back

    @override
    def _reuse(self, stopped_at: int, source: Source) -> bool:
        # A block that was read to its end left us at the first line that starts at or after its stop.
        if not (self._is_over and self._is_aligned and stopped_at == source.start):
            return False
        source.seek(self._base + len(self._data))
        return True

    @override
    def _align(self, source: Source) -> None:
        start, rules = source.start, self._rules
        if start == 0:
            return
        position = self._sync(source, start)
        source.seek(position)
        data, at = b"", 0
        # A line that starts at or after stop is not ours: what lies there need not be looked at.
        while source.position < source.stop:
            kept = data[max(at, len(data) - rules.overlap) :]
            position += len(data) - len(kept)
            data = kept + source.read(min(self.piece_bytes, source.stop - source.position))
            at = 0
            while (end := rules.next_end(data, at, False)) >= 0:
                if position + end >= start:
                    self._data, self._at, self._base = data, end, position
                    return
                at = end
            if source.is_at_end:
                break
        self._data, self._at, self._base, self._is_aligned = b"", 0, source.stop, False  # inside a line all the way

    def _sync(self, source: Source, start: int) -> int:
        """Return a place from which a scan finds the same ends at or after `start` as a scan of the whole file."""
        rules = self._rules
        place = max(0, start - rules.look_back)
        if not rules.is_overlapping:
            return place
        reach = rules.look_back - 1
        while place > 0:
            low = max(0, place - max(WINDOW_BYTES, 2 * reach))
            source.seek(low)
            data = source.read(place + reach - low)
            place = low + rules.sync(data, place - low, 0)
            if low == 0 or place - low >= reach:  # else an occurrence that begins before `low` might overlap it
                return place
        return 0
