"""Files of an Iceberg table on a local disk that survive a power cut before the catalog names them.

The database of a catalog syncs its commits. Metadata that were not synced before would be gone, or without bytes, and the table
could not be opened any more. `pyiceberg` loads `DurableFileIO` by its name (`py-io-impl`): nothing else imports this module.
"""

from __future__ import annotations

import io
import os
from typing import Any

import pyiceberg.io.pyarrow as pyarrow_io

from dagflow.storage import file_system


class DurableFileIO(pyarrow_io.PyArrowFileIO):
    """Writes files as `pyiceberg` does; those on local disks are synced when they are closed."""

    def new_output(self, location: str) -> Any:
        """Return a file to write."""
        scheme, _, path = self.parse_location(location, self.properties)
        file = super().new_output(location)
        return _DurableFile(fs=file._filesystem, location=location, path=path) if scheme == "file" else file


class _DurableFile(pyarrow_io.PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        return io.BufferedWriter(_Synced(self._path, "wb" if overwrite else "xb"))


class _Synced(io.FileIO):
    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            folder = os.path.dirname(str(self.name))
            file_system(folder).sync_folder(folder)
        super().close()
