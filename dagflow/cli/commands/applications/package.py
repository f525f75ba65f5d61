"""`dagflow package APP`: makes an archive with the libraries that an application needs, for executors that have none."""

from __future__ import annotations

import gc
import json
import shlex

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.prepare import planned
from dagflow.errors.shown import visible
from dagflow.launching.launch import make_package
from dagflow.launching.platforms.spark_submit import Mode, words
from dagflow.launching.platforms.submission import Submission
from dagflow.packaging.package import Package, main_program
from dagflow.render.words import seconds, size


@app_command(
    "package",
    help="Make an archive of the libraries that an application needs, for executors that have nothing but Python and Spark.\n\n"
    "It holds the libraries that are installed here, or those of a lock file (--package-lock FILE). --package-with NAME adds one "
    "that no import statement names. `launch --package` makes and sends the same archive. This command prints what spark-submit "
    "needs. Nothing runs.",
    example="dagflow package apps/line_filter -D input=logs -D output=out",
)
def command(arguments: AppArguments) -> None:
    """Make the package, and print its place and the lines for spark-submit."""
    gc.enable()  # `main` turned it off
    package = make_package(*planned(arguments))
    if arguments.json:
        print(json.dumps(visible(as_json(package, arguments.application)), indent=2, ensure_ascii=False))
    else:
        for line in as_lines(package, arguments.application):
            print(visible(line))


def summary(package: Package) -> str:
    """Return a line about a package.

    It says whether the package was made, or was in the cache.
    """
    state = f"made in {seconds(package.seconds)}" if package.is_new else "unchanged"
    return f"{package.archive.name} ({size(package.bytes)}, {state})"


def as_lines(package: Package, application: str) -> list[str]:
    """Return the lines that the command prints. Values of settings are not among them: they may be secret."""
    return [
        f"{package.name}: {summary(package)}",
        f"  archive    {package.archive}",
        *([f"  shared     {package.shared}"] if package.shared is not None else []),
        f"  code       {package.code}",
        f"  needs      Python {package.python} on the executors",
        f"  libraries  {', '.join(f'{each.name} {each.version}' for each in package.libraries)}",
        "",
        "Launch with it:",
        f"  dagflow launch {application} --package --master spark://HOST:7077 -D …",
        "",
        "With spark-submit, the driver here:",
        f"  {_submitted(package, application, 'client')} -D …",
        "",
        "With spark-submit, the driver in the cluster (YARN, Kubernetes):",
        f"  {_submitted(package, application, 'cluster')} -D …",
    ]


def _submitted(package: Package, application: str, mode: Mode) -> str:
    submission = Submission(name=package.name, arguments=(application,), spark={}, master="MASTER")
    return shlex.join(words(submission, main_program(), mode, package))


def as_json(package: Package, application: str) -> dict[str, object]:
    """Return what the command prints with --json."""
    return {
        "v": 1,
        "name": package.name,
        "archive": str(package.archive),
        "shared": None if package.shared is None else str(package.shared),
        "bytes": package.bytes,
        "code": str(package.code),
        "main": str(main_program()),
        "python": package.python,
        "libraries": {each.name: each.version for each in package.libraries},
        "is_new": package.is_new,
        "seconds": round(package.seconds, 3),
        "spark": package.spark_settings(),
        "submit": {
            "client": _submitted(package, application, "client"),
            "cluster": _submitted(package, application, "cluster"),
        },
    }
