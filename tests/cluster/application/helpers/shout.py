"""An operator of the user's own."""

from __future__ import annotations

import attrs

from dagflow import InputPort, Operator, OutputPort, ReaderRecord
from helpers.words import loud


@attrs.define
class Shout(Operator):
    """Lines in capitals."""

    mark: str

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        """Passes the line on, loud."""
        self.output.emit(loud(line.record) + self.mark)
