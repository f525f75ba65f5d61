"""Ctrl-C while the command `dagflow` imports its modules: it ends at once, without a traceback.

`dagflow/__init__.py` calls `end_if_command` before it imports anything else, so this module imports only what Python has loaded
when it starts. `dagflow.cli.main` decides later what Ctrl-C does.

The first milliseconds cannot be covered: Python lets Ctrl-C raise KeyboardInterrupt before it imports `site`, and shows its own
traceback then. Four fifths of that time pass in `site`, before any line of a console script; the rest, 1 ms, in finding this
package.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: the time that this takes must be covered
import os
import sys

EXIT_CODE = 130  # 128 + SIGINT, as of shells


def end_if_command() -> None:
    """Let Ctrl-C end this process if it is the command `dagflow`, unless a shell wants it ignored."""
    if _is_command() and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, end_process)


def end_process(*signal: object) -> None:
    """End the process. A KeyboardInterrupt in the middle of an import would show a traceback, or be swallowed."""
    os._exit(EXIT_CODE)


def _is_command() -> bool:
    """Return True for the script `dagflow` and for `python -m dagflow`; False where a program imports the package."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    if program == "-m":  # until Python has found the file of the module
        options = sys.orig_argv[1:]
        return "-mdagflow" in options or ("-m" in options and options[options.index("-m") + 1 :][:1] == ["dagflow"])
    return os.path.basename(program) == "dagflow"
