"""What can be wrong with the application that a command names."""

from __future__ import annotations

import os
import traceback
from typing import ClassVar

from dagflow.errors.base import ConfigError, error

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@error
class ApplicationMissing(ConfigError):
    """There is no such application."""

    spec: str
    reason: str
    code: ClassVar[str] = "DF251"

    def message(self) -> str:
        return (
            f"no application {self.spec!r}: {self.reason}\n"
            "  help: name a folder with app.py (apps/line_filter), a file (path.py or path.py:name) or a module (package.module:name)"
        )


def raised(error: BaseException) -> tuple[str, str]:
    """What the user's code raised, and its frames, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and not is_ours(f.filename)]
    lines = [f"  at {f.filename}:{f.lineno} in {f.name}{f': {f.line}' if f.line else ''}" for f in reversed(own[-6:])]
    return "".join(traceback.format_exception_only(error)).strip(), "\n".join(lines)


def is_ours(path: str) -> bool:
    """Whether a file of source is dagflow's own, or one of its operators; or none: what attrs has generated."""
    if path.startswith("<attrs generated"):
        return True
    library = os.path.join(os.path.dirname(_PACKAGE), "operators")
    return os.path.abspath(path).startswith((_PACKAGE + os.sep, library + os.sep))


@error
class ApplicationBroken(ConfigError):
    """The application's code raised while it was loaded or filled the DAG."""

    spec: str
    doing: str
    error: str
    frames: str
    code: ClassVar[str] = "DF252"

    @classmethod
    def of(cls, spec: str, error: BaseException, doing: str = "loading it") -> ApplicationBroken:
        """From the exception; its own frames, the innermost first."""
        return cls(spec, doing, *raised(error))

    def message(self) -> str:
        return f"application {self.spec!r}: {self.doing} failed: {self.error}" + (f"\n{self.frames}" if self.frames else "")


@error
class NoPopulateDag(ConfigError):
    """What is named is no application."""

    spec: str
    known: tuple[str, ...]
    is_module: bool = False
    code: ClassVar[str] = "DF253"

    def message(self) -> str:
        if self.is_module:
            return f"{self.spec!r} is a module, a part of applications\n  help: write populate_dag(dag, conf), and in it dag.add_module(name, module)"
        return f"{self.spec!r} has no populate_dag(dag, conf)\n  help: write a function of that name, or name another one: {self.spec}:my_function"


@error
class ForeignFiles(ConfigError):
    """An output folder holds files that dagflow did not write."""

    folder: str
    files: tuple[str, ...]
    code: ClassVar[str] = "DF254"

    def message(self) -> str:
        shown = ", ".join(self.files[:3]) + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")
        return f"output folder {self.folder} holds files that no run wrote: {shown}\n  help: name an empty or new folder, or move them away"


@error
class OutputOwned(ConfigError):
    """An output folder belongs to another run folder."""

    folder: str
    owner: str
    mine: str
    code: ClassVar[str] = "DF255"

    def message(self) -> str:
        return (
            f"output folder {self.folder} belongs to the run in {self.owner}, this one is {self.mine}\n"
            "  help: name another output, or the same first output (or --run-folder) as before"
        )


@error
class LocalPathRemoteMaster(ConfigError):
    """A path that only this machine has, with executors on others."""

    operator: str
    path: str
    master: str
    code: ClassVar[str] = "DF256"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} works on {self.path}, a path of this machine, but {self.master} runs on others\n"
            "  help: use a path or URL that all of them see, and say so with --shared-paths if this one is"
        )


@error
class OperatorsShadowed(ConfigError):
    """A folder of the user's hides the operator library."""

    path: str
    code: ClassVar[str] = "DF257"

    def message(self) -> str:
        return f"{self.path} hides dagflow's operator library\n  help: rename your folder or file 'operators'; 'import operators' finds it first"


@error
class OutputOrphaned(ConfigError):
    """An output folder belongs to this run, but the run's log is gone: what is in it cannot be told from what is not."""

    folder: str
    run_folder: str
    code: ClassVar[str] = "DF258"

    def message(self) -> str:
        return (
            f"output folder {self.folder} belongs to the run in {self.run_folder}, whose log is gone: everything would be written twice\n"
            "  help: bring the run folder back, name another output, or move the files in the output away and launch with --fresh"
        )


@error
class SchemasDiffer(ConfigError):
    """Two sinks write rows of different kinds into one folder, which is one dataset."""

    folder: str
    first: str
    second: str
    one: str
    other: str
    code: ClassVar[str] = "DF261"

    def message(self) -> str:
        return (
            f"output folder {self.folder} is one dataset, but sink {self.first!r} writes rows of ({self.one}) into it, "
            f"sink {self.second!r} rows of ({self.other})\n"
            "  help: give each of them a folder of its own"
        )


@error
class DatasetTwice(ConfigError):
    """Two input operators read the same dataset into one output."""

    folder: str
    dataset: str
    first: str
    second: str
    code: ClassVar[str] = "DF262"

    def message(self) -> str:
        return (
            f"operators {self.first!r} and {self.second!r} both read the dataset {self.dataset}, and both lead to the output folder "
            f"{self.folder}\n"
            f"  help: let {self.first!r} read it alone; one stream may lead to several readers"
        )


@error
class OutputInInput(ConfigError):
    """What a run writes lies in a folder that it reads."""

    operator: str
    path: str
    output: str
    what: str = "output folder"
    code: ClassVar[str] = "DF259"

    def message(self) -> str:
        return (
            f"{self.what} {self.output} lies in {self.path}, which operator {self.operator!r} reads: "
            "each launch would read what the one before has written\n"
            "  help: name a folder beside the input"
        )


@error
class StandardModuleHidden(ConfigError):
    """A module of the user's has the name of one of Python's own, and was found instead of it."""

    path: str
    name: str
    error: str
    code: ClassVar[str] = "DF260"

    def message(self) -> str:
        end = ".py" if self.path.endswith(".py") else ""
        return (
            f"{self.path} and Python's own module {self.name!r} hide each other: {self.error}\n"
            f"  help: rename yours, to my_{self.name}{end}, say; other libraries import {self.name!r} too"
        )
