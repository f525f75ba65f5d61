"""Windows of event time in a few lines of plain Python, and what an application with Tumbling has written."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

SECOND = 1_000_000
SIZE = 10

Fired = tuple[str, int, int, int, int]
"""Key, start in seconds, sum, count and number of the firing."""


@attrs.frozen
class Hit:
    """A number of a key at a time in microseconds."""

    key: str
    at: int
    n: int


def fired_in(folder: Path) -> Counter[Fired]:
    """The results that have fired."""

    def start(text: str) -> int:
        return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp())

    return Counter((r["key"], start(r["start"]), r["value"], r["count"], r["firing"]) for r in _lines(folder))


def late_in(folder: Path) -> Counter[Hit]:
    """The records that were late."""
    return Counter(Hit(**r) for r in _lines(folder))


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def model(windows: list[list[Hit]], lateness: int, bound: int) -> tuple[Counter[Fired], Counter[Hit]]:
    """The same in plain Python: what is late by what came in earlier windows; windows fire when that has passed their end."""
    fired: Counter[Fired] = Counter()
    late: Counter[Hit] = Counter()
    kept: dict[tuple[str, int], list[Hit]] = {}
    firings: Counter[tuple[str, int]] = Counter()
    changed: set[tuple[str, int]] = set()
    latest = -(10**9)
    for hits in [*windows, None]:
        watermark = latest - bound
        for hit in hits or ():
            start = hit.at // SECOND // SIZE * SIZE
            if start + SIZE + lateness <= watermark:
                late[hit] += 1
                continue
            kept.setdefault((hit.key, start), []).append(hit)
            changed.add((hit.key, start))
        for key, start in sorted(changed):
            if start + SIZE <= watermark or hits is None:
                of = kept[key, start]
                fired[key, start, sum(hit.n for hit in of), len(of), firings[key, start]] += 1
                firings[key, start] += 1
                changed.discard((key, start))
        latest = max([latest, *(hit.at // SECOND for hit in hits or ())])
    return fired, late
