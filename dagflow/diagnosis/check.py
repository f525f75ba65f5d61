"""The result of a check."""

from __future__ import annotations

from typing import Literal

import attrs

Status = Literal["ok", "warning", "problem"]


@attrs.frozen
class Check:
    """The result of a check: `text` says what was found, `remedy` is a command to paste, or empty."""

    name: str
    status: Status
    text: str
    remedy: str = ""
