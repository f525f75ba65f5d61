"""The cases by name: each makes its `Case` for a `Place`, just before it is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs

from benchmarks.exchange import ours, peers
from benchmarks.exchange.inputs import make_text, summed
from benchmarks.lines.peers import beam, beam2, beam_python
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal
from dagflow import launch

OURS, SAFE, PLAIN = "dagflow", "dagflow, durable", "dagflow, plain Python for each record"
BEHIND = "dagflow, plain Python for each record, all of which cross the exchange"
SQL, RDD = "Spark read.text → split → explode → groupBy → count → write.csv", "Spark RDD: flatMap → map → reduceByKey"
BEAM, BEAM_2 = "Beam, one process", "Beam, two processes"

Work = Callable[[Path, Path], object]


def _ours(place: Place, application: ours.Application, durability: str = "process") -> Work:
    runner = "local" if place.quick else "spark"

    def work(source: Path, target: Path) -> None:
        if runner == "spark":
            _ = place.spark.session
        settings = ours.Settings([str(source)], str(target))
        launch(application, settings, runner=runner, durability=durability, progress="none")

    return work


def _contestant(place: Place, source: Path, name: str, work: Work) -> Contestant:
    target = place.target("memory")

    def run() -> float | None:
        taken = work(source, target)
        return taken if isinstance(taken, float) else None

    return Contestant(name, run, partial(summed, target), partial(place.clean, "memory"), source.stat().st_size)


def vectorised(place: Place) -> Case:
    """Words by an expression, counted by `Count`, beside Spark SQL."""
    one = partial(_contestant, place, make_text(place.disk / "text.txt", place.size))
    contestants = [one(OURS, _ours(place, ours.vectorised)), one(SAFE, _ours(place, ours.vectorised, "machine"))]
    if not place.quick:
        contestants.insert(0, one(SQL, lambda source, target: peers.sql(place.spark.session, source, target)))
    return Case("vectorised", "Word count, vectorised, to memory", contestants, [Goal(OURS, SQL, 1.5)])


def by_record(place: Place) -> Case:
    """Words and counts by Python functions, beside RDDs."""
    one = partial(_contestant, place, make_text(place.disk / "less.txt", place.size // 5))
    contestants = [
        one(OURS, _ours(place, ours.vectorised)),
        one(PLAIN, _ours(place, ours.by_record)),
        one(BEHIND, _ours(place, ours.by_record_only_behind)),
    ]
    if not place.quick:
        contestants.insert(0, one(RDD, lambda source, target: peers.rdd(place.spark.session, source, target)))
    return Case("record", "Word count by Python functions, to memory", contestants, [Goal(OURS, RDD, 10), Goal(PLAIN, RDD, 2)])


def beside_beam(place: Place) -> Case:
    """The same beside Beam's Python runner, which gets little: seconds for each byte are compared."""
    one = partial(_contestant, place, make_text(place.disk / "little.txt", place.size // 20))
    vectorised = _contestant(place, make_text(place.disk / "less.txt", place.size // 5), OURS, _ours(place, ours.vectorised))
    contestants = [attrs.evolve(vectorised, check=None), one(PLAIN, _ours(place, ours.by_record))]
    python, notes = None if place.quick else beam_python(place.beam), ["Beam and plain Python have a quarter of dagflow's input."]
    if python is None:
        notes.append("Beam: n/a (apache-beam cannot be imported; name a Python that has it with --beam-python)")
    else:
        contestants.insert(0, one(BEAM, lambda source, target: beam(python, source, target, script=peers.BEAM)))
        contestants.insert(1, one(BEAM_2, lambda source, target: beam2(python, source, target, script=peers.BEAM)))
    goals = [Goal(OURS, BEAM, 30), Goal(OURS, BEAM_2, 30)]
    return Case("beam", "Word count beside Beam's Python runner, to memory", contestants, goals, notes=notes, rounds=1)


CASES: dict[str, Callable[[Place], Case]] = {"vectorised": vectorised, "record": by_record, "beam": beside_beam}
