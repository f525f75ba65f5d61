"""Slices of fixed bytes, copied."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.lines import ours, peers
from benchmarks.lines.inputs import counted, make_lines
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal


def slices(place: Place) -> Iterator[Case]:
    """dagflow beside two `cp`, each of which copies half of the input."""
    folder = place.disk / "halves"
    folder.mkdir()
    halves = [make_lines(folder / f"half-{n}", place.size // 2) for n in (1, 2)]
    size = sum(path.stat().st_size for path in halves)
    for where in ("memory", "disk"):
        target = place.target(where)

        def copy(durability: str, target: Path = target) -> None:
            place.run(ours.slices, folder, target, durability=durability)

        common = {"check": partial(counted, target), "clean": partial(place.clean, where), "size": size}
        contestants = [
            Contestant(name="two cp", run=partial(peers.copies, halves, target), **common),  # type: ignore[arg-type]
            Contestant(name="dagflow", run=partial(copy, "process"), **common),  # type: ignore[arg-type]
            Contestant(name="dagflow, durable", run=partial(copy, "machine"), **common),  # type: ignore[arg-type]
        ]
        yield Case(f"slices, {where}", f"Slices of 256 KiB copied, to {where}", contestants, [Goal("dagflow", "two cp", 0.7)])
    ours.remove(folder)
