"""A check that tasks see the run folder as the driver does: a mark lies there during a run, and every executor looks for it."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from dagflow.runtime.run_folder.layout import PROBE, stored
from dagflow.storage import open_store

if TYPE_CHECKING:
    import pyarrow as pa

_TOGETHER = 0.2  # seconds that a look takes at least, so that no executor takes two of them while another has none
_TOLD = re.compile(r"RunFolderNotSeen: ([^\n]+)")


class RunFolderNotSeen(RuntimeError):
    """Ends a task before it begins. Spark tries the task again, and tells why when it gives up."""


@attrs.frozen
class Mark:
    """A file in the run folder, of a name and content that no other run has."""

    run_folder: str
    name: str
    content: bytes

    @classmethod
    def leave(cls, run_folder: str) -> Mark:
        """Writes a mark. Those of launches that were killed go."""
        store = open_store(run_folder, durable=False)
        for name in list(stored(store, (PROBE,))):
            store.discard(name)
        mark = cls(run_folder, PROBE.name(token=uuid.uuid4().hex), uuid.uuid4().hex.encode())
        store.create(mark.name, mark.content)
        return mark

    def remove(self) -> None:
        """Takes the mark away."""
        with contextlib.suppress(Exception):  # the next launch does it
            open_store(self.run_folder, durable=False).discard(self.name)

    def look(self) -> str:
        """Return what this process finds in the place of the mark, and where the process runs; "" where it finds the mark."""
        try:
            found = open_store(self.run_folder).read(self.name)
        except Exception as error:  # noqa: BLE001  # a folder that may not be read, a store without credentials
            answer = str(error).partition("\n")[0] or type(error).__name__
        else:
            if found == self.content:
                return ""
            answer = "it is not there" if found is None else "another one is there"
        return f"{answer}, on {platform.node()}, in an executor that works in {os.getcwd()}"

    def check(self) -> None:
        """Raises RunFolderNotSeen. A process that has found the mark looks no more."""
        _check(self)


@functools.cache
def _check(mark: Mark) -> None:
    if answer := mark.look():
        raise RunFolderNotSeen(answer)


@attrs.frozen
class Probe:
    """Looks for the mark from a task, as the function of a `mapInArrow`."""

    mark: Mark

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: what the task has found."""
        from dagflow.spark.task import leave_quietly, row

        leave_quietly()
        for _ in batches:
            began = time.monotonic()
            answer = self.mark.look()
            time.sleep(max(0.0, _TOGETHER - (time.monotonic() - began)))
            yield row(answer.encode())


def unseen(text: str) -> str:
    """Return what a task has found in the place of the mark, when an exception's text says that; else "".

    >>> unseen("PythonException: Traceback … dagflow.spark.seen.RunFolderNotSeen: it is not there, on b, in an executor")
    'it is not there, on b, in an executor'
    """
    told = _TOLD.search(text)
    return told[1].strip() if told is not None else ""
