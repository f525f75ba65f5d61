"""Making the class archive, once for each Java and Spark: `python -m dagflow.spark.jvm.making`, or `dagflow warm`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from dagflow.spark.errors import ArchiveNotMade
from dagflow.spark.jvm.class_archive import (
    ARCHIVE,
    CHECKSUM,
    CLASS_LIST,
    FILES,
    LOADED_CLASS_PATH,
    ClassArchive,
    archive_for,
    checksum,
    others,
)
from dagflow.spark.jvm.java import Java, find_java
from dagflow.spark.jvm.java_stand_in import CLASS_PATH, CLASS_PATH_FILE
from dagflow.spark.jvm.options import QUICK, SILENT
from dagflow.storage.local.cache import cache_folder

UNUSED = 30 * 86400.0  # seconds after which the archive of another Java or Spark is removed
AGAIN = 86400.0  # seconds after which the background tries again what has failed
_SECONDS = 600.0
_TRAINING = "dagflow.spark.training"  # by name: it starts a session, and sessions know this package
_OTHERS = ("PYSPARK_", "SPARK_", "DAGFLOW_", "HADOOP_", "YARN_")  # variables that would change what the session loads
_SPACE = 400 << 20  # an archive, and room to spare


def make_archive(java: Java, environ: Mapping[str, str]) -> ClassArchive | None:
    """Make the archive, unless a whole one is there; None: another process is making it.

    Raises ArchiveNotMade.
    """
    archive = archive_for(java, environ)
    if archive is None:
        raise ArchiveNotMade("it needs a cache folder, and a Spark without a folder conf", "set HOME or XDG_CACHE_HOME")
    try:
        cache = cache_folder(environ)
        with open(cache / f".{archive.folder.name}.lock", "w") as lock:  # stays empty
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            if not archive.is_whole():
                _make(java, archive, environ)
    except OSError as error:
        raise ArchiveNotMade(str(error), "check the cache folder") from error
    return archive


def make_later(environ: Mapping[str, str]) -> None:
    """Start making the archive in a process of its own, of the lowest priority, if there is none. Never raises, says nothing."""
    with contextlib.suppress(Exception):
        java = find_java(environ)
        archive = archive_for(java, environ)
        if archive is None or archive.is_there or _has_failed(archive):
            return
        subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _make(java: Java, archive: ClassArchive, environ: Mapping[str, str]) -> None:
    cache = archive.folder.parent
    for left in cache.glob(f".{archive.folder.name}-*"):  # by a process that was killed: we have the lock
        shutil.rmtree(left, ignore_errors=True)
    if shutil.disk_usage(cache).free < _SPACE:
        raise ArchiveNotMade(f"there is no room for it in {cache}", "free 400 MB, or set XDG_CACHE_HOME")
    attempt = Path(tempfile.mkdtemp(prefix=f".{archive.folder.name}-", dir=cache))
    try:
        variables = {key: value for key, value in environ.items() if not key.startswith(_OTHERS)}
        variables |= {key: environ[key] for key in ("SPARK_HOME", "PYSPARK_PYTHON") if key in environ}
        _run([sys.executable, "-m", _TRAINING, str(attempt)], variables | {CLASS_PATH: str(attempt)})
        loaded = (attempt / LOADED_CLASS_PATH).read_text(encoding="utf-8").split(os.pathsep)
        path = os.pathsep.join(dict.fromkeys(entry for entry in loaded if os.path.exists(entry)))
        (attempt / CLASS_PATH_FILE).write_text(f'-cp "{_escaped(path)}"\n', encoding="utf-8")
        options = [*QUICK, *SILENT, "-Xmx1g", "-Xshare:dump", f"-XX:SharedClassListFile={attempt / CLASS_LIST}"]
        options += [f"-XX:SharedArchiveFile={attempt / ARCHIVE}", f"@{attempt / CLASS_PATH_FILE}"]
        _run([str(java.home / "bin" / "java"), *options], dict(environ))
        (attempt / CHECKSUM).write_text(checksum(attempt / ARCHIVE), encoding="ascii")
        for name in FILES:
            with open(attempt / name, "rb") as file:
                os.fsync(file.fileno())
        for name in (CLASS_LIST, LOADED_CLASS_PATH):
            (attempt / name).unlink()
        shutil.rmtree(archive.folder, ignore_errors=True)  # a broken one
        attempt.rename(archive.folder)
        _failure(archive).unlink(missing_ok=True)
    except BaseException:
        with contextlib.suppress(OSError):
            _failure(archive).touch()
        raise
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    for other in others(archive):
        if time.time() - other.stat().st_mtime > UNUSED:
            shutil.rmtree(other, ignore_errors=True)


def _run(command: list[str], environ: dict[str, str]) -> None:
    """Run a step to its end. Raises ArchiveNotMade."""
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        _, said = process.communicate(timeout=_SECONDS)
    except BaseException as error:
        process.kill()
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ArchiveNotMade(f"a step has taken {_SECONDS:g} s", "try again on a quieter machine") from error
        raise
    if process.returncode:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"exit code {process.returncode}"
        raise ArchiveNotMade(reason, "launches work without it")


def _escaped(path: str) -> str:
    """Return a path as Java reads it between double quotes in a file of arguments."""
    return path.replace("\\", "\\\\").replace('"', '\\"')


def _failure(archive: ClassArchive) -> Path:
    return archive.folder.with_name(f".{archive.folder.name}.failed")


def _has_failed(archive: ClassArchive) -> bool:
    """Return whether making it has failed within a day."""
    try:
        return time.time() - _failure(archive).stat().st_mtime < AGAIN
    except OSError:
        return False


if __name__ == "__main__":
    os.nice(19)
    with contextlib.suppress(Exception):  # there is no one to tell: `dagflow warm` says why
        make_archive(find_java(), os.environ)
