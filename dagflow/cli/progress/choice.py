"""The progress that `--progress` names."""

from __future__ import annotations

import os
from typing import TextIO

from dagflow.cli.progress.base import JsonProgress, Progress
from dagflow.cli.progress.live import LiveProgress
from dagflow.cli.progress.plain import PlainProgress


def make_progress(kind: str, stream: TextIO) -> Progress:
    """The progress that `--progress` names; `auto` is live on a terminal that can move its cursor, else plain."""
    if kind == "auto":
        can_move = stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        kind = "live" if can_move else "plain"
    if kind == "live":
        return LiveProgress(stream)
    return {"plain": PlainProgress, "json": JsonProgress}[kind](stream) if kind != "none" else Progress()
