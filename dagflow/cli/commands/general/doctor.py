"""`dagflow doctor`: checks this machine and its environment."""

from __future__ import annotations

import json
import os
import sys

import click

from dagflow.cli.exit_codes import DONE, ENVIRONMENT
from dagflow.cli.group import epilog
from dagflow.cli.report_error import style_of
from dagflow.diagnosis.all import checks
from dagflow.errors.shown import visible
from dagflow.render.style import pad
from dagflow.render.words import counted

COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAMES = 17  # cells of the column of names


@click.command(
    "doctor",
    help="Check what dagflow needs: Java, Spark, Python, disk, memory, network, and file names that hide modules. "
    "Each problem comes with a command that fixes it.\n\n"
    "Starts nothing unless --spark is given. The exit code is 3 if there is a problem.",
    epilog=epilog("dagflow doctor", "dagflow doctor --spark"),
    params=[
        click.Option(["--spark"], is_flag=True, help="Start a Spark session too, and run one task."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON on standard output."),
    ],
)
def command(spark: bool, as_json: bool) -> int:
    """Print the result of each check as soon as it is known."""
    style = style_of(sys.stdout)
    done = []
    for check in checks(os.environ, os.getcwd(), with_session=spark):
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
        found = [counted(number, what) for number, what in ((problems, "problem"), (warnings, "warning")) if number]
        print(f"\n{', '.join(found) or 'everything is ready'}")
    return ENVIRONMENT if problems else DONE
