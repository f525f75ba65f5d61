"""What a task knows of the others of its stage: their logs, and the gauges that tell how much is left."""

from __future__ import annotations

import json
import time

import attrs

from dagflow.runtime.sharing.claims import Claims, log_name
from dagflow.scaling.stealing import Reader
from dagflow.storage import Gauge, Store

SILENT = 2.0  # seconds without a new figure after which a task is taken to be dead: it will have to begin again
GAUGE = ".gauge"


@attrs.define
class _Seen:
    gauge: Gauge
    text: bytes | None = None
    at: float = attrs.field(factory=time.monotonic)
    key: str = ""
    asked: str | None = None


class Others:
    """Looks at all tasks of a stage but one.

    Args:
        folder: of the store, on this machine's disk.
    """

    def __init__(self, store: Store, folder: str, area: str, claims: Claims, partitions: int) -> None:
        self._store = store
        self._area = area
        self._claims = claims
        self._waiting = {number for number in range(partitions) if number != claims.partition}
        self._seen = {number: _Seen(gauge_of(folder, area, number)) for number in self._waiting}

    def look(self) -> list[Reader]:
        """The others as they are now."""
        if self._waiting:
            begun = {name[len(self._area) + 1 :].partition(".")[0] for name in self._store.names(f"{self._area}-")}
            for number in [n for n in self._waiting if f"{n:04d}" in begun]:
                self._waiting.discard(number)
                self._seen[number].at = time.monotonic()
        return [self._reader(number) for number in self._seen]

    def _reader(self, number: int) -> Reader:
        if number in self._waiting:
            return Reader(partition=number, state="waiting")
        if self._claims.log_of(number).catch_up().report is not None:
            return Reader(partition=number, state="done")
        seen, now = self._seen[number], time.monotonic()
        text = seen.gauge.read()
        if text != seen.text:
            seen.text, seen.at = text, now
        if now - seen.at > SILENT:
            return Reader(partition=number, state="waiting")
        try:
            told = json.loads(text) if text is not None else {}
        except ValueError:  # torn: the next look will see it whole
            told = {}
        if told.get("idle"):
            return Reader(partition=number, state="done")
        seen.key = str(told.get("key", ""))
        return Reader(partition=number, state="working", remaining=told.get("left"), asked=seen.asked == seen.key)

    def asked(self, number: int) -> None:
        """A task is being asked: for its present record, it is not asked again."""
        self._seen[number].asked = self._seen[number].key


def gauge_of(folder: str, area: str, partition: int) -> Gauge:
    """Where a task tells how much is left."""
    return Gauge(f"{folder}/{log_name(area, partition)}{GAUGE}")
