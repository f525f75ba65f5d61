"""`dagflow report DATASET`: how a run went, afterwards."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile

import click

from dagflow.cli.dataset_arguments import DatasetArguments, application_options, dataset_command, locator
from dagflow.cli.exit_codes import DONE
from dagflow.cli.group import expanded
from dagflow.cli.report_error import style_of
from dagflow.page.document import run_html
from dagflow.page.run.data import run_data
from dagflow.page.run.report import run_report
from dagflow.render.report import failure_text, report_text
from dagflow.render.words import size
from dagflow.storage import explained

IS_OURS = b'<meta name="generator" content="dagflow">'


def page_file(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the file for the page. A file that is not a page of dagflow is not overwritten."""
    if value is None or value == "-":
        return value
    path = expanded(value)
    if not path or os.path.isdir(path):
        what = f"{value} is a folder" if value else "the name is empty"
        raise click.BadParameter(f"{what}. Name a file: {shlex.quote(os.path.join(value, 'run.html'))}")
    if not os.path.isdir(folder := os.path.dirname(os.path.abspath(path))):
        raise click.BadParameter(f"there is no folder {folder}. Make it first.")
    with explained(path, "looking for an earlier page"):
        if os.path.isfile(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                if IS_OURS not in file.read(1000):
                    raise click.BadParameter(f"{value} exists and is not a page of dagflow. Choose another name, or remove it.")
    return path


@dataset_command(
    "report",
    examples=("dagflow report out", "dagflow report out --html run.html"),
    help="Show how a run went. Without options, print the report that launch prints at its end. With --html, write a page with "
    "the DAG, a timeline, the ledger, and a sample of rows with the input that they came from. The page needs no network. With "
    "--app or --trust, tasks run again to find the exact record of each row.",
    params=[
        click.Option(
            ["--html"],
            metavar="FILE",
            callback=page_file,
            help="Write the page to FILE, which may be an earlier page; -: to standard output.",
        ),
        *application_options()[1:],
    ],
    has_ledger=False,
)
def command(
    arguments: DatasetArguments, html: str | None, app: str | None, trust: bool, define: tuple[str, ...], conf: tuple[str, ...]
) -> int:
    """Print the report, or write the page."""
    locate = locator(None, app, trust, define, conf) if app is not None or trust else None
    if arguments.json:
        print(json.dumps(run_data(arguments.place, locator=locate), indent=2, ensure_ascii=False))
    elif html == "-":
        print(run_html(run_data(arguments.place, locator=locate)), end="")
    if html not in (None, "-"):
        page = run_html(run_data(arguments.place, locator=locate)).encode()
        _write(html, page)
        print(f"{html}: {size(len(page))}", file=sys.stderr if arguments.json else sys.stdout)
    elif html is None and not arguments.json:
        report, style = run_report(arguments.place), style_of(sys.stdout)
        print("\n\n".join(filter(None, [report_text(report, style), failure_text(report, style)])))
    return DONE


def _write(path: str, page: bytes) -> None:
    """Write a file as a whole or not at all: a page that is open in a browser is never half of one."""
    path = os.path.realpath(path)
    with explained(path, "writing the page"):
        if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe is not replaced
            with open(path, "wb") as file:
                file.write(page)
            return
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(page)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
