"""The meaning of Spark's exceptions for a run."""

from __future__ import annotations

import re

from dagflow.errors import DagflowError
from dagflow.runtime.runner import TasksDied
from dagflow.spark.connection.links import Link
from dagflow.spark.errors import SparkLost

_NEEDED = "dagflow|operators|pyspark|pyarrow|attrs?|cloudpickle"  # by what comes before the user's program is even unpacked
_UNFIT = re.compile(rf"ModuleNotFoundError: No module named '((?:{_NEEDED})(?:\.[\w.]+)?)'")
_VERSIONS = re.compile(r"\[PYTHON_VERSION_MISMATCH\] ([^\n]+)")
_NO_PACKAGE = re.compile(r"^\s*dagflow-package: ([^\n]+)", re.MULTILINE)  # of the launcher, which stands in for Python
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^\n]*')


def failure(error: Exception, link: Link, doing: str) -> DagflowError | TasksDied:
    """Return the error to raise in place of an exception of pyspark, which was `doing` a job of that name.

    An error that ends the run, or else TasksDied: the window may be tried again.
    """
    if link.is_lost():
        return SparkLost(address=link.address, doing=doing, reason=first_line(error))
    return TasksDied(why(str(error)) or first_line(error))


def unfit_worker(text: str) -> str | None:
    """Why the Python of the tasks cannot run them, when that is what an exception's text says."""
    if match := _UNFIT.search(text):
        return f"it has no module {match[1]}"
    if match := _VERSIONS.search(text):
        return match[1].strip()
    if match := _NO_PROGRAM.search(text):
        return f"there is no program {match[1]}"
    return None


def unfit_for_package(text: str) -> str | None:
    r"""Return the reason why an executor cannot run a package, when that is what an exception's text says.

    >>> unfit_for_package("Error from python worker:\n  dagflow-package: app needs Python 3.11, and node7 has none")
    'app needs Python 3.11, and node7 has none'
    """
    match = _NO_PACKAGE.search(text)
    return match[1].strip() if match else None


def place_of_failure(text: str) -> str:
    """Return the host and the executor of the task that made Spark give a job up; "" where a text does not say it.

    >>> place_of_failure("most recent failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.2 executor 1): org.apache.spark…")
    '10.0.0.2, executor 1'
    """
    match = re.search(r"Lost task [^:(]*\(TID \d+\) \((\S+) executor (\w+)\)", text)
    return f"{match[1]}, executor {match[2]}" if match else ""


def why(text: str) -> str:
    """The one line that tells why Spark gave a job up; "" when it is not that.

    >>> why("Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    ...     "1.0 (TID 7) (host executor 1): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    'Spark gave up after 4 attempts: Python worker exited unexpectedly (crashed)'
    """
    attempts = re.search(r"failed (\d+) times", text)
    match = re.search(r"most recent failure: Lost task [^:]*\): ([^\n]+)", text)
    if match is None:
        return ""
    cause = re.sub(r"^(?:[\w$]+\.)+[\w$]+: ", "", match[1].strip())
    cause = re.sub(r"\. Consider setting '[^\n]*", "", cause)
    times = f" after {attempts[1]} {'attempt' if attempts[1] == '1' else 'attempts'}" if attempts else ""
    return f"Spark gave up{times}: {cause}"


def dead_partition(text: str) -> int | None:
    """The number of the task that made Spark give a job up, where an exception's text says it.

    >>> dead_partition("Task 3 in stage 1.0 failed 4 times, most recent failure: Lost task 3.3 in stage 1.0 (TID 7)")
    3
    """
    match = re.search(r"most recent failure: Lost task (\d+)\.\d+ in stage", text)
    return int(match[1]) if match else None


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, of a gRPC error that of its details; its class when there is none.

    What py4j says of a call into Java is only which call it was: then the line of the exception itself, without its class.
    """
    details = getattr(error, "details", None)
    text = str(details() if callable(details) else "") or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return re.sub(r"^: (?:[\w$]+\.)+[\w$]+: ", "", lines[1])
    return lines[0] if lines else type(error).__name__
