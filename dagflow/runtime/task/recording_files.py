"""Files of a task that runs without a staging folder: to find rows, to compare what is written, and in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs


def _ignore(*args: Any) -> None:
    pass


@attrs.define(eq=False)
class RecordedFile:
    """A file that a task would write. `number`: among the files of its operator; `rows`: as many as its writer has counted."""

    operator: str
    folder: str
    name: str
    number: int
    _files: RecordingFiles
    rows: int = 0

    def write(self, data: Any, /) -> int:
        """See `AttemptFile.write`."""
        self._files.on_write(self, data)
        return memoryview(data).nbytes

    def records(self, count: int) -> None:
        """See `AttemptFile.records`."""
        self._files.on_records(self, count)
        self.rows += count

    def close(self) -> None:
        """See `AttemptFile.close`."""
        self._files.on_close(self)


@attrs.define
class RecordingFiles:
    """Opens files for a task, keeps none of their bytes, and calls back.

    Attributes:
        on_write: called with a file and bytes that are appended to it.
        on_records: called with a file and the number of rows by which it has grown, before they count.
        on_close: called with a file that is closed for now.
        opened: the files in the order in which they were opened first.
    """

    on_write: Callable[[RecordedFile, Any], object] = _ignore
    on_records: Callable[[RecordedFile, int], object] = _ignore
    on_close: Callable[[RecordedFile], object] = _ignore
    opened: dict[tuple[str, str, str], RecordedFile] = attrs.field(factory=dict)

    def create(self, operator: str, folder: str, name: str) -> RecordedFile:
        """See `FileMaker.create`."""
        key = (operator, folder, name)
        if key not in self.opened:
            self.opened[key] = RecordedFile(operator, folder, name, len(self.files_of(operator)), self)
        return self.opened[key]

    def files_of(self, operator: str) -> list[RecordedFile]:
        """Return the files of one operator, in their order."""
        return [file for file in self.opened.values() if file.operator == operator]
