"""The needs of an application: the Python, packages, modules and folders that each executor has to have."""

from __future__ import annotations

import functools
import json
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

import attrs

from dagflow.spark.executors.mark import Mark
from dagflow.storage import OWN_FOLDER, join

PACKAGES = ("dagflow", "pyarrow")
TASKS = "dagflow.spark.dataframes.levels"
"""The module that imports all that any task needs."""


def installed(package: str) -> str:
    """Return the version of a package here, "" without metadata."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@functools.cache
def required(package: str) -> str:
    """Return what dagflow requires of a package, "pyarrow>=18" say; the name alone if it does not say."""
    try:
        lines = distribution("dagflow").requires or []
    except PackageNotFoundError:
        lines = []
    found = next((line for line in lines if re.match(rf"{package}\b", line) and "extra" not in line), package)
    return found.partition(";")[0].strip()


def fits(present: str, wanted: str) -> bool:
    """Return whether a version is in the range of a requirement.

    >>> fits("4.3.1", "pyspark<4.4,>=4.3"), fits("4.4.0", "pyspark<4.4,>=4.3"), fits("18", "pyarrow>=18")
    (True, False, True)
    """
    have = _numbers(present)
    return all((have >= _numbers(at)) == (sign == ">=") for sign, at in re.findall(r"(>=|<)\s*([\d.]+)", wanted))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[a-z+]", text)[0]))


@attrs.frozen
class Needs:
    """The needs that the tasks of an application have of an executor.

    Attributes:
        python: the version of the driver's Python. The first two numbers must be the same.
        packages: for each package, its version on the driver.
        modules: the modules that tasks import, by the distribution that has each ("" where that is unknown).
        inputs: files and folders that tasks read.
        outputs: folders that tasks write, besides the run folder.
        tables: folders that tasks of sinks with a store of their own write.
        mark: the mark in the run folder.
        table_marks: the marks in `tables`.
        max_skew: how many seconds an executor's clock may be off.
        seconds: how long a look takes at least, so that no executor takes two while another has none.
    """

    python: str = attrs.field(factory=platform.python_version)
    packages: Mapping[str, str] = attrs.field(factory=lambda: {name: installed(name) for name in PACKAGES})
    modules: Mapping[str, str] = attrs.field(factory=lambda: {TASKS: "dagflow"})
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    mark: Mark | None = None
    table_marks: tuple[Mark, ...] = ()
    max_skew: float = 60.0
    seconds: float = 0.2

    def as_json(self) -> str:
        """Return the needs as `look` takes them."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Needs:
        """Return needs that `as_json` has written."""
        fields: dict[str, Any] = json.loads(text)
        fields |= {name: tuple(fields[name]) for name in ("inputs", "outputs", "tables")}
        fields["mark"] = None if fields["mark"] is None else Mark(**fields["mark"])
        fields["table_marks"] = tuple(Mark(**each) for each in fields["table_marks"])
        return cls(**fields)

    def marked(self, run_folder: str | None, *, sweep: bool = True) -> Needs:
        """Return the needs with new marks in the run folder and in the folders of tables. `sweep`: see `Mark.leave`."""
        mark = None if run_folder is None else Mark.leave(run_folder, sweep=sweep)
        marks = tuple(Mark.leave(join(folder, OWN_FOLDER), sweep=False) for folder in self.tables)
        return attrs.evolve(self, mark=mark, table_marks=marks)

    def remove_marks(self) -> None:
        """Remove the marks."""
        if self.mark is not None:
            self.mark.remove()
        for mark in self.table_marks:
            mark.remove_with_folder()
