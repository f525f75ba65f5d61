"""What the commands of datasets take: the dataset, `--json` and `--debug`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from dagflow.cli.group import EXIT_CODES, ErrorOutput, NobodyReads, paths

if TYPE_CHECKING:
    from dagflow.lineage.trace import ApplicationLocator


@attrs.frozen
class Asked:
    """What the command line has said: the folder of the dataset, the place as it was written, and `--json`."""

    dataset: str
    place: str
    json: bool


def dataset_command(
    name: str, *, help: str, params: Sequence[click.Parameter] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command of `function(asked, **own)`: it takes DATASET, `--json`, `--debug` and `params`."""

    def make(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def callback(context: click.Context, /, dataset: str, **rest: Any) -> Any:
            from dagflow.ledger.find import find_dataset

            state = context.ensure_object(ErrorOutput)
            state.debug, state.json = rest.pop("debug"), rest.pop("json")
            try:
                return function(Asked(find_dataset(dataset), dataset, state.json), **rest)
            except BrokenPipeError as error:
                raise NobodyReads from error  # click would end the process by itself

        last: list[click.Parameter] = [
            click.Option(["--json"], is_flag=True, help="Prints JSON on standard output."),
            click.Option(["--debug"], is_flag=True, help="Shows tracebacks."),
        ]
        also = "\n\nDATASET is the output folder of an application, by path or URL, or anything that lies in it."
        return click.Command(
            name,
            callback=callback,
            params=[click.Argument(["dataset"], metavar="DATASET", shell_complete=paths), *params, *last],
            help=help + also,
            epilog=EXIT_CODES,
        )

    return make


def application_options() -> list[click.Parameter]:
    """How the application is found again that made a dataset."""
    return [
        click.Option(["--run-folder"], metavar="PATH", help="Where the run folder is now, if it has moved."),
        click.Option(["--app"], metavar="APP", help="The application to run; its settings are those of -D and --conf."),
        click.Option(
            ["--trust"],
            is_flag=True,
            help="Without --app: runs the application that the run folder names.",
        ),
        click.Option(
            ["-D", "define"],
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of it. With --trust: in the place of what the run folder knows, which are no secrets.",
        ),
        click.Option(["--conf"], multiple=True, metavar="FILE.toml", help="Settings in a file, with --app."),
    ]


def locator(
    run_folder: str | None, app: str | None, trust: bool, define: Sequence[str], conf: Sequence[str]
) -> ApplicationLocator:
    """The locator that `application_options` describe."""
    from dagflow.lineage.trace import ApplicationLocator

    if conf and app is None:
        raise click.UsageError("--conf goes with --app: without it, the settings are those that the run folder knows, and -D.")
    return ApplicationLocator(run_folder=run_folder, application=app, trust=trust, definitions=define, conf_files=conf)
