"""The arguments of commands on applications: the application, and its settings in layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin

import attrs
import click

from dagflow.cli.app_help import AppCommand
from dagflow.cli.group import APPLICATION_CODES, LAUNCH_CODES, ErrorOutput, epilog, expanded, expanded_value, paths
from dagflow.config import RunSettings, show
from dagflow.config.errors import ConflictingSettings
from dagflow.config.values import hints
from dagflow.config.values.field_docs import field_docs
from dagflow.errors import ConfigError


@attrs.frozen
class AppArguments:
    """The command line: the application, `-D`, `--conf`, options that are settings of the run, and `--json`."""

    application: str
    definitions: tuple[str, ...]
    conf_files: tuple[str, ...]
    options: dict[str, Any]
    json: bool
    problems: tuple[ConfigError, ...] = ()
    """problems of the command line itself, to be reported with those of the application"""


def app_command(
    name: str, *, help: str, params: Sequence[click.Parameter] = (), example: str = ""
) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorate `function(arguments, **own)` as a command that takes APP, all settings, `--json`, `--debug` and `params`."""
    is_launch = name in ("launch", "dev")
    docs = field_docs(RunSettings) if is_launch else {}
    run_fields = hints.settable(RunSettings)
    run_options = [o for key, field in run_fields.items() for o in _run_options(field, docs.get(key, ""), not is_launch)]

    def make(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def callback(context: click.Context, /, app: str, define: Sequence[str], conf: Sequence[str], **rest: Any) -> Any:
            options, problems = _run_values({option: rest.pop(option.name or "") for option in run_options})
            state = context.ensure_object(ErrorOutput)
            state.debug, state.json = rest.pop("debug"), rest.pop("json")
            app, define, conf = expanded(app), tuple(map(expanded_value, define)), tuple(map(expanded, conf))
            arguments = AppArguments(app, define, conf, options, state.json, problems)
            state.json_progress = is_launch and "json" in (arguments.options.get("progress"), arguments.options.get("log_format"))
            return function(arguments, **rest)

        shared: list[click.Parameter] = [
            click.Argument(["app"], metavar="APP", shell_complete=paths),
            click.Option(
                ["-D", "define"],
                multiple=True,
                metavar="KEY=VALUE",
                help="Set a setting of the application, operator.NAME.PROPERTY or spark.*. Repeatable.",
            ),
            click.Option(
                ["--conf"],
                multiple=True,
                metavar="FILE.toml",
                help="Read settings from a file. Repeatable; later files win.",
                shell_complete=paths,
            ),
        ]
        last: list[click.Parameter] = [
            click.Option(["--json"], is_flag=True, help="Print JSON on standard output."),
            click.Option(["--debug"], is_flag=True, help="Show tracebacks."),
        ]
        shown = example or f"dagflow {name} apps/line_filter -D input=logs -D output=out"
        also = "" if is_launch else "\n\nTakes all options of `launch` too, so you can try a command line here first."
        return AppCommand(
            name,
            callback=callback,
            params=[*shared, *params, *run_options, *last],
            help=help + also,
            epilog=epilog(shown, codes=LAUNCH_CODES if is_launch else APPLICATION_CODES),
        )

    return make


class _RunOption(click.Option):
    """An option for the setting `setting` of the run. `value` is its value if it takes none.

    It accepts several values, since click would silently take the last one.
    """

    def __init__(self, setting: str, option: str, value: bool | None = None, beside: str = "", **more: Any) -> None:
        name = setting if value in (True, None) else f"no_{setting}"
        super().__init__([name, option], multiple=value is None, is_flag=value is not None, **more)
        self.setting, self.value, self._beside = setting, value, beside

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Show an option and its opposite on one line."""
        record = super().get_help_record(ctx)
        return (f"{record[0]} / {self._beside}", record[1]) if record is not None and self._beside else record


def _run_options(field: attrs.Attribute[Any], doc: str, hidden: bool) -> list[_RunOption]:
    """The options for a setting of the run. Values stay strings: `dagflow.config` converts them and reports problems."""
    name, doc = field.name, f"{doc[:1].upper()}{doc[1:]}." if doc else ""
    hint = hints.field_hint(RunSettings, field)
    option = "--" + name.replace("_", "-")
    if hint is not bool:
        is_made = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]  # Factory is a class at run time
        if field.default is not None and doc and not is_made:
            doc = f"{doc[:-1]} (default: {show(field.default, hint)})."
        return [_RunOption(name, option, hidden=hidden, help=doc, metavar=_metavar(hint))]
    other = "--once" if name == "continuous" else f"--no-{option[2:]}"
    return [
        _RunOption(name, option, True, beside=other, hidden=hidden, help=doc),
        _RunOption(name, other, False, hidden=True),
    ]


def _run_values(given: dict[_RunOption, Any]) -> tuple[dict[str, Any], tuple[ConfigError, ...]]:
    """Return the settings of the run that the options give, and the contradictions among them."""
    values: dict[str, dict[Any, str]] = {}
    for option, texts in given.items():
        several = texts if option.value is None else (option.value,) if texts else ()
        for value in several:
            shown = f"{option.opts[0]} {value}" if option.value is None else option.opts[0]
            values.setdefault(option.setting, {})[value] = shown
    problems = [
        ConflictingSettings(reason="these exclude each other, leave one out", given=tuple(shown.values()))
        for shown in values.values()
        if len(shown) > 1
    ]
    return {setting: [*shown][-1] for setting, shown in values.items()}, tuple(problems)


def _metavar(hint: Any) -> str:
    parts = [part for part in hints.members(hint) if part is not type(None)]
    if get_origin(parts[0]) is Literal:
        return "|".join(map(str, get_args(parts[0])))
    unit = hints.unit_of(parts[0])
    words = {"seconds": "DURATION", "milliseconds": "DURATION", "bytes": "SIZE"}
    return words.get(unit or "", "NUMBER" if parts[0] in (int, float) else "TEXT")
