"""Catalogs that are busy, or do not answer: trying again helps.

Their packages are loaded only where a catalog needs them, so errors are recognised by the names of their classes.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dagflow.errors import DagflowError
from dagflow.storage import is_transient
from operators.extras.errors import TableUnreachable
from operators.extras.stores import is_store_busy

T = TypeVar("T")

PAUSES: tuple[float, ...] = (0.1, 0.4, 1.0)  # seconds
"""The pauses before a read of a busy catalog is tried again at once: before a launch, there is no other retry."""
REQUEST_TIMEOUT = (10.0, 120.0)  # seconds
"""The longest times until a REST catalog is connected, and until it answers. `pyiceberg` itself waits for ever."""

_BUSY = frozenset({"ServiceUnavailableError", "TooManyRequestsError", "WaitingForLockException"})
_UNAVAILABLE = _BUSY | {"ServerError", "CommitStateUnknownException", "CommitFailedException"}
"""Errors of `pyiceberg`. A conflict is among them: the sink has followed other writers before, where it can."""
_OF_REQUESTS = frozenset({"ConnectionError", "Timeout", "ChunkedEncodingError"})
_THROTTLED = frozenset({"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"})
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_SQL_STATES = frozenset({"08", "40", "53", "55", "57"})  # connections, conflicts, resources, locks, shutdowns


def is_busy(error: BaseException) -> bool:
    """Return True if a catalog answers that it has too much to do."""
    names = _names(error)
    if "pyiceberg.exceptions" in names:
        return bool(names["pyiceberg.exceptions"] & _BUSY)
    if "sqlalchemy.exc" in names:
        return "OperationalError" in names["sqlalchemy.exc"] and _is_locked(getattr(error, "orig", None))
    response = getattr(error, "response", None)  # of botocore
    return isinstance(response, dict) and response.get("Error", {}).get("Code") in _THROTTLED


def is_unavailable(error: BaseException) -> bool:
    """Return True if a catalog, or the store of its tables, is busy, does not answer, or failed in a way that may not last.

    >>> is_unavailable(TimeoutError()), is_unavailable(ValueError())
    (True, False)
    """
    names = _names(error)
    if "pyiceberg.exceptions" in names:
        return bool(names["pyiceberg.exceptions"] & _UNAVAILABLE)
    if "requests.exceptions" in names:
        return bool(names["requests.exceptions"] & _OF_REQUESTS) and "SSLError" not in names["requests.exceptions"]
    if "sqlalchemy.exc" in names:
        return is_busy(error) or "TimeoutError" in names["sqlalchemy.exc"] or _is_lost(error)
    return is_busy(error) or is_transient(error) or is_store_busy(error)


def _is_locked(error: Any) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED
    return _state(error)[:2] in _SQL_STATES - {"08"}


def _is_lost(error: Any) -> bool:
    """Return True for an error of a database's server, or of the connection to it."""
    if getattr(error, "connection_invalidated", False):
        return True
    cause = getattr(error, "orig", None)
    if isinstance(cause, sqlite3.Error) or type(error).__name__ != "OperationalError":
        return False
    return not _state(cause) or _state(cause)[:2] in _SQL_STATES


def _state(error: Any) -> str:
    return str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")


def _names(error: BaseException) -> dict[str, set[str]]:
    """Return the classes of an error, by their modules."""
    names: dict[str, set[str]] = {}
    for each in type(error).__mro__:
        names.setdefault(each.__module__, set()).add(each.__name__)
    return names


@contextlib.contextmanager
def answering(operator: str, table: str, doing: str = "opened") -> Iterator[None]:
    """Raise TableUnreachable, which is transient, for the errors of a catalog that is not available."""
    try:
        yield
    except DagflowError:
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" or not is_unavailable(error):
            raise  # our own, or of a file system: they say themselves whether they are transient
        raise TableUnreachable.of(error, operator=operator, table=table, doing=doing) from error


def read(call: Callable[[], T]) -> T:
    """Return the result of a call that only reads a catalog. While that is busy, it is tried again a few times."""
    for pause in PAUSES:
        try:
            return call()
        except Exception as error:
            if not is_busy(error):
                raise
        time.sleep(pause)
    return call()


def limit_waits(catalog: Any) -> None:
    """Let no request to a REST catalog wait for ever; other catalogs have limits of their own."""
    session: Any = getattr(catalog, "_session", None)
    if type(session).__module__.partition(".")[0] == "requests":
        session.request = functools.partial(session.request, timeout=REQUEST_TIMEOUT)
