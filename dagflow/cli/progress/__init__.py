"""Progress on standard error: subscribers of the run's events.

Read `base` (the interface, and lines of JSON), `plain` (lines of text) and `live` (a display on a terminal). Both show a
`RunView`. `table` has the lines that live progress makes of its operators: it is free of terminals. `words` has the sentences
that plain and live progress share, and `choice` finds the progress that `--progress` names.
"""

from dagflow.cli.progress.base import JsonProgress, Progress, writer
from dagflow.cli.progress.choice import make_progress
from dagflow.cli.progress.live import LiveProgress
from dagflow.cli.progress.plain import PlainProgress

__all__ = ["JsonProgress", "LiveProgress", "PlainProgress", "Progress", "make_progress", "writer"]
