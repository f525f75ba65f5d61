"""The log of a Delta table as files: entries that a power cut or something else has left without bytes.

`deltalake` reads an entry without bytes as a version without actions: its rows are missing, and nothing says so.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re

from dagflow.storage import at_once, file_system, join, local_path, open_store
from operators.extras.errors import TableLogDamaged

LOG = "_delta_log"
HINT = "_last_checkpoint"
"""The file that names the newest checkpoint, so that readers need not look for it."""

MAX_ENTRIES = 1_000
"""The most entries that are looked at, where there is no checkpoint."""
_VERSION = re.compile(r"\d{20}\.json")
_LOGGER = logging.getLogger("dagflow.delta")


def check_log(operator: str, path: str, newest: int) -> None:
    """Raise TableLogDamaged if an entry of a log since its last checkpoint has no bytes. `newest`: the newest version."""
    first = max((_hinted(path) or -1) + 1, newest + 1 - MAX_ENTRIES, 0)
    files = [join(path, LOG, f"{version:020d}.json") for version in range(first, newest + 1)]
    for file, is_empty in zip(files, at_once(_is_empty, files, path), strict=True):
        if is_empty:
            raise TableLogDamaged(operator=operator, table=path, file=file)


def mend_log(path: str, kept: int) -> None:
    """Remove what a power cut has left of the newest commit or checkpoint of a table: files without bytes. Local disks only.

    `kept`: the version that a writer has last left for certain, -1 if it does not know any. A newest version behind it is made
    again. The hint to a checkpoint is removed with that: the log has all versions.
    """
    if local_path(path) is None:
        return
    log, version = join(path, LOG), _hinted(path)
    left: list[str] = []
    if version is not None and _is_empty(checkpoint := join(log, f"{version:020d}.checkpoint.parquet")):
        left += [checkpoint, join(log, HINT)]
    newest = max(filter(_VERSION.fullmatch, open_store(log, durable=False).names()), default=None)
    if newest is not None and int(newest.partition(".")[0]) > kept and _is_empty(join(log, newest)):
        left.append(join(log, newest))
    for file in left:
        _LOGGER.warning("%s is removed: a power cut has left it, or what it names, without bytes", file)
        file_system(file).remove(file)


def _is_empty(file: str) -> bool:
    """Return whether a file has no bytes; on local disks, where a power cut may leave zeros, or only such."""
    try:
        if local_path(file) is None:
            return not file_system(file).status(file).length
        with file_system(file).open(file) as stream:
            return stream.read(1) in (b"", b"\0")
    except FileNotFoundError:
        return False  # tables forget old versions


def _hinted(path: str) -> int | None:
    """Return the version of the newest checkpoint, as the hint says."""
    hint = join(path, LOG, HINT)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), file_system(hint).open(hint) as stream:
        return int(json.loads(stream.read())["version"])
    return None
