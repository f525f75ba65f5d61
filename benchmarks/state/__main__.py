"""`python -m benchmarks.state`: updates of running counts, and a window of few rows beside many keys; prints the tables."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.rounds import Case, Contestant, Limit
from benchmarks.state.distant import distant_copy
from benchmarks.state.window import CountedByHandler, Slot
from dagflow.state.task_states import MapCache
from operators import Count, Tumbling

MARK = "state measured"
ROWS = 1 << 15  # of a batch
DELAY = 0.02  # seconds


def batches(keys: np.ndarray[Any, Any], *, text: bool) -> list[pa.RecordBatch]:
    """The rows of a window, as batches of a column `key`: integers, or texts of 16 characters."""
    column = pa.array([f"key-{key:012d}" for key in keys.tolist()]) if text else pa.array(keys)
    return pa.table({"key": column}).to_batches(max_chunksize=ROWS)


def updates(folder: Path, keys: int, title: str, name: str, most: float, make: Callable[[], Slot], chunks: list[Any]) -> Case:
    """Windows of the same keys, all of which are updated."""
    slot = make()

    def run() -> float:
        return slot.run(chunks) / keys * 1e9

    return Case(
        name, f"{title}, {keys:,} keys a window", [Contestant("dagflow", run)], [Limit("dagflow", most, "ns")], "ns", warm_up=2
    )


def few_beside_many(folder: Path, known: int) -> Case:
    """Windows of 1,000 rows of random keys, of many that are kept."""
    slot, chance = Slot(str(folder), Count(by="key", combiner=False), "batch"), np.random.default_rng(7)

    def fill() -> None:
        if slot.window == 0:
            slot.run(batches(np.arange(known), text=False))

    def run(*, cold: bool) -> float:
        fill()
        if cold:
            slot.cache = MapCache()
        return slot.run(batches(chance.integers(0, known, 1000), text=False)) * 1e3

    contestants = [
        Contestant("dagflow", lambda: run(cold=False)),
        Contestant("dagflow, in a new process", lambda: run(cold=True)),
    ]
    title = f"a window of 1,000 rows with {known:,} keys kept"
    return Case("few", title, contestants, [Limit("dagflow", 100, "ms"), Limit("dagflow, in a new process", 100, "ms")], "ms")


def few_beside_many_far_away(folder: Path, known: int) -> Iterator[Case]:
    """The same with the run folder in an object store, by the clock: without pages of segments on this machine, and with them."""
    filled = Slot(str(folder / "kept"), Count(by="key", combiner=False), "batch")
    filled.run(batches(np.arange(known), text=False))
    chance = np.random.default_rng(7)
    with distant_copy(folder / "kept", folder, DELAY) as url:
        slot = attrs.evolve(filled, folder=url, clock=time.perf_counter)
        keys = chance.integers(0, known, 1000)

        def run(cache: Path) -> float:
            slot.cache = MapCache()
            with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(cache)):
                return slot.run(batches(keys, text=False)) * 1e3

        def cold() -> float:
            keys[:] = chance.integers(0, known, 1000)
            return run(folder / f"cache-{slot.window}")

        contestants = [
            Contestant("dagflow, a new machine", cold),
            Contestant("dagflow, in a new process", lambda: run(folder / f"cache-{slot.window - 1}")),
        ]
        title = f"the same on SeaweedFS, {DELAY * 1e3:g} ms a request away"
        limits = [Limit("dagflow, a new machine", 3_000, "ms"), Limit("dagflow, in a new process", 300, "ms")]
        yield Case("far", title, contestants, limits, "ms")


def open_windows(folder: Path, known: int) -> Case:
    """Windows of 20 rows, beside few time windows that are open, and beside many."""
    chance = np.random.default_rng(7)

    def rows(keys: np.ndarray[Any, Any]) -> pa.RecordBatch:
        times = pa.array(600_000_000 + chance.integers(0, 60_000_000, len(keys))).cast(pa.timestamp("us"))
        return pa.record_batch({"key": keys, "at": times})

    def contestant(name: str, known: int) -> Contestant:
        tumbling = Tumbling[Any, Any, Any](
            60, time="at", by="key", allowed_lateness=0, out_of_orderness=86_400, fire_at_end=False
        )
        slot = Slot(str(folder / str(known)), tumbling, "batch")

        def run() -> float:
            if slot.window == 0:
                slot.run([rows(np.arange(known))])
            return slot.run([rows(chance.integers(0, known, 20))]) * 1e3

        return Contestant(name, run)

    contestants = [contestant("beside 20", 20), contestant("dagflow", known)]
    return Case("open", f"a window of 20 rows with {known:,} time windows open", contestants, [Limit("dagflow", 20, "ms")], "ms")


def cases(folder: Path, keys: int, known: int) -> Iterator[Case]:
    """Yield all cases but that of the object store."""
    every = np.random.default_rng(5).permutation(keys)
    for kind, most in (("integers", 1_000), ("texts", 3_000)):
        chunks = batches(every, text=kind == "texts")
        counted = Count[Any, Any](by="key", combiner=False)

        def make(kind: str = kind, counted: Any = counted) -> Slot:
            return Slot(str(folder / kind), counted, "batch")

        yield updates(folder, keys, f"a running count by {kind}, an update", kind, most, make, chunks)
    records = [every[at : at + ROWS].tolist() for at in range(0, keys, ROWS)]
    title = "a handler of a user with a MapState, an update"
    yield updates(
        folder, keys, title, "handler", 5_000, lambda: Slot(str(folder / "handler"), CountedByHandler(), "record"), records
    )
    yield few_beside_many(folder / "few", known)
    yield open_windows(folder / "open", min(known, 100_000))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("state", "State by key: updates, and windows of few rows beside many keys.")
    parser.add_argument("--known", type=float, default=1e7, help="keys that are kept beside few rows (1e7)")
    parser.add_argument("--far", action="store_true", help="only the run folder on SeaweedFS, 20 ms a request away")
    given = parser.parse_args(arguments)
    told = report.Report(given, MARK, report.typed("state", arguments))
    keys, known = (2_000, 5_000) if given.quick else (100_000, int(given.known))
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        work = Path(folder)
        for case in few_beside_many_far_away(work, known) if given.far else cases(work, keys, known):
            told.run(case)
    return told.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
