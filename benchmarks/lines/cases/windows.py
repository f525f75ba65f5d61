"""The cost of a tiny window, beside a micro-batch of Structured Streaming."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.lines import ours
from benchmarks.lines.inputs import make_many
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal, Limit

BATCHES = 30


def windows(place: Place) -> Iterator[Case]:
    """Windows of two tiny blocks, plan, decision and roll-forward included; and of nothing at all."""
    count = 10 if place.quick else BATCHES
    files = make_many(place.disk / "tiny", 2 * count + 2)
    target = place.target("disk")

    def window(durability: str, in_flight: int) -> float:
        times = ours.Times()
        place.run(
            ours.vectorised,
            files,
            target,
            durability=durability,
            blocks_threshold=2,
            windows_in_flight=in_flight,
            subscribers=[times],
        )
        return times.each_window()

    def stream(what: str) -> float:
        target.mkdir()
        if what == "nothing":
            return place.spark.stream_of_nothing(count, target)
        return place.spark.stream_of_files(files, count, target)

    clean = partial(place.clean, "disk")
    mine = "dagflow: read, filter, write two tiny files"
    safe = f"{mine}, durable"
    contestants = [
        Contestant("Structured Streaming: Python source → noop", partial(stream, "nothing"), clean=clean),
        Contestant("Structured Streaming: the same two files", partial(stream, "files"), clean=clean),
        Contestant(mine, partial(window, "process", 1), clean=clean),
        Contestant(safe, partial(window, "machine", 1), clean=clean),
        Contestant(f"{mine}, durable, two windows in flight", partial(window, "machine", 2), clean=clean),
    ]
    goals = [Goal(name, peer.name, most=most) for name, most in ((safe, 0.55), (mine, 0.5)) for peer in contestants[:2]]
    title = "A window of two tiny blocks: from the end of one to the end of the next"
    yield Case("windows", title, contestants, goals)
    yield _nothing(place, files, target)
    ours.remove(files)


def _nothing(place: Place, files: Path, target: Path) -> Case:
    """A launch that finds nothing new: how many jobs it starts."""

    def jobs() -> float:
        first = place.run(ours.vectorised, files, target)
        again = place.run(ours.vectorised, files, target)
        if not first.report.windows or again.report.windows:
            raise AssertionError("a launch that found nothing new made a window")
        return float(again.report.jobs)

    contestants = [Contestant("jobs of a launch without new items", jobs, clean=partial(place.clean, "disk"))]
    goals = [Limit("jobs of a launch without new items", 0, "jobs")]
    return Case("no items", "A window without items starts no job", contestants, goals, unit="jobs", rounds=1, warm_up=0)
