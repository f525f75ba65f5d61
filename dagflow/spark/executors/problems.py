"""The differences between what an application needs of an executor and what the executor has, each with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dagflow.spark.executors.needs import PACKAGES, Needs, fits, required

_PLACES = 3  # executors that are named for one problem


@attrs.frozen
class Facts:
    """The answer of `look` on an executor. `java`: the version of the executor's JVM, "" where that is unknown."""

    host: str
    folder: str
    python: str
    executable: str
    java: str
    clock: float
    packages: Mapping[str, str | None]
    broken: Mapping[str, str]
    folders: Mapping[str, str]

    @property
    def place(self) -> str:
        """The host and the executor's working directory, which holds Spark's number of the executor."""
        return f"{self.host}, in {self.folder}"


@attrs.frozen
class Problem:
    """A reason why an executor cannot run tasks. `place`: which executor, `text`: what is wrong there."""

    place: str
    text: str
    remedy: str


def problems_of(needs: Needs, facts: Facts, asked: float | None = None, answered: float | None = None) -> Iterator[Problem]:
    """Compare facts with needs. `asked` and `answered`: the driver's clock before and after, None if unknown."""
    place, python = facts.place, facts.executable or "python"
    pip = f"{python} -m pip install"
    if facts.python.split(".")[:2] != needs.python.split(".")[:2]:
        yield Problem(place, f"Python {facts.python} ({python}); the driver has {needs.python}", python_remedy(needs.python))
        return
    missing: set[str] = set()
    needed = {*PACKAGES, *(needs.modules.get(module, "") for module in facts.broken)}  # others may be there without metadata
    for name, here in sorted(needs.packages.items(), key=lambda item: item[0] != "dagflow"):
        there, wanted = facts.packages.get(name), required(name)
        exact = f"{name}=={here}" if here else name
        if there is None and (name not in needed or ("dagflow" in missing and wanted != name)):
            continue  # dagflow brings what it requires
        if there is None:
            missing.add(name)
            yield Problem(place, f"{name} is not installed for {python}", f"{pip} '{exact}'; {_sent(name)}")
        elif name == "dagflow" and here and there and there != here:
            missing.add(name)
            yield Problem(place, f"dagflow {there}; the driver has {here}", f"{pip} '{exact}'; {_sent(name)}")
        elif name != "dagflow" and there and not fits(there, wanted):
            missing.add(name)
            yield Problem(place, f"{name} {there}; dagflow needs {wanted}", f"{pip} '{exact}'; {_sent(name)}")
    for module, reason in facts.broken.items():
        owner = needs.modules.get(module, "")
        if owner not in missing and not (owner and "dagflow" in missing and required(owner) != owner):
            package = owner if owner not in ("", "dagflow") else module.partition(".")[0]
            exact = f"{package}=={own}" if (own := needs.packages.get(package)) else package
            other = f"; {_sent(package)}" if owner else ""
            yield Problem(place, f"cannot import {module}: {reason}", f"{pip} '{exact}'{other}")
    for folder, reason in facts.folders.items():
        yield Problem(place, f"{folder}: {reason}", _folder_remedy(folder, reason))
    skew = _skew(facts.clock, asked, answered)
    if abs(skew) > needs.max_skew:
        way = "ahead of" if skew > 0 else "behind"
        yield Problem(place, f"the clock is {abs(skew):.0f} s {way} the driver's", "sudo timedatectl set-ntp true, on both hosts")


def _sent(package: str) -> str:
    """Return the remedy that changes nothing on the executor: the launch sends the library."""
    return "or launch with --package" if package in PACKAGES else f"or launch with --package --package-with {package}"


def other_versions(facts: Iterable[Facts], needs: Needs) -> list[str]:
    """Return a text for each package of which executors have another version than the driver, which fits all the same.

    >>> there = Facts("b", "/w/1", "3.11", "", "", 0.0, {"pyarrow": "20.0"}, {}, {})
    >>> other_versions([there, there], Needs(packages={"pyarrow": "22.0", "pandas": "2.2"}))
    ['executors have pyarrow 20.0 (b, in /w/1), the driver has 22.0']
    """
    places: dict[tuple[str, str], list[str]] = {}
    for each in facts:
        for name, there in each.packages.items():
            if there and there != needs.packages.get(name):
                places.setdefault((name, there), []).append(each.place)
    return [
        f"executors have {name} {there} ({'; '.join(dict.fromkeys(where))}), the driver has {needs.packages.get(name) or 'none'}"
        for (name, there), where in places.items()
    ]


def python_remedy(version: str) -> str:
    """Return the remedy for a Python that cannot run tasks. Most often it is in a virtual environment that hosts do not have."""
    minor = ".".join(version.split(".")[:2])
    return (
        f"launch with --package, which sends the libraries of this Python, so that hosts need only a Python {minor}; "
        f"or install Python {minor} and dagflow on every host, and name it: export PYSPARK_PYTHON=/path/to/python{minor}"
    )


def package_remedy(version: str) -> str:
    """Return the remedy for an executor on which a package cannot find its Python, or be unpacked."""
    minor = ".".join(version.split(".")[:2])
    return (
        f"install Python {minor} on every host; where it is not on PATH, name it: "
        f"-D spark.executorEnv.DAGFLOW_PYTHON=/path/to/python{minor}"
    )


_CREDENTIALS = re.compile(r"credential|forbidden|access.?denied|accesskey|\b40[13]\b", re.IGNORECASE)


def _folder_remedy(folder: str, reason: str) -> str:
    if _CREDENTIALS.search(reason):
        return "give the executors the credentials of the driver: -D spark.executorEnv.NAME=…, or the environment of the workers"
    if folder.startswith("input"):
        return "put the input on storage that all machines share, and that the user of the executors may read"
    if reason.startswith("it cannot be written"):
        return "let the user of the executors write there"
    if folder.startswith("table"):
        return "put the table, and what its tasks stage, on storage that all machines share"
    return "put the output on storage that all machines share, or name a run folder there: --run-folder …"


def _skew(clock: float, asked: float | None, answered: float | None) -> float:
    """Return how many seconds a clock is ahead at least: it was looked at after `asked`, and before `answered`."""
    if asked is not None and clock < asked:
        return clock - asked
    if answered is not None and clock > answered:
        return clock - answered
    return 0.0


def table(problems: Sequence[Problem]) -> list[str]:
    """Return the lines of a table: each problem once, with the executors that have it, and the remedy below.

    >>> for line in table([Problem(host, "no pandas", "pip install pandas") for host in ("a", "b", "c", "d")]):
    ...     print(line)
    no pandas  (a; b; c; and 1 more)
      help: pip install pandas
    """
    places: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        known = places.setdefault((problem.text, problem.remedy), [])
        if problem.place not in known:
            known.append(problem.place)
    width = max((len(text) for text, _ in places), default=0)
    lines = []
    for (text, remedy), where in places.items():
        more = [f"and {len(where) - _PLACES} more"] if len(where) > _PLACES else []
        lines += [f"{text.ljust(min(width, 60))}  ({'; '.join([*where[:_PLACES], *more])})", f"  help: {remedy}"]
    return lines


def facts_of(found: Mapping[str, Any]) -> Facts:
    """Return the facts that `look` has sent."""
    return Facts(**{field.name: found[field.name] for field in attrs.fields(Facts)})
