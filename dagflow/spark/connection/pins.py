"""Settings of a session that hold as long as a runner needs them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from typing import Any


class PinnedSettings:
    """Sets settings of a session, each once, and sets them back. Windows that are in flight together may ask at the same time.

    Args:
        added_to: settings that are lists: what a session has there stays, and is joined by a comma.
    """

    def __init__(self, added_to: Collection[str] = ()) -> None:
        self._added_to = added_to
        self._before: list[tuple[Any, str, str | None]] = []
        self._lock = threading.Lock()

    def pin(self, spark: Any, wanted: Mapping[str, str]) -> None:
        """Return when all of these settings hold. Raises what Spark does for a session that has ended."""
        with self._lock:
            pinned = {key for _, key, _ in self._before}
            for key, value in wanted.items():
                if key not in pinned:
                    before = spark.conf.get(key, None)
                    self._before.append((spark, key, before))
                    spark.conf.set(key, f"{before},{value}" if before and key in self._added_to else value)

    def unpin(self) -> None:
        """Set all of them back to what they were."""
        with self._lock:
            pinned, self._before = self._before, []
        for spark, key, before in pinned:
            with contextlib.suppress(Exception):  # a session that has ended
                spark.conf.unset(key) if before is None else spark.conf.set(key, before)
