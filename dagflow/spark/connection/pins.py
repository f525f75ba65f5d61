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
    count: int = 0


@attrs.define
class _Session:
    """The pinned settings of a session by key, and the lock under which they change."""

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    pinned: dict[str, _Pinned] = attrs.field(factory=dict)


_SESSIONS: WeakKeyDictionary[Any, _Session] = WeakKeyDictionary()
_LOCK = threading.Lock()


class PinnedSettings:
    """Pins settings of a session for one runner. What no runner needs any more is set back to what it was before.

    Windows in flight may pin at the same time, and so may runners that share a session. If two want different values, the later
    one holds.

    Args:
        added_to: settings that are lists: what a session has there stays, and is joined by a comma.
    """

    def __init__(self, added_to: Collection[str] = ()) -> None:
        self._added_to = added_to
        self._own: list[tuple[Any, str]] = []

    def pin(self, spark: Any, wanted: Mapping[str, str]) -> None:
        """Return when all of these settings hold. Raises what Spark does for a session that has ended."""
        session = _session_of(spark)
        with session.lock:
            for key, value in wanted.items():
                if (spark, key) in self._own:
                    continue
                pinned = session.pinned.get(key) or _Pinned(spark.conf.get(key, None))
                before = pinned.before
                spark.conf.set(key, f"{before},{value}" if before and key in self._added_to else value)
                pinned.count += 1
                session.pinned[key] = pinned
                self._own.append((spark, key))

    def unpin(self) -> None:
        """Give up all of them."""
        while self._own:
            spark, key = self._own.pop()
            session = _session_of(spark)
            with session.lock:
                pinned = session.pinned[key]
                pinned.count -= 1
                if pinned.count:
                    continue
                del session.pinned[key]
                with contextlib.suppress(Exception):  # a session that has ended
                    spark.conf.unset(key) if pinned.before is None else spark.conf.set(key, pinned.before)


def _session_of(spark: Any) -> _Session:
    with _LOCK:
        return _SESSIONS.setdefault(spark, _Session())
