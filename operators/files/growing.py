"""Files that are appended to: which part of one is new, and whether the part that was read before is still what it was."""

from __future__ import annotations

import attrs

from dagflow.storage import FILES_ALGORITHM, FileStatus, file_system, new_hash, read_fully
from operators.compression import recognise
from operators.files.errors import FileNotAppended

CHUNK = 4 * 1024 * 1024


@attrs.frozen
class ReadPart:
    """The part of a file, from its start, whose records have been planned: how long it is, and the hash of its bytes.

    It is kept as one short text, since a run keeps one for every file.

    >>> ReadPart.of(str(ReadPart(12, "af13")))
    ReadPart(end=12, hash='af13')
    """

    end: int
    hash: str

    @classmethod
    def of(cls, text: str) -> ReadPart:
        """Return the part that a text stands for."""
        end, _, value = text.partition(":")
        return cls(int(end), value)

    def __str__(self) -> str:
        return f"{self.end}:{self.hash}"


@attrs.frozen
class Growth:
    """The result of a look at a file.

    Attributes:
        part: all whole records of the file, new ones and those that were planned before.
        begin: where the new ones begin.
        held_back: how many bytes stand behind the last whole record: they wait for the end of theirs.
        compression: of a file that was not seen before and is compressed, its compression: it is read whole.
    """

    part: ReadPart
    begin: int
    held_back: int
    compression: str | None = None


@attrs.define
class RecordEnds:
    r"""Finds the last place in a stream of bytes behind which a record ends: behind `end`, and outside of `quote`s.

    >>> ends = RecordEnds(b"\n", b'"')
    >>> ends.last_in(b'a,"x\ny"\nb,"z\n'), ends.last_in(b'"\nc'), ends.last_in(b"d")
    (8, 2, 0)
    """

    end: bytes
    quote: bytes | None = None
    _carried: bytes = attrs.field(init=False, default=b"")
    _is_quoted: bool = attrs.field(init=False, default=False)

    def last_in(self, chunk: bytes) -> int:
        """Return the number of bytes of the next chunk that belong to whole records; 0 if no record ends in it."""
        carried = len(self._carried)
        data = self._carried + chunk
        quoted = self._is_quoted != bool(self._quotes(data, carried, len(data)) % 2)
        self._is_quoted = quoted
        self._carried = data[len(data) - min(len(data), len(self.end) - 1) :]
        end, behind = len(data), 0
        while (end := data.rfind(self.end, 0, end)) >= 0:
            after = end + len(self.end)
            quoted = quoted != bool(self._quotes(data, after, behind or len(data)) % 2)
            if not quoted:
                return after - carried
            behind = after
        return 0

    def _quotes(self, data: bytes, start: int, stop: int) -> int:
        return 0 if self.quote is None else data.count(self.quote, start, stop)


def look(status: FileStatus, before: ReadPart | None, end: bytes, quote: bytes | None, operator: str) -> Growth:
    """Read a file up to its length, once: the planned part must have the hash that it had, what follows is new.

    Raises FileNotAppended, OSError.
    """
    path, known = status.path, 0 if before is None else before.end
    read, ends, position = new_hash(FILES_ALGORITHM), RecordEnds(end, quote), 0
    with file_system(path).open(path) as stream:
        while position < known and (chunk := read_fully(stream, min(CHUNK, known - position))):
            read.update(chunk)
            position += len(chunk)
        if before is not None and (position < known or read.hexdigest() != before.hash):
            why = "it is shorter than that now" if position < known else "other bytes stand there now"
            raise FileNotAppended(operator=operator, path=path, read=known, length=status.length, why=why)
        part = ReadPart(known, read.hexdigest())
        while position < status.length and (chunk := read_fully(stream, min(CHUNK, status.length - position))):
            if position == 0 and (compression := recognise(chunk)) is not None:
                return Growth(part, 0, 0, compression)
            whole = ends.last_in(chunk)
            read.update(chunk[:whole])
            if whole:
                part = ReadPart(position + whole, read.hexdigest())
            read.update(chunk[whole:])
            position += len(chunk)
    return Growth(part, known, position - part.end)
