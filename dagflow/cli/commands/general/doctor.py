"""`dagflow doctor`: checks this machine and its environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

import attrs
import click

from dagflow.cli.app_arguments import AppArguments
from dagflow.cli.exit_codes import DONE, ENVIRONMENT
from dagflow.cli.group import epilog, expanded, expanded_value, paths
from dagflow.cli.prepare import planned
from dagflow.cli.report_error import style_of
from dagflow.config import build_run_settings, read_layers, spark_conf
from dagflow.diagnosis.all import checks
from dagflow.diagnosis.check import Check
from dagflow.errors.shown import visible
from dagflow.render.style import pad
from dagflow.render.words import counted

COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAMES = 17  # cells of the column of names


@click.command(
    "doctor",
    help="Check what dagflow needs: Java, Spark, Python, disk, memory, network, and file names that hide modules. "
    "Each problem comes with a command that fixes it.\n\n"
    "With an application or the address of a cluster, also looks at each executor: Python, packages, modules, folders, clock.\n\n"
    "Starts nothing unless --spark, APP, --master or --remote is given. The exit code is 3 if there is a problem.",
    epilog=epilog(
        "dagflow doctor", "dagflow doctor --spark", "dagflow doctor --master spark://boss:7077 my_app -D input=s3://logs"
    ),
    params=[
        click.Argument(["app"], metavar="[APP]", required=False, shell_complete=paths),
        click.Option(["--master"], metavar="TEXT", help="Look at the executors of a Spark master."),
        click.Option(["--remote"], metavar="TEXT", help="Look at those of a Spark Connect server, sc://HOST:PORT."),
        click.Option(["--run-folder"], metavar="FOLDER", help="The run folder of APP, as for launch."),
        click.Option(["-D", "define"], multiple=True, metavar="KEY=VALUE", help="As for launch. Repeatable."),
        click.Option(["--conf"], multiple=True, metavar="FILE.toml", help="As for launch. Repeatable.", shell_complete=paths),
        click.Option(["--spark"], is_flag=True, help="Start a Spark session too, and run one task."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON on standard output."),
    ],
)
def command(
    app: str | None,
    master: str | None,
    remote: str | None,
    run_folder: str | None,
    define: Sequence[str],
    conf: Sequence[str],
    spark: bool,
    as_json: bool,
) -> int:
    """Print the result of each check as soon as it is known."""
    style = style_of(sys.stdout)
    done = []
    options = {"master": master, "remote": remote, "run_folder": run_folder}
    given = AppArguments(app or "", tuple(map(expanded_value, define)), tuple(map(expanded, conf)), options, as_json)
    others = _of_executors(given) if app or master or remote else iter(())
    for check in chain(checks(os.environ, os.getcwd(), with_session=spark), others):
        done.append(check)
        if not as_json:
            text = visible(f"{pad(check.name, _NAMES)}{check.text}")
            print(style.paint(COLOURS[check.status], pad(check.status, 9)) + text, flush=True)
            if check.remedy:
                print(f"{' ' * (9 + _NAMES)}help: {visible(check.remedy)}", flush=True)
    problems = sum(check.status == "problem" for check in done)
    warnings = sum(check.status == "warning" for check in done)
    if as_json:
        listed = [{"name": each.name, "status": each.status, "text": each.text, "remedy": each.remedy or None} for each in done]
        print(json.dumps({"v": 1, "ok": not problems, "checks": visible(listed)}, indent=2, ensure_ascii=False))
    else:
        counts = [counted(number, what) for number, what in ((problems, "problem"), (warnings, "warning")) if number]
        print(f"\n{', '.join(counts) or 'everything is ready'}")
    return ENVIRONMENT if problems else DONE


def _of_executors(given: AppArguments) -> Iterator[Check]:
    """Look at the executors that an application, or any application, would run on."""
    from dagflow.diagnosis.executors import executors, needs_without_launch  # only here: it imports the runner
    from dagflow.spark.executors.check import Needs

    if not given.application:
        layers = read_layers(
            environment=os.environ, conf_files=given.conf_files, definitions=given.definitions, options=given.options
        )
        run, spark = build_run_settings(layers), {key: setting.value for key, setting in spark_conf(layers).items()}
        yield from executors(run, spark, attrs.evolve(Needs(), max_skew=run.lock_lease))
        return
    built, plan = planned(given)
    with needs_without_launch(built, plan) as needs:
        yield from executors(built.run, built.spark, needs)
