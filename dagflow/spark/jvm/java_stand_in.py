"""A folder that looks like a Java, and runs the real one without the argument that it does not understand."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dagflow.spark.errors import JavaNotRunnable
from dagflow.storage.local.cache import places

REAL_HOME = "DAGFLOW_STANDS_FOR"
"""The name in a stand-in's `release` file that tells the home of the real Java."""

CLASS_PATH = "_DAGFLOW_CLASS_PATH"
"""The variable that tells a stand-in the folder of a class archive."""

LAUNCHER_CLASS_PATH, CLASS_PATH_FILE = "launcher_class_path", "class_path"
"""Files in that folder: the class path that Spark's launcher passes, and, as arguments for Java, the one to use instead."""

_SCRIPT = """\
#!/bin/sh
# Runs Java without the module that Spark's launcher always asks for and that this Java does not have.
# Java uses an archive of classes only with the very class path that it was made for: no entry twice, none that is missing.
case " $* " in
  *" org.apache.spark.launcher.Main "*) archive= ;;
  *) archive=${{{class_path}:-}}; unset {class_path} ;;
esac
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
    -cp)
      if [ -n "$archive" ] && [ -f "$archive/{class_path_file}" ] && [ -f "$archive/{launcher_class_path}" ]; then
        IFS= read -r known < "$archive/{launcher_class_path}"
        if [ "$1" = "$known" ]; then
          shift
          left=$((left - 1))
          argument=@$archive/{class_path_file}
        fi
      elif [ -n "$archive" ] && [ ! -f "$archive/{launcher_class_path}" ]; then
        printf '%s\\n' "$1" > "$archive/{launcher_class_path}"
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
        "bin/java": _SCRIPT.format(
            program=shlex.quote(str(home / "bin" / "java")),
            class_path=CLASS_PATH,
            class_path_file=CLASS_PATH_FILE,
            launcher_class_path=LAUNCHER_CLASS_PATH,
        ),
        "release": f'JAVA_VERSION="{version}"\n{REAL_HOME}="{home}"\n',
    }
    name = f"java-{version}-{hashlib.sha256(repr(files).encode()).hexdigest()[:16]}"
    tried: list[str] = []
    for place in places(environ):
        try:
            folder = _make(place(), name, files)
        except OSError as error:
            tried.append(str(error))  # read-only, full, foreign: the next place may do
            continue
        if os.access(folder / "bin" / "java", os.X_OK):  # false on file systems that are mounted noexec
            return folder
        tried.append(f"{folder}: programs may not be run there")
    raise JavaNotRunnable(home=str(home), tried=tuple(tried))


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
