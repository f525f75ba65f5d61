"""Which failures of storage may pass by themselves, so that trying again helps."""

from __future__ import annotations

import errno
from typing import Any

from dagflow.errors import DagflowError
from dagflow.storage.errors import OutcomeUnknown, StorageBusy

_NUMBERS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ETXTBSY,
        errno.ENOLCK,
        errno.ESTALE,  # a network file system's server was restarted
        errno.ETIMEDOUT,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.EPIPE,
    }
)
_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # of HTTP; 409: somebody else is at it


def passes(error: BaseException) -> bool:
    """Whether a failure of storage may pass: busy, no answer in time, a lost connection, a stale handle, an unknown outcome.

    What the operating system says by a number, and object stores by a status of HTTP. A full disk or a missing permission does
    not pass: somebody must do something first.

    >>> [passes(e) for e in (OSError(errno.EBUSY, "busy"), TimeoutError(), OSError(errno.ENOSPC, "full"), ValueError())]
    [True, True, False, False]
    """
    if isinstance(error, DagflowError):
        return isinstance(error, StorageBusy | OutcomeUnknown)
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return _status(error) in _STATUSES


def _status(error: Any) -> int | None:
    """The status of HTTP that an exception of a driver carries, wherever its maker has put it."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:  # aiohttp, azure, gcsfs, requests
        names = ("status", "status_code", "code")
        found = next((v for each in (error, response) for n in names if isinstance(v := getattr(each, n, None), int | str)), None)
    return int(found) if isinstance(found, int) or (isinstance(found, str) and found.isdigit()) else None
