"""The line filter, vectorised and by a Python function, beside Spark's own ways, Beam and loops without a framework."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.lines import ours, peers
from benchmarks.lines.inputs import counted, size_of
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal

OURS, SAFE, LOCAL = "dagflow", "dagflow, durable", "dagflow, local runner, two processes"
SPARK, GREP = "Spark read.text → filter → write.text", "grep -v, one process"
ARROW = "Spark read.text → mapInArrow → write.text"
KINDS = (("lines of 100 bytes", Place.lines), ("lines of 20 bytes", Place.short_lines))


def _contestant(place: Place, where: str, source: Path, name: str, work: Callable[[Path, Path], object]) -> Contestant:
    target = place.target(where)

    def run() -> float | None:
        taken = work(source, target)
        return taken if isinstance(taken, float) else None

    return Contestant(name=name, run=run, check=partial(counted, target), clean=partial(place.clean, where), size=size_of(source))


def _ours(place: Place, application: ours.Application, **options: Any) -> Callable[[Path, Path], object]:
    def work(source: Path, target: Path) -> None:
        place.run(application, source, target, **options)

    return work


def vectorised(place: Place) -> Iterator[Case]:
    """With an expression over batches."""
    for kind, make in KINDS:
        source = make(place)
        for where in ("memory", "disk"):
            one = partial(_contestant, place, where, source)
            contestants = [
                one(SPARK, place.spark.filter),
                one(OURS, _ours(place, ours.vectorised)),
                one(SAFE, _ours(place, ours.vectorised, durability="machine")),
                one(GREP, peers.grep),
            ]
            goals = [Goal(OURS, SPARK, 2.0 if where == "memory" else 1.3)]
            yield Case(
                f"vectorised, {where}, {kind[9:]}", f"Line filter by an expression, {kind}, to {where}", contestants, goals
            )
        source.unlink()


def small_files(place: Place) -> Iterator[Case]:
    """Many small files, with an expression over batches."""
    source = place.small_files()
    one = partial(_contestant, place, "disk", source)
    contestants = [
        one(SPARK, place.spark.filter),
        one(OURS, _ours(place, ours.vectorised)),
        one(SAFE, _ours(place, ours.vectorised, durability="machine")),
        one(LOCAL, _ours(place, ours.vectorised, runner="local", slots=2)),
    ]
    yield Case("small files", "Lines of 8,000 files of 12 KB, filtered, to disk", contestants, [Goal(OURS, SPARK, 3.0)])
    shutil.rmtree(source)


def by_function(place: Place) -> Iterator[Case]:
    """With a Python function for each record."""
    for kind, make in KINDS:
        source = make(place, 0.5)
        for where in ("memory", "disk"):
            one = partial(_contestant, place, where, source)
            contestants = [
                one(ARROW, place.spark.map_in_arrow),
                one(OURS, _ours(place, ours.by_function)),
                one(SAFE, _ours(place, ours.by_function, durability="machine")),
            ]
            goals = [Goal(OURS, ARROW, 1.3)]
            yield Case(
                f"function, {where}, {kind[9:]}", f"Line filter by a Python function, {kind}, to {where}", contestants, goals
            )
        yield _bare(place, kind, make(place, 0.1))
        source.unlink()
    yield _beam(place)


def _bare(place: Place, kind: str, source: Path) -> Case:
    loop, mine = "bare loop", "dagflow, in process"
    one = partial(_contestant, place, "memory", source)
    contestants = [
        one(loop, peers.bare_loop),
        one("bare loop, records with places", peers.loop_with_places),
        one("bare loop over text, line ends kept", peers.text_loop),
        one(mine, _ours(place, ours.by_function, runner="local")),
    ]
    goals = [Goal(mine, loop, most=1.5)]
    return Case(f"loop, {kind[9:]}", f"Line filter by a Python function, {kind}, one process, to memory", contestants, goals)


def _beam(place: Place) -> Case:
    source = place.lines(0.05)
    one = partial(_contestant, place, "memory", source)
    contestants = [one(OURS, _ours(place, ours.by_function))]
    python = peers.beam_python(place.beam)
    notes = []
    if python is None:
        notes.append("Beam: n/a (apache-beam cannot be imported; name a Python that has it with --beam-python)")
    else:
        contestants += [
            one("Beam, one process", partial(peers.beam, python)),
            one("Beam, two processes", partial(peers.beam2, python)),
        ]
    goals = [Goal(OURS, "Beam, one process", 15), Goal(OURS, "Beam, two processes", 15)]
    return Case(
        "beam", "Line filter by a Python function beside Beam's Python runner, to memory", contestants, goals, notes=notes
    )
