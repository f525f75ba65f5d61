"""The command `dagflow`: calls a command, and makes an exit code of however it ends."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence

COMPLETING = "_DAGFLOW_COMPLETE"
"""The variable by which a shell asks for completions, or for the script that asks: `bash_source`, `zsh_complete`, …"""
DONE, FAILED, WRONG, SURROUNDINGS, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit code: 0 done, 1 failed, 2 wrong use, 3 surroundings, 130 interrupted."""
    collects = gc.isenabled()
    gc.disable()  # a seventh of what `validate` takes is looking for garbage that a short life never makes; launch turns it on
    try:
        return _main(arguments)
    finally:
        if collects:
            gc.enable()


def process() -> int:
    """`main` as a process of its own: what has been made till its end is not looked through for garbage once more.

    That takes a tenth of what `validate` takes.
    """
    code = main()
    gc.freeze()
    return code


def _main(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # replaced by somebody, or closed
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal that cannot show → is no error
    import click

    from dagflow.cli.group import ErrorOutput, NobodyReads, commands

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
    except (BrokenPipeError, NobodyReads):
        return _nobody_reads()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # click ends the process when nobody reads its help
            return _nobody_reads()
        if COMPLETING in os.environ:  # so click ends when it has answered a shell, before any command
            sys.stdout.flush()
            return end.code if isinstance(end.code, int) else DONE
        print(f"error: the application called sys.exit({end.code!r})", file=sys.stderr)
        return FAILED
    except Exception as error:  # noqa: BLE001  # the last stop
        from dagflow.cli.ending import tell

        return tell(error, state)


def _nobody_reads() -> int:
    """Whoever read our output has gone: nothing more is written, also not when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
