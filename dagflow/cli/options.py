"""What all commands take: the application, and its settings in layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin

import attrs
import click

from dagflow.cli.group import EXIT_CODES, NobodyReads, State
from dagflow.config import RunSettings, hints
from dagflow.config.docs import field_docs


@attrs.frozen
class Given:
    """What the command line has given: the application, `-D`, `--conf`, options that are settings of the run, and `--json`."""

    application: str
    definitions: tuple[str, ...]
    conf_files: tuple[str, ...]
    options: dict[str, Any]
    json: bool


def app_command(name: str, *, help: str, params: Sequence[click.Parameter] = ()) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command of `function(given, **own)`: it takes APP, all settings, `--json`, `--debug` and `params`."""
    is_launch = name == "launch"
    docs = field_docs(RunSettings) if is_launch else {}
    run_options = [_run_option(field, docs.get(key, ""), not is_launch) for key, field in hints.settable(RunSettings).items()]
    run_names = [option.name for option in run_options]

    def make(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def callback(context: click.Context, /, app: str, define: Sequence[str], conf: Sequence[str], **rest: Any) -> Any:
            options = {name: rest.pop(name) for name in run_names}
            state = context.ensure_object(State)
            state.debug, state.json = rest.pop("debug"), rest.pop("json")
            given = Given(app, tuple(define), tuple(conf), {k: v for k, v in options.items() if v is not None}, state.json)
            state.json_progress = is_launch and given.options.get("progress") == "json"
            try:
                return function(given, **rest)
            except BrokenPipeError as error:
                raise NobodyReads from error  # click would end the process by itself

        shared: list[click.Parameter] = [
            click.Argument(["app"], metavar="APP"),
            click.Option(
                ["-D", "define"], multiple=True, metavar="KEY=VALUE", help="A setting, operator.NAME.PROPERTY or spark.*"
            ),
            click.Option(["--conf"], multiple=True, metavar="FILE.toml", help="Settings in a file; later ones win."),
        ]
        last: list[click.Parameter] = [
            click.Option(["--json"], is_flag=True, help="Prints JSON on standard output."),
            click.Option(["--debug"], is_flag=True, help="Shows tracebacks."),
        ]
        also = "" if is_launch else "\n\nTakes all options of `launch` too, so that the same command line can be tried."
        return click.Command(
            name, callback=callback, params=[*shared, *params, *run_options, *last], help=help + also, epilog=EXIT_CODES
        )

    return make


def _run_option(field: attrs.Attribute[Any], doc: str, hidden: bool) -> click.Option:
    """The option for a setting of the run. Its value stays text: the configuration room converts it and words what is wrong."""
    doc = doc[:1].upper() + doc[1:]
    hint = hints.field_hint(RunSettings, field)
    if field.name == "continuous":
        return click.Option(["continuous", "--continuous/--once"], default=None, hidden=hidden, help=doc)
    option = "--" + field.name.replace("_", "-")
    if hint is bool:
        return click.Option([field.name, f"{option}/--no-{option[2:]}"], default=None, hidden=hidden, help=doc)
    return click.Option([field.name, option], default=None, hidden=hidden, help=doc, metavar=_metavar(hint))


def _metavar(hint: Any) -> str:
    parts = [part for part in hints.members(hint) if part is not type(None)]
    if get_origin(parts[0]) is Literal:
        return "|".join(map(str, get_args(parts[0])))
    unit = hints.unit_of(parts[0])
    words = {"seconds": "DURATION", "milliseconds": "DURATION", "bytes": "SIZE"}
    return words.get(unit or "", "NUMBER" if parts[0] in (int, float) else "TEXT")
