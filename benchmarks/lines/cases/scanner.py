"""Finding many files."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.lines import ours
from benchmarks.lines.inputs import make_many
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Limit

COUNT = 100_000


def scanner(place: Place) -> Iterator[Case]:
    """Many files found, filtered by name and planned; and a launch that finds nothing new."""
    count = COUNT // 50 if place.quick else COUNT
    files = make_many(place.disk / "many", count)
    target = place.target("disk")
    first, again = f"{count:,} files found, filtered, planned", "a launch that finds nothing new"

    def plan() -> float:
        place.clean("disk")  # before it only: the second resumes where the first has ended
        times = ours.Times()
        ours.run(ours.scanned, files, target, runner="local", subscribers=[times])
        return times.planned[-1] - times.began

    def nothing() -> None:
        run = ours.run(ours.scanned, files, target, runner="local")
        if run.report.windows:
            raise AssertionError("something new was found")

    title = f"Scanner: {count:,} files in folders of 1,000 (in process)"
    contestants = [Contestant(first, plan), Contestant(again, nothing)]
    limits = [Limit(first, 5), Limit(again, 1)]
    yield Case("scanner", title, contestants, limits, rounds=1 if place.quick else 3, warm_up=0)
    place.clean("disk")
    ours.remove(files)
