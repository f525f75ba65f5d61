"""The archive of Spark's classes in the user's cache folder: Java maps it instead of reading and verifying 16,000 classes.

Its folder is named by a hash of all that it depends on, so that one of another Java or another Spark is never looked at. It
appears whole, by a rename. A checksum is compared before Java sees it, since Java checks only the header.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
from blake3 import blake3

from dagflow.spark.jvm.java import Java, read_release
from dagflow.spark.jvm.java_stand_in import CLASS_PATH_FILE, LAUNCHER_CLASS_PATH, REAL_HOME
from dagflow.storage.local.cache import lasting

FORMAT = 2
PREFIX = "classes-"
ARCHIVE, CHECKSUM = "archive.jsa", "checksum"
CLASS_LIST, LOADED_CLASS_PATH = "classes", "loaded_class_path"
"""The files that a training session writes, and from which the archive is made."""

FILES = (ARCHIVE, CHECKSUM, CLASS_PATH_FILE, LAUNCHER_CLASS_PATH)


@attrs.frozen
class ClassArchive:
    """The place of an archive; `is_whole` says whether one is there."""

    folder: Path

    @property
    def option(self) -> str:
        """The option for Java, quoted as Spark's launcher reads it."""
        return f'"-XX:SharedArchiveFile={self.folder / ARCHIVE}"'

    @property
    def is_there(self) -> bool:
        """Return whether there is an archive, whole or not; reads nothing."""
        return (self.folder / CHECKSUM).is_file()

    def is_whole(self) -> bool:
        """Return whether all files are there and the archive has its checksum: 0.1 s for 170 MB."""
        try:
            if not all((self.folder / name).is_file() for name in FILES):
                return False
            return (self.folder / CHECKSUM).read_text(encoding="ascii") == checksum(self.folder / ARCHIVE)
        except (OSError, ValueError):
            return False


def archive_for(java: Java, environ: Mapping[str, str]) -> ClassArchive | None:
    """Return the place of the archive for a Java and the installed Spark; None where there can be none.

    There is none without a cache folder, where files of configuration are on Spark's class path (Java archives classes of jars
    only), and where the path has characters that would have to be escaped on Java's command line.
    """
    folder, spark = lasting(environ), spark_home(environ)
    if folder is None or spark is None or any(character in str(folder) for character in "\"'\\\n"):
        return None
    if (spark / "conf").is_dir():
        return None
    try:
        parts = [str(FORMAT), *_java(java), str(spark), *_jars(spark / "jars")]
    except OSError:
        return None
    return ClassArchive(folder / f"{PREFIX}{java.version}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}")


def spark_home(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of Spark, as pyspark finds it. Imports nothing."""
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def checksum(file: Path) -> str:
    """Return the BLAKE3 hash of a file."""
    return blake3().update_mmap(file).hexdigest()


def others(archive: ClassArchive) -> Iterator[Path]:
    """Yield the folders of other archives beside this one, such as those of an older Spark."""
    with contextlib.suppress(OSError):
        yield from (path for path in archive.folder.parent.glob(f"{PREFIX}*") if path.is_dir() and path != archive.folder)


def _java(java: Java) -> list[str]:
    """Return all that tells one Java from another: its folder, its release, its library."""
    release = read_release(java.home / "release")
    home = Path(release.get(REAL_HOME, java.home)).resolve()
    library = home / "lib" / "server"
    stamps = [f"{name} {_stamp(library / name)}" for name in sorted(os.listdir(library)) if name.startswith("libjvm.")]
    return [str(home), *stamps]


def _jars(folder: Path) -> list[str]:
    return [f"{entry.name} {_stamp(entry)}" for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)]


def _stamp(file: Path | os.DirEntry[str]) -> str:
    stat = file.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"
