"""The needs of an application, their comparison with what an executor has, and the guard that does so within a task.

In this order: packages; the mark and the folders that a task has to see; `Needs`; `Facts`, and the `Problem` of each difference,
with its remedy; `Guard`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

import attrs

from dagflow.runtime.run_folder.layout import PROBE, stored
from dagflow.spark.executors.look import look
from dagflow.storage import OWN_FOLDER, file_system, join, local_path, open_store

PACKAGES = ("dagflow", "pyarrow")
TASKS = "dagflow.spark.dataframes.levels"
"""The module that imports all that any task needs."""
_PLACES = 3  # executors that are named for one problem
_TOLD = re.compile(r"ExecutorUnfit: (\[\[.*\]\])")
_MOST = 10  # problems that a task tells


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
    requirement = next((line for line in lines if re.match(rf"{package}\b", line) and "extra" not in line), package)
    return requirement.partition(";")[0].strip()


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
class Mark:
    """A file in the run folder, of a name and content that no other run has."""

    run_folder: str
    name: str
    content: str

    @classmethod
    def leave(cls, run_folder: str, *, sweep: bool = True) -> Mark:
        """Write a mark. `sweep`: those of launches that were killed go; only for the launch that holds the run folder."""
        store = open_store(run_folder, durable=False)
        for name in list(stored(store, (PROBE,))) if sweep else ():
            store.discard(name)
        mark = cls(run_folder, PROBE.name(token=uuid.uuid4().hex), uuid.uuid4().hex)
        store.create(mark.name, mark.content.encode())
        return mark

    def remove(self) -> None:
        """Remove the mark."""
        with contextlib.suppress(Exception):  # the next launch does it
            open_store(self.run_folder, durable=False).discard(self.name)

    def remove_with_folder(self) -> None:
        """Remove the mark, and the folders on its way that are empty then."""
        self.remove()
        local = local_path(self.run_folder)
        for folder in () if local is None else (os.path.join(local, PROBE.folder), local):
            with contextlib.suppress(OSError):  # it holds something else, or is gone
                os.rmdir(folder)

    def look(self) -> str:
        """Return what this process finds in the place of the mark; "" where it finds the mark."""
        try:
            record = open_store(self.run_folder).read(self.name)
        except Exception as error:  # noqa: BLE001  # a folder that may not be read, a store without credentials
            return str(error).partition("\n")[0] or type(error).__name__
        if record == self.content.encode():
            return ""
        return "it is not there" if record is None else "another one is there"


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


def unfit_folders(needs: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons why this process cannot use folders of a `Needs`, by `run folder URL`, `input URL`, `output URL`."""
    unfit = {}
    mark = None if needs["mark"] is None else Mark(**needs["mark"])
    if mark is not None:
        unfit[f"run folder {mark.run_folder}"] = mark.look() or _why_not_written(mark.run_folder)
    for mark in (Mark(**each) for each in needs["table_marks"]):
        unfit[f"table {mark.run_folder.removesuffix(OWN_FOLDER)}"] = mark.look() or _why_not_written(mark.run_folder)
    for path in needs["inputs"]:
        unfit[f"input {path}"] = why_not_read(path)
    for path in needs["outputs"]:
        unfit[f"output {path}"] = _why_not_written(join(path, OWN_FOLDER))
    return {name: reason for name, reason in unfit.items() if reason}


def why_not_read(path: str) -> str:
    """Return the reason why a file or folder cannot be read; "" if it can."""
    try:
        if not file_system(path).exists(path):
            return "it is not there"
    except Exception as error:  # noqa: BLE001  # a store without credentials
        return str(error).partition("\n")[0] or type(error).__name__
    local = local_path(path)
    if local is None:
        return ""
    wanted = os.R_OK | os.X_OK if os.path.isdir(local) else os.R_OK
    return "" if os.access(local, wanted) else "it may not be read"


def _why_not_written(folder: str) -> str:
    """Return the reason why files cannot be written to a folder; "" if they can."""
    if (local := local_path(folder)) is not None and not os.path.isdir(local):
        return "it is not there"
    name = PROBE.name(token=uuid.uuid4().hex)
    try:
        store = open_store(folder, durable=False)
        store.create(name, b"")
    except Exception as error:  # noqa: BLE001  # of any store
        reason = str(error).partition("\n")[0].replace(f"/{name}", "") or type(error).__name__  # it differs each time
        return f"it cannot be written: {reason}"
    with contextlib.suppress(Exception):  # the next launch does it
        store.discard(name)
    return ""


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


class ExecutorUnfit(RuntimeError):
    """Ends a task before it begins. Spark tries the task again, and tells why when it gives up."""


@attrs.frozen
class Guard:
    """The needs of an application, as JSON, that a process has to meet before its first task."""

    needs: str

    @classmethod
    def of(cls, needs: Needs) -> Guard:
        """Return the guard of these needs."""
        return cls(attrs.evolve(needs, seconds=0.0).as_json())

    @functools.cache  # noqa: B019  # a process has few guards, and keeps them
    def check(self) -> None:
        """Raise ExecutorUnfit. A process that has met the needs looks no more."""
        facts = facts_of(json.loads(look(self.needs)))
        problems = list(problems_of(Needs.from_json(self.needs), facts))
        if problems:
            raise ExecutorUnfit(json.dumps([attrs.astuple(problem) for problem in problems[:_MOST]]))


def told_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems that the text of an exception tells, none if it is not about that.

    >>> told_problems('PythonException: … dagflow.spark.executors.check.ExecutorUnfit: [["b", "no pandas", "pip"]]')
    (Problem(place='b', text='no pandas', remedy='pip'),)
    """
    match = _TOLD.search(text)
    return tuple(Problem(*each) for each in json.loads(match[1])) if match is not None else ()
