"""`python -m benchmarks.scale`: the shipped driver at 10,000 tasks, 1,000,000 blocks and many windows; prints the tables."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks import machine
from benchmarks.report import say, typed, write_between
from benchmarks.scale.driver import MB, STEPS, Measured, Size, Step, measured_apart
from benchmarks.scale.stealing import Looks, looks
from benchmarks.table import markdown
from dagflow.storage.parallel import AT_ONCE

MARK = "scale simulated"
BUCKET = "s3://bucket/out"
BLOCKS_OF_A_TASK = 100
TASKS = (10, 100, 1_000, 10_000)
LATENCIES = (0.005, 0.05, 0.2)
WINDOWS = 20_000
MANY_WINDOWS = 1_000_000
READERS = (100, 1_000, 10_000)
NAMES = {
    "plan": "plan: list, split, assign, publish",
    "start": "start: tasks with their items, states and forms",
    "decide": "decide: read the reports, name the files, publish",
    "follow": "roll forward: final names, ledger, marks",
}
PLANNED, MEMORY, DECIDED = 10.0, 1e9, 2.0
"""Goals: seconds for a plan of 1,000,000 blocks and bytes for it, seconds for a decision of 10,000 tasks."""
PATIENCE = 60.0
"""Seconds after which a step counts as the bottleneck."""
SPARK_LIMIT = 2e9
"""Bytes that a task binary of Spark may have: an array of the JVM, and the limit of a message of Spark Connect."""


@attrs.frozen
class Row:
    """A window with so many tasks, and what it took."""

    tasks: int
    measured: Measured

    @property
    def blocks(self) -> int:
        """The blocks of the window."""
        return self.tasks * BLOCKS_OF_A_TASK


def steps_table(rows: Sequence[Row]) -> str:
    """Return a table of seconds, memory and requests by step; with the power of the size by which the last row has grown."""
    heads = (
        "step",
        "tasks",
        "blocks",
        "processor, s",
        "peak, MB",
        "requests in turn",
        "at once",
        *(f"at {latency * 1000:.0f} ms, s" for latency in LATENCIES),
        "seconds grow as",
    )
    lines = []
    for name in STEPS:
        for number, row in enumerate(rows):
            step = row.measured.steps[name]
            lines.append(
                (
                    NAMES[name] if not number else "",
                    f"{row.tasks:,}",
                    f"{row.blocks:,}",
                    f"{step.seconds:.3g}",
                    f"{step.peak / MB:,.0f}",
                    f"{step.in_turn:,}",
                    f"{step.at_once:,}",
                    *(f"{step.waits(latency, AT_ONCE):.3g}" for latency in LATENCIES),
                    f"{ratio(rows[number - 1], row, name):.2f} n" if number else "",
                )
            )
    return markdown(heads, lines)


def local_table(row: Row) -> str:
    """Return a table of seconds and memory by step, where nothing waits for a store."""
    steps = ((NAMES[name], row.measured.steps[name]) for name in STEPS)
    return markdown(("step", "processor, s", "peak, MB"), [(n, f"{s.seconds:.3g}", f"{s.peak / MB:,.0f}") for n, s in steps])


def ratio(before: Row, row: Row, step: str) -> float:
    """Return how many times as long each task takes as in the smaller window."""
    small, large = before.measured.steps[step], row.measured.steps[step]
    return large.seconds / max(1e-9, small.seconds) * before.tasks / row.tasks


def sizes_table(rows: Sequence[Row]) -> str:
    """Return a table of the bytes that a window's records and job have."""
    heads = ("tasks", "blocks", "plan, MB", "decision, MB", "job, MB", "largest task, kB")
    lines = [
        (
            f"{row.tasks:,}",
            f"{row.blocks:,}",
            *(f"{row.measured.sizes[name] / MB:.3g}" for name in ("plan", "decision", "job")),
            f"{row.measured.sizes['task'] / 1000:.3g}",
        )
        for row in rows
    ]
    return markdown(heads, lines)


def windows_table(measured: Measured) -> str:
    """Return a table of windows one after the other: the time and the memory of each."""
    heads = ("windows", "processor ms for each since the row before", "driver, MB", "bytes for each")
    lines = []
    before = (0, 0.0, measured.every[0][2])
    for row in measured.every[:: max(1, len(measured.every) // 5)]:
        windows, seconds, size = row
        many = windows - before[0]
        lines.append(
            (
                f"{windows:,}",
                f"{1000 * (seconds - before[1]) / many:.2f}",
                f"{size / MB:.1f}",
                f"{(size - before[2]) / many:,.0f}" if before[0] else "",
            )
        )
        before = row
    return markdown(heads, lines)


def looks_table(looked: Sequence[Looks]) -> str:
    """Return a table of the looks of an idle reader."""
    heads = ("readers", "reads of the first look", "s", "reads of a later look", "s")
    lines = [
        (f"{each.readers:,}", *(text for reads, seconds in (each.first, each.later) for text in (f"{reads:,}", f"{seconds:.3g}")))
        for each in looked
    ]
    return markdown(heads, lines)


def growth_of_windows(measured: Measured) -> tuple[float, float]:
    """Return how many times as long a window takes in the second half, and how many bytes it leaves in memory there."""
    middle, last = measured.every[len(measured.every) // 2 - 1], measured.every[-1]
    seconds = (last[1] - middle[1]) / (last[0] - middle[0]) / (middle[1] / middle[0])
    return seconds, (last[2] - middle[2]) / (last[0] - middle[0])


def bottlenecks(last: Row, left_by_window: float, readers: Looks) -> Iterator[tuple[str, str, str]]:
    """Yield the size at which each step becomes the bottleneck, in proportion to the largest window measured."""
    for name in STEPS:
        step = last.measured.steps[name]
        for latency in (0.0, 0.05):
            most = last.tasks * PATIENCE / step.waits(latency, AT_ONCE)
            where = f"answers in {latency * 1000:.0f} ms" if latency else "the driver's own work"
            yield NAMES[name], f"{PATIENCE:.0f} s, {where}", f"{short(most)} tasks, or {short(most * BLOCKS_OF_A_TASK)} blocks"
    peak = max(step.peak for step in last.measured.steps.values())
    yield "memory of the driver", "4 GB", f"{short(last.blocks * 4e9 / peak)} blocks in a window"
    job = last.measured.sizes["job"]
    yield "what Spark gets of a window", "2 GB", f"{short(last.blocks * SPARK_LIMIT / job)} blocks in a window"
    if left_by_window > 0:
        yield "memory that windows leave", "1 GB", f"{short(MEMORY / left_by_window)} windows in one launch"
    seconds = readers.later[1]
    yield "an idle reader's look at all others", "1 s, on a local disk", f"{short(readers.readers / seconds)} readers"


def short(number: float) -> str:
    """Return a number with two digits that count: estimates have no more."""
    return f"{float(f'{number:.2g}'):,.0f}"


def goals(last: Row, local: Row) -> list[tuple[str, str, bool]]:
    """Return the goals, what was measured, and whether it is reached."""
    plan, start, decide = last.measured.steps["plan"], last.measured.steps["start"], local.measured.steps["decide"]
    planned, peak = plan.seconds + start.seconds, max(plan.peak, start.peak)
    size = f"{last.blocks:,} blocks"
    return [
        (f"{size} planned and given to tasks in at most {PLANNED:.0f} s", f"{planned:.1f} s", planned <= PLANNED),
        (f"{size} planned in at most 1 GB", f"{peak / MB:,.0f} MB", peak <= MEMORY),
        (
            f"{last.tasks:,} tasks decided in at most 2 s, on a local disk",
            f"{decide.seconds:.2f} s",
            decide.seconds <= DECIDED,
        ),
    ]


def requests_line(step: Step) -> str:
    """Return the requests of a step, by kind."""
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(step.requests.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure. 1 when a goal is missed (never with --quick), else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="The driver at sizes that no test has.")
    parser.add_argument("--quick", action="store_true", help="everything small: shows that it works, not how it grows")
    parser.add_argument("--windows", type=int, default=WINDOWS, help=f"windows one after the other ({WINDOWS:,})")
    parser.add_argument("--markdown", type=Path, help="write the tables here (between the marks, where the file has them)")
    parser.add_argument("--disk", help="a folder on a local disk to work in (that for temporary files)")
    given = parser.parse_args(arguments)
    tasks, windows, readers = ((2, 20), 40, (20,)) if given.quick else (TASKS, given.windows, READERS)
    rows = []
    for number in tasks:
        rows.append(Row(number, measured_apart(Size(number * BLOCKS_OF_A_TASK, number, BUCKET), given.disk)))
        steps = rows[-1].measured.steps.items()
        say(f"{number:,} tasks: {', '.join(f'{name} {step.seconds:.2f} s, {step.peak / MB:,.0f} MB' for name, step in steps)}")
    local = Row(tasks[-1], measured_apart(Size(tasks[-1] * BLOCKS_OF_A_TASK, tasks[-1], "out"), given.disk))
    say(f"{tasks[-1]:,} tasks on a local disk")
    many = measured_apart(Size(1, 1, "out", windows), given.disk)
    say(f"{windows:,} windows")
    looked = [looks(number) for number in readers]
    slower, left = growth_of_windows(many)
    last = rows[-1]
    reached = goals(last, local)
    page = "\n\n".join(
        [
            f"Made by `{typed('scale', arguments)}` on {datetime.datetime.now(tz=datetime.UTC).date().isoformat()}:"
            f" {machine.describe()}; load {machine.load():.1f}.",
            markdown(("goal", "measured", "met"), [(goal, value, "yes" if met else "**no**") for goal, value, met in reached]),
            "**One window**, on an object store that answers at once, and with answers that take their time. Requests in turn"
            f" wait for each other; of those at once, {AT_ONCE} are under way together.",
            steps_table(rows),
            f"The requests of the largest window, to decide: {requests_line(last.measured.steps['decide'])};"
            f" to roll forward: {requests_line(last.measured.steps['follow'])}.",
            "**The largest window on a local disk**, where readers steal from each other:",
            local_table(local),
            "**The records and the job of a window**",
            sizes_table(rows),
            "**Windows one after the other**, of one task and one file each, on a local disk. In the second half, a window takes"
            f" {slower:.2f} times as long as in the first, and leaves {left:,.0f} bytes in memory;"
            f" {MANY_WINDOWS:,} windows would leave {left * MANY_WINDOWS / MB:,.0f} MB.",
            windows_table(many),
            "**An idle reader's look at all others** that it may steal from, on a local disk:",
            looks_table(looked),
            "**Where each becomes the bottleneck**, in proportion to the largest size measured:",
            markdown(("step", "limit", "reached at"), list(bottlenecks(last, left, looked[-1]))),
        ]
    )
    print(page)
    if given.markdown is not None:
        write_between(given.markdown, page + "\n", MARK)
    return 0 if given.quick or all(met for _, _, met in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
