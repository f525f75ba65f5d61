"""An operator of the user's own."""

from __future__ import annotations

import attrs
from helpers.words import loud

from dagflow import InputPort, Operator, OutputPort, ReaderRecord


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
