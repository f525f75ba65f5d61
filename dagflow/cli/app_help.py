"""The help page of a command on an application: with APP on the command line, it begins with the settings of that application."""

from __future__ import annotations

import inspect
import os
import shlex
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dagflow.config import SettingRow
    from dagflow.launching.application import Application
    from dagflow.model.operator.base import Operator

_ARGUMENTS = "dagflow.arguments"


class AppCommand(click.Command):
    """A command on an application. `COMMAND APP --help` lists the settings of APP; `COMMAND --help` loads nothing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command line for the help page: `--help` ends parsing before APP is known."""
        ctx.meta[_ARGUMENTS] = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if (definition := _definition(error.option_name, ctx.meta[_ARGUMENTS])) is None:
                raise
            message = f"There is no option {error.option_name}; it is a setting of the application: {definition}"
            raise click.UsageError(message, ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the settings of the application, then the options."""
        given = self._given(ctx)
        if isinstance(spec := given.get("app"), str):
            _write_application(spec, given.get("define") or (), formatter)
        super().format_options(ctx, formatter)

    def _given(self, ctx: click.Context) -> dict[str, Any]:
        """Return the values on the command line, as far as they can be read."""
        try:
            values, _, _ = self.make_parser(ctx).parse_args(args=list(ctx.meta.get(_ARGUMENTS, ())))
        except click.UsageError:
            return {}
        return dict(values)


def _definition(option: str, words: list[str]) -> str | None:
    """Return the `-D` of an option that is a setting of the application on the command line. Nothing is run."""
    from dagflow.cli.completion.keys import keys_of

    name = option.lstrip("-").replace("-", "_")
    if not any(key.name == name for word in words if not word.startswith("-") for key in keys_of(word)):
        return None
    at = next(n for n, word in enumerate(words) if word.partition("=")[0] == option)
    value = words[at].partition("=")[2] or next(iter(words[at + 1 :]), "…")
    return f"-D {shlex.quote(f'{name}={value}')}"


def _write_application(spec: str, definitions: tuple[str, ...], formatter: click.HelpFormatter) -> None:
    from dagflow.errors import DagflowError
    from dagflow.launching.application import load_application

    try:
        application = load_application(spec)
    except DagflowError as error:
        reason = error.message().partition("\n")[0]
    except SystemExit as end:
        reason = f"it called sys.exit({end.code!r})"
    else:
        _write_settings(application, spec, formatter)
        _write_operators(application, spec, definitions, formatter)
        return
    with formatter.section("Settings of the application"):
        formatter.write_text(f"They are not known, since it cannot be loaded: {reason}")


def _write_settings(application: Application, spec: str, formatter: click.HelpFormatter) -> None:
    from dagflow.config import declared

    cls = application.settings_class
    with formatter.section(f"Settings of {application.name}"):
        if cls is None:
            formatter.write_text(f"It takes any -D KEY=VALUE: populate_dag(dag, conf) names no class of settings. See {spec}.")
            return
        if doc := inspect.getdoc(cls):
            formatter.write_text(doc.partition("\n\n")[0])
            formatter.write_paragraph()
        rows = list(declared(cls))
        if rows:
            formatter.write_dl([(f"-D {row.key}=…", _about(row)) for row in rows])
        else:
            formatter.write_text("It has none.")


def _about(row: SettingRow) -> str:
    doc = f"{row.doc[:1].upper()}{row.doc[1:].rstrip('.')}. " if row.doc else ""
    default = "required" if row.origin == "required" else f"default: {row.value}" if row.value else "has a default"
    return f"{doc}[{row.type}; {default}]"


def _write_operators(application: Application, spec: str, definitions: tuple[str, ...], formatter: click.HelpFormatter) -> None:
    """Write the operators with their first properties. Without all required settings, there is no DAG yet to take them from."""
    from dagflow.errors import DagflowError
    from dagflow.launching.build import build

    with formatter.section("Properties of its operators"):
        formatter.write_text(f"-D operator.NAME.PROPERTY=… sets one; `dagflow config {spec}` lists all, with their values.")
        try:
            operators = build(spec, environment=os.environ, definitions=definitions).expanded.operators
        except (DagflowError, SystemExit):
            return
        if not operators:
            return
        formatter.write_paragraph()
        formatter.write_dl([(f"operator.{name}", _properties(node.operator)) for name, node in operators.items()])


def _properties(operator: Operator, most: int = 4) -> str:
    """Return the class of an operator, and its first properties. Those that every operator has come last."""
    from dagflow.config.values.hints import settable
    from dagflow.model.operator.base import Operator

    names = sorted(settable(type(operator)), key=settable(Operator).__contains__)
    return f"{type(operator).__name__}: {', '.join([*names[:most], *(['…'] if len(names) > most else [])])}"
