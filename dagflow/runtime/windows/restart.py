"""One loop after the other: where an input cannot be asked for a while, its operators begin anew from the last plan."""

from __future__ import annotations

from collections.abc import Callable

from dagflow.runtime.windows.loop import WindowLoop
from dagflow.storage import passes


def run_through(make: Callable[[WindowLoop | None], WindowLoop], loop: WindowLoop) -> None:
    """Runs a loop to its end; where that cannot go on, the one that `make` makes of it.

    What may pass and is no step of a window that can be done again by itself, as an input that cannot be listed, ends a loop:
    an operator that has raised is in no state to go on. Another loop takes over, with operators as the last plan left them, as a
    further launch would.

    Raises what ends the run: WindowHeldUp when a window could not be planned as often as it may be tried.
    """
    attempt, at = 0, -1
    while True:
        try:
            loop.run()
            return
        except Exception as error:
            if not passes(error):
                raise
            window = loop.first_window()
            attempt = attempt + 1 if window == at else 1
            at = window
            delay = loop.patience.allow(window, "planning it", attempt, error)
        loop.patience.pause(delay)
        loop = make(loop)
