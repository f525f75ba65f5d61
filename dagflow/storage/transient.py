"""Transient failures of storage, where trying again helps."""

from __future__ import annotations

import errno
from typing import Any

from dagflow.errors import DagflowError

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
        121,  # EREMOTEIO, which macOS does not have: s3fs raises it for an internal error of the server
    }
)
# Classes of botocore and aiohttp, by name: their libraries are loaded by drivers only. None of them is an OSError.
_CONNECTION = frozenset(
    {"HTTPClientError", "ResponseParserError", "IncompleteReadError", "ClientConnectionError", "ClientPayloadError"}
)
_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})  # of HTTP; 409: another writer is at work


def is_transient(error: BaseException) -> bool:
    """Return whether a failure is transient: busy, a timeout, a lost connection, a stale handle, an unknown outcome.

    It is recognised by the error number of the operating system or the HTTP status of an object store; errors of dagflow have
    `is_transient`. A full disk or a missing permission is not transient.

    >>> [is_transient(e) for e in (OSError(errno.EBUSY, "busy"), TimeoutError(), OSError(errno.ENOSPC, "full"), ValueError())]
    [True, True, False, False]
    """
    if isinstance(error, DagflowError):
        return error.is_transient
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    if isinstance(error, TimeoutError | ConnectionError) or any(cls.__name__ in _CONNECTION for cls in type(error).__mro__):
        return True
    return _status(error) in _STATUSES


def _status(error: Any) -> int | None:
    """Return the HTTP status that an exception of a driver carries, in whichever attribute."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:  # aiohttp, azure, gcsfs, requests
        names = ("status", "status_code", "code")
        values = (getattr(each, name, None) for each in (error, response) for name in names)
        status = next((value for value in values if isinstance(value, int | str)), None)
    return int(status) if isinstance(status, int) or (isinstance(status, str) and status.isdigit()) else None
