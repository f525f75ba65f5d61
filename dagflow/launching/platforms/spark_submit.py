"""The command line of `spark-submit`, for a standalone cluster and for YARN."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

import attrs

from dagflow.launching.errors import ModeUnsupported
from dagflow.launching.platforms.submission import Submission

Mode = Literal["client", "cluster"]


@attrs.frozen(kw_only=True)
class Shipped:
    """Files that travel with a submission: those of `dagflow package`.

    Attributes:
        main: the main program.
        archive: the archive of the environment, unpacked as `environment`; "" if executors have what they need.
        code: the zip of the application's code; "" if it travels with the tasks.
    """

    main: str
    archive: str = ""
    code: str = ""


def words(submission: Submission, shipped: Shipped, mode: Mode) -> list[str]:
    """Return the words of the command line. Raises ModeUnsupported, SecretInSubmission."""
    submission.check_secrets()
    if mode == "cluster" and submission.master.startswith("spark://"):
        raise ModeUnsupported(platform="standalone", mode=mode, reason="Spark does not run Python drivers on standalone workers")
    settings = dict(submission.spark)
    python = "./environment/bin/python"
    if shipped.archive:
        settings["spark.archives"] = f"{shipped.archive}#environment"
        settings["spark.executorEnv.PYSPARK_PYTHON"] = python
        settings["spark.yarn.appMasterEnv.PYSPARK_PYTHON" if mode == "cluster" else "spark.pyspark.python"] = python
    line = ["spark-submit", "--master", submission.master, "--deploy-mode", mode, "--name", submission.name]
    if mode == "cluster":
        # the client waits, and ends with the exit code of the application master; a driver that dies is started again
        settings.setdefault("spark.yarn.submit.waitAppCompletion", "true")
        settings.setdefault("spark.yarn.maxAppAttempts", "3")
    for key, value in sorted(settings.items()):
        line += ["--conf", f"{key}={value}"]
    if shipped.code and mode == "cluster":
        line += ["--py-files", shipped.code]
    return [*line, shipped.main, "launch", *submission.arguments]


def text(line: Sequence[str]) -> str:
    r"""Return a command line to paste, an option on each line.

    >>> print(text(["spark-submit", "--master", "yarn", "--conf", "a=b c", "main.py", "launch", "app"]))
    spark-submit \
      --master yarn \
      --conf 'a=b c' \
      main.py launch app
    """
    lines, rest = [line[0]], list(line[1:])
    while rest and rest[0].startswith("--"):
        lines.append(f"{rest[0]} {shlex.quote(rest[1])}")
        del rest[:2]
    return " \\\n  ".join([*lines, shlex.join(rest)])
