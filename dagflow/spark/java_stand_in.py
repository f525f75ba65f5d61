"""A folder that looks like a Java, and runs the real one without the argument that it does not understand."""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dagflow.spark.errors import JavaNotRunnable

REAL_HOME = "DAGFLOW_STANDS_FOR"
"""The name in a stand-in's `release` file that tells the home of the real Java."""

_SCRIPT = """\
#!/bin/sh
# Runs Java without the module that Spark's launcher always asks for and that this Java does not have.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    --add-modules=jdk.incubator.vector) continue ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
        continue
      fi ;;
  esac
  set -- "$@" "$argument"
done
exec {program} "$@"
"""


def stand_in(home: Path, version: int, environ: Mapping[str, str]) -> Path:
    """Makes, or finds, the stand-in of the Java in `home`, and returns its folder (the JAVA_HOME to use).

    It lies in a private cache folder of the user; where that cannot be written or runs no programs, in the folder for
    temporary files. Any number of processes may ask at once.

    Raises:
        JavaNotRunnable: no place allows programs to be written and run.
    """
    home = home.absolute()
    files = {
        "bin/java": _SCRIPT.format(program=shlex.quote(str(home / "bin" / "java"))),
        "release": f'JAVA_VERSION="{version}"\n{REAL_HOME}="{home}"\n',
    }
    name = f"java-{version}-{hashlib.sha256(repr(files).encode()).hexdigest()[:16]}"
    tried: list[str] = []
    for place in _places(environ):
        try:
            folder = _make(place(), name, files)
        except OSError as error:
            tried.append(str(error))  # read-only, full, foreign: the next place may do
            continue
        if os.access(folder / "bin" / "java", os.X_OK):  # false on file systems that are mounted noexec
            return folder
        tried.append(f"{folder}: programs may not be run there")
    raise JavaNotRunnable(home=str(home), tried=tuple(tried))


def _places(environ: Mapping[str, str]) -> Iterator[Callable[[], Path]]:
    """Yield functions that make the folders in which a stand-in may be kept, the best one first."""
    cache, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if os.path.isabs(cache):
        yield lambda: _private(Path(cache) / "dagflow")
    elif os.path.isabs(home):
        yield lambda: _private(Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "dagflow")
    yield lambda: _private(Path(tempfile.gettempdir()) / f"dagflow-{os.getuid()}")
    yield _passing


def _private(folder: Path) -> Path:
    """Make the folder, and refuse one into which another user could put a program for us to run."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} is not a private folder of this user")
    return folder


def _passing() -> Path:
    """Make a folder that is removed when this process ends: for when another user has taken the name of the lasting one."""
    folder = Path(tempfile.mkdtemp(prefix="dagflow-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _make(parent: Path, name: str, files: Mapping[str, str]) -> Path:
    """The folder `parent/name` with these files, whole from the moment that it appears."""
    folder = parent / name
    if _holds(folder, files):
        return folder
    attempt = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        for path, text in files.items():
            target = attempt / path
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        (attempt / "bin" / "java").chmod(0o700)
        if folder.is_dir() and not _holds(folder, files):
            shutil.rmtree(folder, ignore_errors=True)  # half swept by a cleaner of temporary files
        attempt.rename(folder)
    except OSError:
        if not _holds(folder, files):  # else another process was first, with the same content
            raise
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return folder


def _holds(folder: Path, files: Mapping[str, str]) -> bool:
    try:
        same = all((folder / path).read_text(encoding="utf-8") == text for path, text in files.items())
    except (OSError, UnicodeDecodeError):
        return False
    return same and os.access(folder / "bin" / "java", os.R_OK)
