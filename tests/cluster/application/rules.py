"""A module beside the application."""

from __future__ import annotations

from typing import Any

import attrs
from helpers import kills, waits


@attrs.define
class Keep:
    """A predicate with an inner life."""

    prefix: str
    kill: str
    victim: str
    hold: str
    slow: str

    def __call__(self, line: Any) -> bool:
        if self.kill and line.record.endswith("kill"):
            kills.once(self.kill, self.victim)
        if self.hold and line.record.endswith("hold"):
            waits.while_exists(self.hold)
        if self.slow and line.record.endswith("slow"):
            waits.first_is_slow(self.slow)
        return not line.record.startswith(self.prefix)
