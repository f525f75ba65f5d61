"""The command line of `spark-submit`, for a standalone cluster and for YARN."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dagflow.launching.errors import ModeUnsupported
from dagflow.launching.platforms.submission import Submission
from dagflow.packaging.package import Package

Mode = Literal["client", "cluster"]


def words(submission: Submission, main: Path, mode: Mode, package: Package | None = None) -> list[str]:
    """Return the words of the command line.

    Args:
        submission: what is to be launched.
        main: the program that spark-submit starts.
        mode: where the driver is. In the cluster, it runs in the package's Python, and the application is in the package's code.
        package: what executors get; None: they have what they need.

    Raises ModeUnsupported, SecretInSubmission.
    """
    submission.check_secrets()
    if mode == "cluster" and submission.master.startswith("spark://"):
        raise ModeUnsupported(platform="standalone", mode=mode, reason="Spark does not run Python drivers on standalone workers")
    settings = dict(submission.spark)
    line = ["spark-submit", "--master", submission.master, "--deploy-mode", mode, "--name", submission.name]
    arguments = submission.arguments
    if package is not None:
        settings |= package.spark_settings(settings)
    if mode == "client":
        settings.setdefault("spark.pyspark.driver.python", sys.executable)
    else:
        # the client waits, and ends with 1 if the application failed; a driver that ends with any error is started again
        settings.setdefault("spark.yarn.submit.waitAppCompletion", "true")
        settings.setdefault("spark.yarn.maxAppAttempts", "3")
        if package is not None:
            settings["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] = package.launcher
            line += ["--py-files", str(package.code)]
            arguments = (package.module, *arguments[1:])
    for key, value in sorted(settings.items()):
        line += ["--conf", f"{key}={value}"]
    return [*line, str(main), "launch", *arguments]


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
