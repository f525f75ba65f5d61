"""The command `dagflow`: runs a command and returns its exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dagflow.cli.exit_codes import DONE, FAILED, INTERRUPTED, UNREAD, WRONG
from dagflow.interrupts import end_process

if TYPE_CHECKING:
    from dagflow.cli.group import ErrorOutput

COMPLETING = "_DAGFLOW_COMPLETE"
"""The variable by which a shell asks for completions, or for the script that asks: `bash_source`, `zsh_complete`, …"""


def main(arguments: Sequence[str] | None = None, *, is_process: bool = False) -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 wrong use, 3 environment, 130 interrupted.

    `is_process`: this process does nothing else.
    """
    collects = gc.isenabled()
    gc.disable()  # collecting takes a seventh of `validate`, which makes no garbage; launch turns it on
    try:
        return _main(arguments, is_process)
    finally:
        if collects:
            gc.enable()


def process() -> int:
    """Run `main` as a process of its own, without a last collection of garbage, which takes a tenth of `validate`."""
    hears = signal.getsignal(signal.SIGINT) in (end_process, signal.default_int_handler)  # else a shell wants it ignored
    if hears:
        signal.signal(signal.SIGINT, end_process)  # a KeyboardInterrupt in an import would show a traceback
        sys.unraisablehook = _send_again
    from dagflow.cli.streams import open_streams

    open_streams()
    code = main(is_process=True)
    if hears:
        signal.signal(signal.SIGINT, end_process)  # as Python ends, it would show one too
    gc.freeze()
    return code


def _send_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a Ctrl-C again that came where Python ignores exceptions: in callbacks of weak references, which imports have too."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGINT]).start()  # by then the callback is over
    else:
        sys.__unraisablehook__(unraisable)


def _main(arguments: Sequence[str] | None, is_process: bool) -> int:
    if COMPLETING in os.environ:
        from dagflow.cli.completion.answer import answer

        return answer(os.environ[COMPLETING], os.environ)
    from dagflow.cli.errors import OutputLost
    from dagflow.cli.group import ErrorOutput
    from dagflow.cli.streams import OutputClosed, discard_output

    state = ErrorOutput(is_process=is_process)
    try:
        code = _command(sys.argv[1:] if arguments is None else list(arguments), state)
        sys.stdout.flush()
        return code
    except OutputClosed:
        discard_output()
        return UNREAD
    except OutputLost as error:
        from dagflow.cli.report_error import report_error

        discard_output()
        return report_error(error, ErrorOutput(debug=state.debug))


def _command(arguments: list[str], state: ErrorOutput) -> int:
    """Run a command. Errors are reported, other than those of standard output."""
    import click

    from dagflow.cli.errors import OutputLost
    from dagflow.cli.group import commands
    from dagflow.cli.streams import OutputClosed

    if signal.getsignal(signal.SIGINT) is end_process:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with commands.make_context("dagflow", arguments, obj=state) as context:
            result = commands.invoke(context)
        return result if isinstance(result, int) else DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return WRONG
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (OutputClosed, OutputLost):
        raise
    except SystemExit as end:
        print(f"error: the application called sys.exit({end.code!r})", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001  # the last stop
        if _is_interrupt(error):
            return INTERRUPTED
        from dagflow.cli.report_error import report_error

        return report_error(error, state)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is a Ctrl-C: Python and libraries raise other errors from one in the middle of an import."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
