"""A mark in the run folder. A task that finds it sees the run folder as the driver does."""

from __future__ import annotations

import contextlib
import os
import uuid

import attrs

from dagflow.runtime.run_folder.layout import PROBE, stored
from dagflow.storage import local_path, open_store


@attrs.frozen
class Mark:
    """A file in the run folder, of a name and content that no other run has."""

    run_folder: str
    name: str
    content: str

    @classmethod
    def leave(cls, run_folder: str, *, sweep: bool = True) -> Mark:
        """Write a mark. `sweep`: those of launches that were killed go; only for the launch that holds the run folder."""
        store = open_store(run_folder, durable=False)
        for name in list(stored(store, (PROBE,))) if sweep else ():
            store.discard(name)
        mark = cls(run_folder, PROBE.name(token=uuid.uuid4().hex), uuid.uuid4().hex)
        store.create(mark.name, mark.content.encode())
        return mark

    def remove(self) -> None:
        """Remove the mark."""
        with contextlib.suppress(Exception):  # the next launch does it
            open_store(self.run_folder, durable=False).discard(self.name)

    def remove_with_folder(self) -> None:
        """Remove the mark, and the folders on its way that are empty then."""
        self.remove()
        local = local_path(self.run_folder)
        for folder in () if local is None else (os.path.join(local, PROBE.folder), local):
            with contextlib.suppress(OSError):  # it holds something else, or is gone
                os.rmdir(folder)

    def look(self) -> str:
        """Return what this process finds in the place of the mark; "" where it finds the mark."""
        try:
            found = open_store(self.run_folder).read(self.name)
        except Exception as error:  # noqa: BLE001  # a folder that may not be read, a store without credentials
            return str(error).partition("\n")[0] or type(error).__name__
        if found == self.content.encode():
            return ""
        return "it is not there" if found is None else "another one is there"
