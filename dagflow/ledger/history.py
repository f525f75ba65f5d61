"""The history of a dataset, newest entry first, and the progress of each entry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from dagflow.ledger.codec import encode_entry
from dagflow.ledger.events import AddData, DataEvent, ExecuteQuery, LedgerEntry
from dagflow.ledger.reader import LedgerReader

WATERMARK = "watermark"
CHECKPOINT = "state"


@attrs.frozen(kw_only=True)
class Step:
    """An entry, and what it changed of what the entries before it carry.

    Attributes:
        moved: the names of the sources or the ids of the inputs that went on, then `state` and `watermark` if those did.
    """

    entry: LedgerEntry
    moved: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the entry as it is stored, with its `hash`, and `moved`."""
        stored: dict[str, Any] = json.loads(encode_entry(self.entry).partition(b"\n")[0])
        return {"hash": self.entry.hash, "moved": list(self.moved), **stored}


def history(ledger: LedgerReader, *, since: int | None = None, data_only: bool = False) -> Iterator[Step]:
    """Yield the entries, newest first; each is checked against its neighbour.

    Args:
        ledger: whose.
        since: nothing made before this time (microseconds since the epoch).
        data_only: only entries that added rows; what lies between them is not read.

    Raises LedgerMissing, LedgerDamaged.
    """
    ledger.seed()
    for entry in ledger.data_entries() if data_only else ledger.entries(newest_first=True):
        if since is not None and entry.system_time < since:
            return
        yield step(ledger, entry)


def step(ledger: LedgerReader, entry: LedgerEntry) -> Step:
    """Return an entry and what it moved: at most two reads."""
    if entry.data is None:
        return Step(entry=entry)
    number = ledger.entry(entry.seq - 1).carried.data
    return Step(entry=entry, moved=tuple(_moved(entry.data, None if number is None else ledger.entry(number).data)))


def _moved(event: DataEvent, before: DataEvent | None) -> Iterator[str]:
    if isinstance(event, AddData):
        known = before.sources if isinstance(before, AddData) else {}
        yield from sorted(name for name, state in event.sources.items() if known.get(name) != state)
    if isinstance(event, ExecuteQuery):
        yield from (each.dataset_id for each in event.inputs if each.new_block is not None)
    if event.new_checkpoint is not None and event.new_checkpoint.hash != event.prev_checkpoint:
        yield CHECKPOINT
    if event.new_watermark is not None and event.new_watermark != (None if before is None else before.new_watermark):
        yield WATERMARK
