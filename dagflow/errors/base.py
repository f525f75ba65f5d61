"""The root of the tree of exceptions, and its four main branches."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast, overload

import attrs
from typing_extensions import dataclass_transform

from dagflow.errors.shown import without_secrets
from dagflow.errors.templates import filled

ErrorType = TypeVar("ErrorType", bound=type)


@overload
@dataclass_transform(field_specifiers=(attrs.field, attrs.Factory))
def error(code: ErrorType) -> ErrorType: ...
@overload
@dataclass_transform(field_specifiers=(attrs.field, attrs.Factory))
def error(
    code: str = ..., *, kw_only: bool = ..., is_fatal: bool = ..., is_transient: bool = ..., exit_code: int = ...
) -> Callable[[ErrorType], ErrorType]: ...
def error(code: type | str = "", *, kw_only: bool = False, **constants: Any) -> Any:
    """Make an attrs class of an exception, with a code and other constants: `@error("DF306", is_fatal=True)`."""
    define = attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=kw_only)
    if isinstance(code, type):
        return define(code)
    if code:
        constants["code"] = code

    def with_constants(cls: type) -> type:
        for name, value in constants.items():
            setattr(cls, name, value)
        return define(cls)

    return with_constants


def _without_secrets(message: Callable[[Any], str]) -> Callable[[Any], str]:
    @functools.wraps(message)
    def masked(self: Any) -> str:
        return without_secrets(message(self))

    return masked


@error
class DagflowError(Exception):
    """Everything that dagflow raises on purpose.

    Subclasses are attrs classes: one class per cause, with structured fields. The first sentences of its docstring state the
    cause, `template` holds the wording. `dagflow explain` and docs/reference/errors.md are made from these.

    Attributes:
        template: the message, with fields in it (see `dagflow.errors.templates`). A class whose message must be computed defines
            `message()` instead.
        code: names the cause. Its first digit is that of the branch (see `dagflow.errors`).
        exit_code: how a command ends.
        is_fatal: not a fault of one record, so `on_error` does not skip it.
        is_transient: trying again helps, so the retry policy applies.
        example: fields of an error as users meet it.
        general_remedy: what to do, where the message itself has no `help:` line.
    """

    template: ClassVar[str] = ""
    code: ClassVar[str] = "DF000"
    exit_code: ClassVar[int] = 1
    is_fatal: ClassVar[bool] = False
    is_transient: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {}
    general_remedy: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Mask secrets in the messages of all classes, wherever they are shown or stored."""
        super().__init_subclass__(**options)
        if "message" in vars(cls):
            cls.message = _without_secrets(vars(cls)["message"])  # type: ignore[assignment, method-assign]

    def message(self) -> str:
        """Return the text that a user reads: what is wrong, where, and what to do."""
        return without_secrets(filled(self.template or type(self).__name__, self))

    def __str__(self) -> str:
        return self.message()

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback: the message, as in a terminal."""
        lines: list[str] = importlib.import_module("dagflow.render.notebook").traceback_lines(self)
        return lines

    @classmethod
    def remedy_at(cls, operator: str | None) -> str:
        """Return the general remedy in one line, with the name of the operator where the error was."""
        text = " ".join(cls.general_remedy.split())
        return text if operator is None else text.replace("operator.NAME", f"operator.{operator}")

    @property
    def notes(self) -> list[str]:
        """The places where it happened, as callers have noted them: `error.add_note(…)`."""
        return [without_secrets(note) for note in getattr(self, "__notes__", ())]

    @property
    def where_in_run(self) -> dict[str, Any]:
        """The place in a run, as far as it is known: `operator`, `window`, `path`, `position`."""
        own = {name: getattr(self, name, None) for name in ("operator", "window", "path", "position")}
        return {**self.__dict__.get("_where_in_run", {}), **{name: value for name, value in own.items() if value is not None}}

    def happened(self, **place: Any) -> None:
        """Note `operator`, `window`, `path` or `position` beside the fields. What is known already stays."""
        known = self.__dict__.get("_where_in_run", {})
        self.__dict__["_where_in_run"] = {**{name: value for name, value in place.items() if value is not None}, **known}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message()!r})"

    def __reduce__(self) -> Any:
        fields = {a.name: getattr(self, a.name) for a in attrs.fields(cast("Any", type(self)))}
        return _rebuild, (type(self), fields, self.notes, self.__dict__.get("_where_in_run", {}))


def _rebuild(cls: type[DagflowError], fields: dict[str, Any], notes: list[str], place: dict[str, Any]) -> DagflowError:
    made = cls(**{name.lstrip("_"): value for name, value in fields.items()})
    for note in notes:
        made.add_note(note)
    made.happened(**place)
    return made


@error("DF010", exit_code=2)
class DagError(DagflowError, ValueError):
    """The application's DAG is wrong; nothing has run."""


@error("DF200", exit_code=2)
class ConfigError(DagflowError, ValueError):
    """A setting or the command line is wrong; nothing has run."""


@error("DF300")
class RunError(DagflowError, RuntimeError):
    """A run failed."""


@error("DF400", exit_code=3, is_fatal=True)
class InfrastructureError(DagflowError, RuntimeError):
    """The environment lacks what dagflow needs: Java, a cluster, permissions, disk."""
