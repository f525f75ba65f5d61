"""The list of checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dagflow.diagnosis import machine, python, spark
from dagflow.diagnosis.check import Check


def checks(environ: Mapping[str, str], folder: str, with_session: bool = False) -> Iterator[Check]:
    """Run all checks, one after the other. `with_session`: start Spark too."""
    yield from python.packages()
    yield from python.shadowed(folder)
    yield from spark.java(environ)
    yield from spark.place(environ)
    yield from spark.tasks(environ)
    yield from machine.folders(environ)
    yield from machine.memory()
    yield from machine.network()
    if with_session:
        yield from spark.session()
