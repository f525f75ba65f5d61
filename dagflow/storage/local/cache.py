"""The private cache folder of a user: stand-ins for Javas, class archives and packages lie there."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def places(environ: Mapping[str, str]) -> Iterator[Callable[[], Path]]:
    """Yield functions that make the folders in which programs may be kept, the best one first. They raise OSError."""
    if lasting(environ) is not None:
        yield lambda: cache_folder(environ)
    yield lambda: _private(Path(tempfile.gettempdir()) / f"dagflow-{os.getuid()}")
    yield _passing


def lasting(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the cache folder: `$XDG_CACHE_HOME/dagflow`, else the one of the system. Makes nothing.

    >>> lasting({"XDG_CACHE_HOME": "/var/cache", "HOME": "/here"})
    PosixPath('/var/cache/dagflow')
    """
    cache, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if os.path.isabs(cache):
        return Path(cache) / "dagflow"
    if os.path.isabs(home):
        return Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "dagflow"
    return None


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder, and make it if it is missing. Raises OSError: it cannot be made, or belongs to others."""
    folder = lasting(environ)
    if folder is None:
        raise FileNotFoundError("neither XDG_CACHE_HOME nor HOME names a folder")
    return _private(folder)


def _private(folder: Path) -> Path:
    """Make the folder, and refuse one into which another user could put a program for us to run."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} is not a private folder of this user")
    return folder


def _passing() -> Path:
    """Make a folder that is removed when this process ends: for when another user has taken the name of the lasting one."""
    folder = Path(tempfile.mkdtemp(prefix="dagflow-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
