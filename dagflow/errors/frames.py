"""The frames of the user's own code in a traceback."""

from __future__ import annotations

import os
import traceback

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def raised(error: BaseException) -> tuple[str, str]:
    """Return the text of what the user's code raised, and its frames, the innermost first."""
    import sysconfig  # only where something has failed

    libraries = tuple(sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib"))
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and not is_ours(f.filename)]
    own = [f for f in own if not f.filename.startswith(libraries)] or own
    lines = [f"  at {f.filename}:{f.lineno} in {f.name}{f': {f.line}' if f.line else ''}" for f in reversed(own[-6:])]
    return "".join(traceback.format_exception_only(error)).strip(), "\n".join(lines)


def is_ours(path: str) -> bool:
    """Return True for a source file of dagflow or its operators, and for code that attrs generated."""
    if path.startswith("<attrs generated"):
        return True
    library = os.path.join(os.path.dirname(_PACKAGE), "operators")
    return os.path.abspath(path).startswith((_PACKAGE + os.sep, library + os.sep))
