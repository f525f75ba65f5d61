"""The log of a work item whose parts are read by several tasks: one of these parts *completes* the item.

Entries are published create-if-absent under the next number, so each task that has read a part sees the entries before its own.
The first part after which nothing is missing completes the item. If the attempt that read it dies, a later part does, since the
task is begun again and reads its parts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from dagflow.model.types.plain_data import dumps, loads
from dagflow.runtime.run_folder.layout import entry_name, item_name
from dagflow.runtime.stage.parts import Part, part_of
from dagflow.storage import Store, read_sealed, seal


@attrs.frozen
class FinishedPart:
    """An entry: a part that has been read, the attempt and partition that read it, and whether it completes the item."""

    part: Part
    partition: int
    attempt: str
    completes: bool

    def to_bytes(self) -> bytes:
        """Return the entry as a record of the store."""
        return dumps([self.part._replace(completes=False).to_list(), self.partition, self.attempt, self.completes])

    @classmethod
    def of(cls, record: bytes) -> FinishedPart:
        """Return the entry in a record."""
        part, partition, attempt, completes = loads(record)
        return cls(part_of(part), partition, attempt, completes)


def finish(store: Store, area: str, part: Part, *, partition: int, attempt: str, counts: Callable[[int, str], bool]) -> bool:
    """Note that a part has been read; return whether it completes its item.

    `area`: the name of the logs of the stage in this epoch of the window, up to their numbers. `counts`: tells whether an attempt
    of a partition is its last one; the parts that earlier attempts have read count as read all the same.
    """
    name = item_name(area, part.number)
    entries: list[FinishedPart] = []
    while True:
        while (record := read_sealed(store, entry_name(name, len(entries)))) is not None:
            entries.append(FinishedPart.of(record.body))
        is_told = any(each.completes and counts(each.partition, each.attempt) for each in entries)
        completes = not is_told and is_all([part, *(each.part for each in entries)])
        entry = entry_name(name, len(entries))
        if store.create(entry, seal(entry, FinishedPart(part, partition, attempt, completes).to_bytes())):
            return completes


def is_all(parts: Iterable[Part]) -> bool:
    """Return whether parts of an item make up all of it, however often each byte is in them.

    >>> is_all([Part(0, 5, None), Part(0, None, 4)]), is_all([Part(0, 3, None), Part(0, None, 4)])
    (False, True)
    """
    at: Any = None
    for number, part in enumerate(sorted(parts, key=lambda part: part.place)):
        if part.start is not None and (number == 0 or at is None or part.start > at):
            return False
        if part.stop is None:
            return True
        at = part.stop if at is None else max(at, part.stop)
    return False
