"""`python -m benchmarks.decisions`: a day of bursts on 1,000 slots, decided by the shipped code; prints the tables."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from benchmarks.decisions.arrivals import DAY, Range, day
from benchmarks.decisions.simulation import HELD, START, TASK, Day, simulate
from benchmarks.decisions.window import SHIPPED, Stealing
from benchmarks.report import say, typed, write_between
from benchmarks.table import markdown
from dagflow.runtime.rebalancing.policy import STEAL_COST
from dagflow.scaling import BacklogPartitioner, StatelessPartitioner

MARK = "decisions simulated"
RANGES, SLOTS = 100_000, 1_000
DEFAULT = "steady (the default)"
WITHIN = {
    "what is worth twice a steal (the default)": SHIPPED,
    "never": Stealing(is_on=False),
    "always, whatever is left": Stealing(cost=0.0),
    "what is worth eight times a steal": Stealing(cost=4 * STEAL_COST),
}
"""The gain that half of another reader's work must promise before an idle reader takes it."""
LATE = 120_000  # ms, the interval of Apache Apex Malhar


@attrs.frozen
class Row:
    """A contestant with what came of its day."""

    name: str
    day: Day


def contestants(most: int) -> Iterator[tuple[str, Any]]:
    """The partitioners that are compared; all but the static ones between 1 and `most` readers."""
    yield DEFAULT, BacklogPartitioner(1, most)
    yield "power_of_two (the original's)", BacklogPartitioner(1, most, policy="power_of_two")
    yield "power_of_two, every 120 s (the original's interval)", BacklogPartitioner(1, most, LATE, "power_of_two")
    yield "steady, every 120 s", BacklogPartitioner(1, most, LATE)
    yield "always 16", StatelessPartitioner(16)


Begun = list[tuple[str, Future[Day]]]


def policies(pool: Executor, work: Sequence[Range], slots: int, *, starts: bool) -> Begun:
    """A day with each contestant."""
    return [(name, pool.submit(simulate, work, each, slots, starts=starts)) for name, each in contestants(slots)]


def steals(pool: Executor, work: Sequence[Range], slots: int) -> Begun:
    """A day with the default policy, with other ideas of what is worth a steal within its windows."""
    one = BacklogPartitioner(1, slots)
    return [(name, pool.submit(simulate, work, one, slots, starts=False, stealing=each)) for name, each in WITHIN.items()]


def rows_of(begun: Begun) -> list[Row]:
    """Return the result of each simulation, once all have ended."""
    found = []
    for name, simulated in begun:
        found.append(Row(name, simulated.result()))
        say(f"{name}: {found[-1].day.cost:.4g}")
    return found


def table_of(rows: Sequence[Row], count: int) -> str:
    """Return a table: the wait of a range, the cost of the readers, and the product of both relative to the first row."""
    heads = ("", "a range waits", "reader-seconds / work", "cost", "windows", "changes", "most readers", "steals")
    lines = [
        (
            row.name,
            f"{row.day.backlog_seconds / count:.2f} s",
            f"{row.day.reader_seconds / row.day.work_seconds:.2f}",
            f"{row.day.cost / rows[0].day.cost:.2f}",
            f"{row.day.windows:,}",
            f"{row.day.changes:,}",
            f"{row.day.highest:,}",
            f"{row.day.steals:,}",
        )
        for row in rows
    ]
    return markdown(heads, lines)


def wins(rows: Sequence[Row]) -> bool:
    """Return whether the first row has the smallest product of backlog-seconds and reader-seconds."""
    return all(rows[0].day.cost <= row.day.cost for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulates. 1 when the default does not win (never with --quick), else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description="The decisions of readers, simulated.")
    parser.add_argument("--quick", action="store_true", help="an hour of 1,000 ranges on 50 slots")
    parser.add_argument("--markdown", type=Path, help="write the tables here (between the marks, where the file has them)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many days are simulated at once")
    given = parser.parse_args(arguments)
    count, slots, seconds = (1_000, 50, 3_600.0) if given.quick else (RANGES, SLOTS, DAY)
    work = day(count, seconds)
    with ProcessPoolExecutor(given.jobs) as pool:
        begun = policies(pool, work, slots, starts=False), policies(pool, work, slots, starts=True), steals(pool, work, slots)
        there, started, within = map(rows_of, begun)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    page = "\n\n".join(
        [
            f"Made by `{typed('decisions', arguments)}` on {today}: {count:,} ranges, {slots:,} slots, {seconds / 3600:.0f} h.",
            f"**Slots that are there.** A task costs its slot {TASK * 1000:.0f} ms beside its work, and frees it when it ends.",
            table_of(there, count),
            f"**Executors that come and go** (dynamic allocation). A reader that was not there before works after {START:.0f} s;"
            f" it is held until its window ends, and {HELD:.0f} s longer.",
            table_of(started, count),
            "**Within windows**, on slots that are there:",
            table_of(within, count),
        ]
    )
    print(page)
    if given.markdown is not None:
        write_between(given.markdown, page, MARK)
    return 0 if given.quick or (wins(there) and wins(started) and wins(within)) else 1


if __name__ == "__main__":
    sys.exit(main())
