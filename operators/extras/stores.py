"""Object stores of tables that are busy, as the packages of tables report it: trying again helps.

Their libraries raise errors that hold nothing but a text: the Rust crate `object_store` of `deltalake`, and the AWS SDK for C++,
which Arrow reads and writes the files of Iceberg tables with.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from dagflow.errors import DagflowError, StorageBusy
from dagflow.storage import is_transient

_ANSI = re.compile(r"\x1b\[[0-9;]*m")  # libraries in Rust colour their errors
_BUSY = re.compile(
    r"status(?: code)?\W+(?:408|409|425|429|500|502|503|504)\b"
    r"|HTTP error\W+(?:error sending request|error decoding response|request or response body error|operation timed out)"
    r"|AWS Error (?:SLOW_DOWN|THROTTLING|NETWORK_CONNECTION|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT)\b"
    # `deltalake` for 409 ConditionalRequestConflict: sinks look for a commit that came first, and raise this if there is none
    r"|^(?:Invalid table version|Failed to commit transaction): \d+\W*$"
)
_REASON = 500  # characters


def is_store_busy(error: BaseException) -> bool:
    """Return whether an error of a package of tables says that the object store is busy, or that a connection was lost.

    >>> is_store_busy(OSError("When reading: AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate."))
    True
    >>> is_store_busy(OSError("When reading: AWS Error ACCESS_DENIED during GetObject operation: Access Denied."))
    False
    """
    module = type(error).__module__.partition(".")[0]
    may_be = isinstance(error, OSError) or module in ("_internal", "deltalake")  # those of `deltalake` name no package
    return may_be and _BUSY.search(_ANSI.sub("", str(error))) is not None


@contextlib.contextmanager
def patiently(table: str, doing: str, *, in_task: bool = False) -> Iterator[None]:
    """Raise StorageBusy where the object store of a table is busy, so that the retry policy applies.

    `doing`: the operation, for messages, as in "publishing a window". `in_task`: where all errors but those of dagflow count as
    errors of the operator. On the driver, those that the retry policy knows pass as they are. So do all that are not transient.
    """
    try:
        yield
    except DagflowError:
        raise
    except Exception as error:
        if not is_store_busy(error) and not (in_task and is_transient(error)):
            raise
        raise StorageBusy(path=table, doing=doing, reason=_in_one_line(error)) from error


def _in_one_line(error: BaseException) -> str:
    """Return the class and the text of an error. Libraries in Rust write a tree of several lines."""
    return f"{type(error).__name__}: {' '.join(_ANSI.sub('', str(error)).replace('↳', ' ').split())}"[:_REASON]
