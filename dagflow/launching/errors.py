"""Errors in loading and building an application."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.errors.frames import raised
from dagflow.errors.misspelt import corrected


@error
class ApplicationMissing(ConfigError):
    """The application does not exist."""

    spec: str
    reason: str
    code: ClassVar[str] = "DF251"
    example = {"spec": "apps/line_filtr", "reason": "there is no such folder"}

    def message(self) -> str:
        return (
            f"no application {self.spec!r}: {self.reason}\n"
            "  help: name a folder with app.py (apps/line_filter), a file (path.py or path.py:name) or a module (package.module:name)"
        )


@error
class ApplicationBroken(ConfigError):
    """The application's code raised while it was loaded or filled the DAG."""

    spec: str
    doing: str
    error: str
    frames: str
    code: ClassVar[str] = "DF252"
    example = {
        "spec": "app.py",
        "doing": "loading it",
        "error": "NameError: name 'Filer' is not defined",
        "frames": "  at app.py:12 in populate_dag",
    }
    general_remedy = "fix the line that is named first"

    @classmethod
    def of(cls, spec: str, error: BaseException, doing: str = "loading it") -> ApplicationBroken:
        """Make the error from the exception, with the user's frames, the innermost first."""
        text, frames = raised(error)
        return cls(spec, doing, corrected(text, error), frames)

    def message(self) -> str:
        return f"application {self.spec!r}: {self.doing} failed: {self.error}" + (f"\n{self.frames}" if self.frames else "")


@error
class NoPopulateDag(ConfigError):
    """The module has no function populate_dag()."""

    spec: str
    known: tuple[str, ...]
    is_module: bool = False
    code: ClassVar[str] = "DF253"
    example = {"spec": "app.py", "known": ("make_dag",)}

    def message(self) -> str:
        if self.is_module:
            return f"{self.spec!r} is a module, a part of applications\n  help: write populate_dag(dag, conf), and in it dag.add_module(name, module)"
        return f"{self.spec!r} has no populate_dag(dag, conf)\n  help: write a function of that name, or name another one: {self.spec}:my_function"


@error
class OperatorsShadowed(ConfigError):
    """A folder or file of yours hides the operator library."""

    path: str
    code: ClassVar[str] = "DF257"
    example = {"path": "operators.py"}

    def message(self) -> str:
        return f"{self.path} hides dagflow's operator library\n  help: rename your folder or file 'operators'; 'import operators' finds it first"


@error
class StandardModuleHidden(ConfigError):
    """A module of yours has the name of a standard module of Python, and hides it."""

    path: str
    name: str
    error: str
    code: ClassVar[str] = "DF260"
    example = {"path": "queue.py", "name": "queue", "error": "module 'queue' has no attribute 'SimpleQueue'"}

    def message(self) -> str:
        end = ".py" if self.path.endswith(".py") else ""
        return (
            f"{self.path} and Python's own module {self.name!r} hide each other: {self.error}\n"
            f"  help: rename yours, to my_{self.name}{end}, say; other libraries import {self.name!r} too"
        )


@error
class NotTraceable(RunError):
    """A row cannot be traced, or a window cannot be replayed."""

    code: ClassVar[str] = "DF350"


@error
class ApplicationUnknown(NotTraceable):
    """The run folder does not say how to load the application again."""

    application: str
    reason: str
    code: ClassVar[str] = "DF353"
    example = {"application": "demo", "reason": "it was launched from Python code"}

    def message(self) -> str:
        return (
            f"application {self.application!r} cannot be loaded again: {self.reason}\n"
            "  help: name it, with its settings: --app APP -D KEY=VALUE …"
        )


@error
class DevelopmentWouldReplace(ConfigError):
    """`dagflow dev` starts over after each change, and the output has results of an earlier run."""

    output: str
    code: ClassVar[str] = "DF285"
    example = {"output": "out"}

    def message(self) -> str:
        return (
            f"{self.output} has results of an earlier run, which `dagflow dev` would replace after the first change of the code\n"
            "  help: give another output, or --fresh to replace them"
        )


@error
class SecretInSubmission(ConfigError):
    """A setting that sounds like a secret would be readable in a command line or a manifest."""

    setting: str
    code: ClassVar[str] = "DF278"
    example = {"setting": "spark.hadoop.fs.s3a.secret.key"}

    def message(self) -> str:
        return (
            f"{self.setting} holds a secret, which all who see the command line or the manifest could read\n"
            "  help: leave it out. The driver takes it from its environment, on Kubernetes from a Secret (--secret NAME); executors from theirs"
        )


@error
class ModeUnsupported(ConfigError):
    """A platform does not run drivers in this mode."""

    platform: str
    mode: str
    reason: str
    code: ClassVar[str] = "DF279"
    example = {"platform": "standalone", "mode": "cluster", "reason": "Spark does not run Python drivers on standalone workers"}

    def message(self) -> str:
        return f"{self.platform} has no deploy mode {self.mode}: {self.reason}\n  help: --deploy-mode client"


@error
class SubmissionIncomplete(ConfigError):
    """A submission lacks what its platform needs."""

    platform: str
    missing: str
    code: ClassVar[str] = "DF277"
    example = {"platform": "kubernetes", "missing": "--image IMAGE"}

    def message(self) -> str:
        return f"{self.platform} needs {self.missing}\n  help: add it; without --yes, the command line or the manifest is only printed"
