"""The arguments of commands on datasets: the dataset, `--json` and `--debug`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from dagflow.cli.group import DATASET_CODES, ErrorOutput, epilog, expanded, expanded_value, paths

if TYPE_CHECKING:
    from dagflow.lineage.trace import ApplicationLocator


@attrs.frozen
class DatasetArguments:
    """The arguments of a command on a dataset: its folder, the place as the user wrote it, and `--json`."""

    dataset: str
    place: str
    json: bool


def dataset_command(
    name: str,
    *,
    help: str,
    examples: Sequence[str],
    params: Sequence[click.Parameter] = (),
    has_ledger: bool = True,
    codes: Mapping[int, str] = {},  # read only
) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorate `function(arguments, **own)` as a command that takes DATASET, `--json`, `--debug` and `params`.

    `has_ledger`: DATASET must have a ledger, whose folder the command gets; False: it gets DATASET as it was written.
    `codes`: the exit codes that mean something else than for other commands.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def callback(context: click.Context, /, dataset: str, **rest: Any) -> Any:
            state = context.ensure_object(ErrorOutput)
            state.debug, state.json = rest.pop("debug"), rest.pop("json")
            dataset = expanded(dataset)
            folder = _dataset(dataset) if has_ledger else dataset
            return function(DatasetArguments(folder, dataset, state.json), **rest)

        last: list[click.Parameter] = [
            click.Option(["--json"], is_flag=True, help="Print JSON on standard output."),
            click.Option(["--debug"], is_flag=True, help="Show tracebacks."),
        ]
        also = "\n\nDATASET is the output folder of an application, by path or URL, or anything inside it."
        return click.Command(
            name,
            callback=callback,
            params=[click.Argument(["dataset"], metavar="DATASET", shell_complete=paths), *params, *last],
            help=help + also,
            epilog=epilog(*examples, codes={**DATASET_CODES, **codes}),
        )

    return make


def _dataset(place: str) -> str:
    """Return the folder of a dataset (`find_dataset`). Raises RunWithoutDataset for a run folder."""
    from dagflow.ledger.dataset.find import find_dataset
    from dagflow.ledger.errors import LedgerMissing

    try:
        return find_dataset(place)
    except LedgerMissing:
        from dagflow.page.errors import RunWithoutDataset
        from dagflow.page.run.report import run_report
        from dagflow.runtime.run_folder.folders import is_run_folder

        if not is_run_folder(place):
            raise
        report = run_report(place)
        stores = tuple(f"{operator}: {figures.destination}" for operator, figures in report.sinks.items())
        raise RunWithoutDataset(place=place, outputs=tuple(report.outputs), stores=stores) from None


def application_options() -> list[click.Parameter]:
    """Return the options that name the application that made a dataset."""
    return [
        click.Option(["--run-folder"], metavar="PATH", help="Read this run folder, if it was moved away from the dataset."),
        click.Option(
            ["--app"],
            metavar="APP",
            help="Run this application, with the settings of -D and --conf; with --trust, also with those of the run folder.",
        ),
        click.Option(
            ["--trust"],
            is_flag=True,
            help="Run the application that the run folder names. Only if you trust both.",
        ),
        click.Option(
            ["-D", "define"],
            multiple=True,
            metavar="KEY=VALUE",
            help="Set a setting of the application. With --trust, it replaces the recorded one. Secrets are not recorded.",
        ),
        click.Option(["--conf"], multiple=True, metavar="FILE.toml", help="Read settings from a file. Needs --app."),
    ]


def locator(
    run_folder: str | None, app: str | None, trust: bool, define: Sequence[str], conf: Sequence[str]
) -> ApplicationLocator:
    """Return the values of `application_options`."""
    from dagflow.lineage.trace import ApplicationLocator

    if conf and app is None:
        raise click.UsageError("--conf needs --app. Without --app, the settings are those recorded in the run folder, and -D.")
    return ApplicationLocator(
        run_folder=None if run_folder is None else expanded(run_folder),
        application=None if app is None else expanded(app),
        trust=trust,
        definitions=tuple(map(expanded_value, define)),
        conf_files=tuple(map(expanded, conf)),
    )
