"""A copy on Azure, which may answer before it has copied. Paths are `CONTAINER/BLOB`."""

from __future__ import annotations

import errno
import time
from typing import Any

SCHEMES = ("abfs", "abfss", "az")
_BETWEEN_LOOKS = 0.2  # seconds


def copy(driver: Any, path: str, new: str) -> None:
    """Copy a blob, and return when all of it is there. Raises OSError if Azure has ended the copy; then `new` is not there."""
    from fsspec.asyn import sync

    driver.cp_file(path, new)
    while (status := sync(driver.loop, _status, driver, new)) == "pending":
        time.sleep(_BETWEEN_LOOKS)
    if status in ("aborted", "failed"):
        driver.rm_file(new)  # it is empty
        raise OSError(errno.EBUSY, f"Azure has ended the copy: {status}", new)


async def _status(driver: Any, path: str) -> str | None:
    container, _, blob = path.partition("/")
    async with driver.service_client.get_blob_client(container, blob) as client:
        properties = await client.get_blob_properties()
    status: str | None = properties.copy.status
    return status
