"""`dagflow submit APP --to PLATFORM`: show what a platform needs to run an application, and run that with --yes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence

import click
from click.core import ParameterSource

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.prepare import planned
from dagflow.config.errors import ConflictingSettings
from dagflow.errors.shown import without_secrets
from dagflow.launching.build import LoadedApplication
from dagflow.launching.errors import ModeUnsupported, SecretInSubmission, SubmissionIncomplete
from dagflow.launching.launch import make_package
from dagflow.launching.platforms import kubernetes, spark_submit
from dagflow.launching.platforms.submission import Carried, Submission
from dagflow.packaging.package import main_program

PLATFORMS = ("standalone", "yarn", "kubernetes", "connect")
_OF_PLATFORM = ("master", "remote")
_OF_PACKAGE = ("package", "package_lock", "package_with", "package_folder")
"""Settings of what spark-submit sends. The launch that it starts does not send it again."""
_OF_KUBERNETES = ("image", "namespace", "secret", "claim", "executors")
_OTHER_WAY = "set the variable DAGFLOW_… of the driver there; on Kubernetes from a Secret, --secret NAME"


@app_command(
    "submit",
    help="Show what a platform needs to run an application: a command line, or a Kubernetes manifest. With --yes, run that.",
    params=[
        click.Option(["--to"], type=click.Choice(PLATFORMS), required=True, help="The platform."),
        click.Option(["--deploy-mode"], type=click.Choice(["client", "cluster"]), default="client", help="Where the driver is."),
        click.Option(["--image"], metavar="TEXT", default="", help="Kubernetes: the image of driver and executors."),
        click.Option(["--namespace"], metavar="TEXT", default="default", help="Kubernetes: the namespace."),
        click.Option(["--secret"], multiple=True, metavar="NAME", help="Kubernetes: a Secret for the environment. Repeatable."),
        click.Option(["--claim"], metavar="NAME", default="", help="Kubernetes: a PersistentVolumeClaim, mounted at /data."),
        click.Option(["--executors"], type=click.IntRange(1), default=2, help="Kubernetes: the number of executors."),
        click.Option(["--yes"], is_flag=True, help="Run it: spark-submit, kubectl apply, or dagflow launch."),
    ],
    example="dagflow submit my_app --to yarn -D input=s3://logs",
)
def command(
    arguments: AppArguments,
    to: str,
    deploy_mode: spark_submit.Mode,
    image: str,
    namespace: str,
    secret: Sequence[str],
    claim: str,
    executors: int,
    yes: bool,
) -> int:
    """Print the command line or the manifest. Return the exit code of what has run."""
    built, plan = planned(arguments)
    if unused := list(_unused(arguments, built, to)):
        raise ConflictingSettings(reason=f"--to {to} has no use for these, leave them out", given=tuple(unused))
    submission = _submission(arguments, built, to, is_elsewhere=to == "kubernetes" or deploy_mode == "cluster")
    if to == "kubernetes":
        if not image:
            raise SubmissionIncomplete(platform=to, missing="--image IMAGE")
        cluster = kubernetes.Cluster(
            image=image,
            namespace=namespace,
            secrets=tuple(secret),
            claim=claim,
            executors=executors,
            continuous=built.run.continuous,
        )
        text = kubernetes.manifest(submission, cluster)
        return _ran(text, ["kubectl", "apply", "-f", "-"], yes, given=text)
    if to == "connect":
        if deploy_mode == "cluster":
            raise ModeUnsupported(platform=to, mode=deploy_mode, reason="the driver is this process, the server only runs tasks")
        submission.check_secrets()
        if without_secrets(submission.master) != submission.master or "token=" in submission.master.lower():
            raise SecretInSubmission(setting="--remote")
        definitions = (part for key, value in submission.spark.items() for part in ("-D", f"{key}={value}"))
        line = ["dagflow", "launch", *submission.arguments, "--remote", submission.master, *definitions]
        return _ran(shlex.join(line) + "\n", [sys.executable, "-m", *line], yes)
    application = arguments.application
    if to == "yarn" and deploy_mode == "cluster" and not built.run.package and os.path.exists(application.partition(":")[0]):
        raise SubmissionIncomplete(platform="yarn --deploy-mode cluster", missing=f"--package: its hosts lack {application}")
    package = make_package(built, plan) if built.run.package else None
    line = spark_submit.words(submission, main_program(), deploy_mode, package)
    return _ran(spark_submit.text(line) + "\n", line, yes)


def _unused(arguments: AppArguments, built: LoadedApplication, to: str) -> Iterator[str]:
    """Yield the options that would be dropped: each one is passed on, or refused."""
    context = click.get_current_context()
    for name in ("deploy_mode",) if to == "kubernetes" else _OF_KUBERNETES:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            reason = "the driver is a pod" if to == "kubernetes" else "of --to kubernetes"
            yield f"--{name.replace('_', '-')} ({reason})"
    for name, platform in (("master", "standalone"), ("remote", "connect")):
        if to != platform and (
            name in arguments.options or any(text.startswith(f"run.{name}=") for text in arguments.definitions)
        ):
            yield f"--{name} (of --to {platform})"
    if to in ("standalone", "yarn") and not built.run.package:
        yield from (f"--{name.replace('_', '-')} (of --package)" for name in _OF_PACKAGE[1:] if name in arguments.options)
    if built.run.runner != "spark":
        yield f"--runner {built.run.runner} (platforms run Spark)"


def _submission(arguments: AppArguments, built: LoadedApplication, to: str, *, is_elsewhere: bool) -> Submission:
    """Return the launch. `is_elsewhere`: the driver does not get the environment and the files of this machine."""
    address = {"yarn": "yarn", "kubernetes": "k8s"}.get(to) or (built.run.remote if to == "connect" else built.run.master)
    if not address:
        raise SubmissionIncomplete(
            platform=to, missing="--remote sc://HOST:PORT" if to == "connect" else "--master spark://HOST:PORT"
        )
    given = [part for text in arguments.definitions if not text.startswith("spark.") for part in ("-D", text)]
    if is_elsewhere:
        carried = Carried.of(built, (*_OF_PLATFORM, *_OF_PACKAGE))
        given = [*(part for text in carried.definitions for part in ("-D", text)), *given]
        for key, origin in carried.withheld.items():
            print(f"warning: {key} ({origin}) holds a secret and is left out: {_OTHER_WAY}", file=sys.stderr)
    else:
        given += [part for file in arguments.conf_files for part in ("--conf", file)]
    for name, value in arguments.options.items():
        if value is None or name in _OF_PLATFORM or (name in _OF_PACKAGE and to in ("standalone", "yarn")):
            continue
        option = name.replace("_", "-")
        given += [f"--{option}" if value is True else f"--no-{option}" if value is False else f"--{option}={value}"]
    given += ["--json"] if arguments.json else []
    name = re.sub(r"[^a-z0-9]+", "-", built.dag.name.lower()).strip("-")[:50] or "application"
    return Submission(name=name, arguments=(arguments.application, *given), spark=dict(built.spark), master=address)


def _ran(text: str, line: Sequence[str], yes: bool, given: str | None = None) -> int:
    print(text, end="", flush=True)
    if not yes:
        return 0
    try:
        return subprocess.run(line, input=given, text=True, check=False).returncode
    except FileNotFoundError as error:
        raise SubmissionIncomplete(platform="--yes", missing=f"the program {line[0]} on PATH") from error
