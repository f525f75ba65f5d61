"""The command `dagflow`: runs a command and returns its exit code."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence

from dagflow.cli.exit_codes import DONE, FAILED, INTERRUPTED, WRONG

COMPLETING = "_DAGFLOW_COMPLETE"
"""The variable by which a shell asks for completions, or for the script that asks: `bash_source`, `zsh_complete`, …"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 wrong use, 3 environment, 130 interrupted."""
    collects = gc.isenabled()
    gc.disable()  # collecting takes a seventh of `validate`, which makes no garbage; launch turns it on
    try:
        return _main(arguments)
    finally:
        if collects:
            gc.enable()


def process() -> int:
    """Run `main` as a process of its own, without a last collection of garbage, which takes a tenth of `validate`."""
    code = main()
    gc.freeze()
    return code


def _main(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # replaced by a test or an application, or closed
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal that cannot show → must not fail
    import click

    from dagflow.cli.group import ErrorOutput, OutputClosed, commands

    state = ErrorOutput()
    try:
        result = commands.main(list(arguments) if arguments is not None else None, "dagflow", standalone_mode=False, obj=state)
        sys.stdout.flush()
        return result if isinstance(result, int) else DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return WRONG
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, OutputClosed):
        return _output_closed()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # click ends the process when its help is written to a closed pipe
            return _output_closed()
        if COMPLETING in os.environ:  # click ends this way after answering a shell, before any command
            sys.stdout.flush()
            return end.code if isinstance(end.code, int) else DONE
        print(f"error: the application called sys.exit({end.code!r})", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001  # the last stop
        from dagflow.cli.report_error import report_error

        return report_error(error, state)


def _output_closed() -> int:
    """Write nothing more, also when Python ends: the reader of the output is gone."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
