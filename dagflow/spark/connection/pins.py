"""Settings of a session that hold as long as a runner needs them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import attrs


@attrs.define
class _Pinned:
    """A setting that runners need: what it was before, and how many need it."""

    before: str | None
    count: int = 1


_LOCK = threading.Lock()
_PINNED: WeakKeyDictionary[Any, dict[str, _Pinned]] = WeakKeyDictionary()
"""The settings by session: launches in several threads may share one."""


class PinnedSettings:
    """Sets settings of a session for one runner. Those that no runner needs any more are set back to what they were before.

    Windows that are in flight together may ask at the same time, and so may runners that share a session.

    Args:
        added_to: settings that are lists: what a session has there stays, and is joined by a comma.
    """

    def __init__(self, added_to: Collection[str] = ()) -> None:
        self._added_to = added_to
        self._own: list[tuple[Any, str]] = []

    def pin(self, spark: Any, wanted: Mapping[str, str]) -> None:
        """Return when all of these settings hold. Raises what Spark does for a session that has ended."""
        with _LOCK:
            pinned = _PINNED.setdefault(spark, {})
            for key, value in wanted.items():
                if (spark, key) in self._own:
                    continue
                if key in pinned:
                    pinned[key].count += 1
                else:
                    pinned[key] = _Pinned(spark.conf.get(key, None))
                self._own.append((spark, key))
                before = pinned[key].before
                spark.conf.set(key, f"{before},{value}" if before and key in self._added_to else value)

    def unpin(self) -> None:
        """Give up all of them."""
        with _LOCK:
            own, self._own = self._own, []
            for spark, key in own:
                pinned = _PINNED[spark]
                pinned[key].count -= 1
                if pinned[key].count:
                    continue
                before = pinned.pop(key).before
                with contextlib.suppress(Exception):  # a session that has ended
                    spark.conf.unset(key) if before is None else spark.conf.set(key, before)
