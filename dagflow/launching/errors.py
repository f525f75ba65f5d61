"""Errors in loading and building an application."""

from __future__ import annotations

from dagflow.errors import ConfigError, RunError
from dagflow.errors.base import error
from dagflow.errors.frames import raised
from dagflow.errors.misspelt import corrected


@error("DF251")
class ApplicationMissing(ConfigError):
    """The application does not exist."""

    spec: str
    reason: str
    template = (
        "no application {spec!r}: {reason}\n"
        "  help: name a folder with app.py (apps/line_filter), a file (path.py or path.py:name) or a module (package.module:name)"
    )
    example = {"spec": "apps/line_filtr", "reason": "there is no such folder"}


@error("DF252")
class ApplicationBroken(ConfigError):
    """The application's code raised while it was loaded or filled the DAG."""

    spec: str
    doing: str
    error: str
    frames: str
    template = "application {spec!r}: {doing} failed: {error}{frames:?\n{frames}}"
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


@error("DF253")
class NoPopulateDag(ConfigError):
    """The module has no function populate_dag()."""

    spec: str
    is_module: bool = False
    template = (
        "{spec!r} {is_module:?is a module, a part of applications\n"
        "  help: write populate_dag(dag, conf), and in it dag.add_module(name, module)"
        "|has no populate_dag(dag, conf)\n"
        "  help: write a function of that name, or name another one: {spec}:my_function}"
    )
    example = {"spec": "app.py"}


@error("DF257")
class OperatorsShadowed(ConfigError):
    """A folder or file of yours hides the operator library."""

    path: str
    template = (
        "{path} hides dagflow's operator library\n"
        "  help: rename your folder or file 'operators'; 'import operators' finds it first"
    )
    example = {"path": "operators.py"}


@error("DF260")
class StandardModuleHidden(ConfigError):
    """A module of yours has the name of a standard module of Python, and hides it."""

    path: str
    name: str
    error: str
    example = {"path": "queue.py", "name": "queue", "error": "module 'queue' has no attribute 'SimpleQueue'"}

    def message(self) -> str:
        end = ".py" if self.path.endswith(".py") else ""
        return (
            f"{self.path} and Python's own module {self.name!r} hide each other: {self.error}\n"
            f"  help: rename yours, to my_{self.name}{end}, say; other libraries import {self.name!r} too"
        )


@error("DF350")
class NotTraceable(RunError):
    """A row cannot be traced, or a window cannot be replayed."""


@error("DF353")
class ApplicationUnknown(NotTraceable):
    """The run folder does not say how to load the application again."""

    application: str
    reason: str
    template = (
        "application {application!r} cannot be loaded again: {reason}\n"
        "  help: name it, with its settings: --app APP -D KEY=VALUE …"
    )
    example = {"application": "demo", "reason": "it was launched from Python code"}


@error("DF285")
class DevelopmentWouldReplace(ConfigError):
    """`dagflow dev` starts over after each change, and the output has results of an earlier run."""

    output: str
    template = (
        "{output} has results of an earlier run, which `dagflow dev` would replace after the first change of the code\n"
        "  help: give another output, or --fresh to replace them"
    )
    example = {"output": "out"}


@error("DF278")
class SecretInSubmission(ConfigError):
    """A setting that sounds like a secret would be readable in a command line or a manifest."""

    setting: str
    template = (
        "{setting} holds a secret, which all who see the command line or the manifest could read\n"
        "  help: leave it out. The driver takes it from its environment, "
        "on Kubernetes from a Secret (--secret NAME); executors from theirs"
    )
    example = {"setting": "spark.hadoop.fs.s3a.secret.key"}


@error("DF279")
class ModeUnsupported(ConfigError):
    """A platform does not run drivers in this mode."""

    platform: str
    mode: str
    reason: str
    template = "{platform} has no deploy mode {mode}: {reason}\n  help: --deploy-mode client"
    example = {"platform": "standalone", "mode": "cluster", "reason": "Spark does not run Python drivers on standalone workers"}


@error("DF277")
class SubmissionIncomplete(ConfigError):
    """A submission lacks what its platform needs."""

    platform: str
    missing: str
    template = "{platform} needs {missing}\n  help: add it; without --yes, the command line or the manifest is only printed"
    example = {"platform": "kubernetes", "missing": "--image IMAGE"}
