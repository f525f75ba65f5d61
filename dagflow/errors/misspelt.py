"""The known name that is most like a misspelt one in the user's Python code, as `-D` has it for settings."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from dagflow.errors.wording import did_you_mean

_IMPORTED = re.compile(r"cannot import name '(\w+)'")
_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
_BY_PYTHON = re.compile(r"\. Did you mean:? '[^']*'\?")


def corrected(text: str, error: BaseException) -> str:
    """Return the text of an error with the name that was meant.

    Newer Pythons add some such names themselves. They know less of what is there, and Python 3.11 knows none: ours replace theirs.
    """
    if isinstance(error, AttributeError) and error.obj is None and error.name == "to":
        return f"{text}\n  help: a sink has no output, and port.to(…) returns None for an operator that has none or several"
    near = correction(error)
    if not near or "forget to import" in text:
        return text
    plain = _BY_PYTHON.sub("", text)
    return plain if "Did you mean" in plain else f"{plain}.{near}"


def correction(error: BaseException) -> str:
    """Return ` Did you mean 'x'?` for a name, an attribute, an import or an argument that is nearly another one; else nothing.

    >>> try:
    ...     from operators import Filtr
    ... except ImportError as error:
    ...     correction(error)
    " Did you mean 'Filter'?"
    """
    misspelt = _misspelt(error)
    return "" if misspelt is None else did_you_mean(misspelt[0], (name for name in misspelt[1] if not name.startswith("_")))


def _misspelt(error: BaseException) -> tuple[str, Iterable[str]] | None:
    """Return the name, and those that were there."""
    scopes = [frame.f_locals | frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)]
    scope: dict[str, Any] = scopes[-1] if scopes else {}
    if isinstance(error, NameError) and error.name:
        return error.name, [*vars(builtins), *scope]  # of two that differ in case, the later one
    if isinstance(error, AttributeError) and error.name:
        return error.name, dir(error.obj)
    if isinstance(error, ImportError) and (wrong := _IMPORTED.match(str(error))):
        module = sys.modules.get(error.name or "")
        return wrong[1], getattr(module, "__all__", None) or dir(module)
    if isinstance(error, TypeError) and (wrong := _KEYWORD.match(str(error))):
        called = next((each[wrong[1].split(".")[0]] for each in reversed(scopes) if wrong[1].split(".")[0] in each), None)
        if callable(called):
            try:
                return wrong[2], inspect.signature(called).parameters
            except (TypeError, ValueError):  # it has none that could be read
                return None
    return None
