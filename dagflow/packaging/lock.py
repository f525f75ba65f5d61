"""Libraries from a lock file: exact versions, installed by uv or pip into a folder of the cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagflow.packaging.errors import InstallerMissing, LockUnusable, PackageNotMade
from dagflow.packaging.libraries import FROM_SPARK, Installed, Library, canonical

_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\])?\s*(.*)")
_EXACT = re.compile(r"===?\s*[\w.!+-]+\s*(?:;.*)?$|@\s*\S+")
_TAKES_LONG = 1800.0  # seconds


def requirements_of(path: Path) -> str:
    """Return a lock file as lines for pip: `name==version`, with markers and hashes. What Spark has, and dagflow, are left out.

    Takes `pylock.toml` (PEP 751), `uv.lock` (which needs uv), and what `pip freeze`, `uv pip compile` and pip-tools write.

    Raises LockUnusable, InstallerMissing.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LockUnusable(path=str(path), reason=f"it cannot be read: {error}") from error
    if path.name == "uv.lock":
        text = _exported(path)
    elif path.suffix == ".toml":
        text = _of_pylock(path, text)
    return "".join(f"{line}\n" for line in _pinned(path, text))


def install(path: Path, folder: Path) -> list[Library]:
    """Install a lock file into a folder, unless that has been done. Return the libraries.

    Raises LockUnusable, InstallerMissing, PackageNotMade.
    """
    requirements = requirements_of(path)
    digest = hashlib.sha256(f"{sys.implementation.cache_tag}\n{requirements}".encode()).hexdigest()[:16]
    place = folder / digest
    if not place.is_dir():
        with tempfile.TemporaryDirectory(prefix="installing-", dir=folder) as temporary:
            lines, target = Path(temporary, "lock.txt"), Path(temporary, "installed")
            lines.write_text(requirements, encoding="utf-8")
            target.mkdir()
            if requirements:
                _run([*_installer(path), "--no-deps", "--target", str(target), "-r", str(lines)], f"installing {path}")
            try:
                target.rename(place)
            except OSError:  # another process has been faster
                if not place.is_dir():
                    raise
    os.utime(place)
    installed = Installed.here([str(place)])
    needs = {each for name in installed.by_name for each in installed.missing(name)}
    needs = (needs | set(_missing_of_ours(Installed.here(), installed))) - {"dagflow"}
    if needs:
        raise LockUnusable(path=str(path), reason=f"{', '.join(sorted(needs))} is missing, which others require")
    return [installed.library(name) for name in sorted(installed.by_name) if name not in (*FROM_SPARK, "dagflow")]


def _missing_of_ours(here: Installed, installed: Installed) -> list[str]:
    distribution = here.by_name.get("dagflow")
    return [] if distribution is None else Installed({**installed.by_name, "dagflow": distribution}).missing("dagflow")


def _pinned(path: Path, text: str) -> list[str]:
    """Return the requirements of a file, one a line. Raises LockUnusable for one without an exact version."""
    lines: list[str] = []
    joined = re.sub(r"[ \t]*\\\n[ \t]*", " ", text)
    for number, raw in enumerate(joined.splitlines(), 1):
        line = re.sub(r"(?:^|\s)#.*", "", raw).strip()
        if not line:
            continue
        if line.startswith("-"):
            if line.split("=")[0].split()[0] in ("-r", "--requirement", "-c", "--constraint", "-e", "--editable"):
                reason = f"line {number}, {line!r}, names something else: write all requirements into one file"
                raise LockUnusable(path=str(path), reason=reason)
            lines.append(line)  # an option: --index-url, --only-binary
            continue
        match = _NAME.match(line)
        if match is None:
            raise LockUnusable(path=str(path), reason=f"line {number}, {line!r}, does not begin with a name")
        if canonical(match[1]) in (*FROM_SPARK, "dagflow"):
            continue
        rest = re.sub(r"\s+--hash[= ]\S+", "", match[2]).strip()
        if not _EXACT.match(rest):
            raise LockUnusable(path=str(path), reason=f"line {number}, {line!r}, has no exact version: name==version")
        lines.append(line)
    return lines


def _of_pylock(path: Path, text: str) -> str:
    try:
        packages: list[Mapping[str, Any]] = tomllib.loads(text)["packages"]
        lines = []
        for package in packages:
            files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
            hashes = [f" --hash={kind}:{value}" for file in files for kind, value in file.get("hashes", {}).items()]
            marker = f" ; {package['marker']}" if "marker" in package else ""
            lines.append(f"{package['name']}=={package['version']}{marker}{''.join(hashes)}")
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        reason = f"it is not a pylock.toml of PEP 751 with versions ({type(error).__name__}: {error})"
        raise LockUnusable(path=str(path), reason=reason, remedy="uv export --format pylock.toml -o pylock.toml") from error
    return "\n".join(lines)


def _exported(path: Path) -> str:
    uv = shutil.which("uv")
    if uv is None:
        reason = "only uv reads it, and there is no uv on PATH"
        raise LockUnusable(path=str(path), reason=reason, remedy="pip install uv; or, where uv is: uv export -o lock.txt")
    options = ["export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--project", str(path.parent)]
    return _run([uv, *options], f"reading {path}")


def _installer(path: Path) -> list[str]:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    answer = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    if answer.returncode:
        raise InstallerMissing(path=str(path), python=sys.executable)
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]


def _run(command: list[str], doing: str) -> str:
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL, timeout=_TAKES_LONG
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageNotMade(doing=doing, reason=str(error), remedy="run the command by itself to see more") from error
    if answer.returncode:
        said = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
        errors = [line for line in said if line.lower().startswith("error")] or said[-1:] or [f"exit code {answer.returncode}"]
        raise PackageNotMade(doing=doing, reason=errors[0], remedy="check the lock file, and that the index can be reached")
    return answer.stdout
