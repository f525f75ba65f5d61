"""Lock files: exact versions, installed by uv or pip."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dagflow.errors import InstallerMissing, LockUnusable, PackageNotMade
from dagflow.packaging import lock
from dagflow.packaging.libraries import Installed
from dagflow.packaging.lock import install, requirements_of

PYLOCK = """
lock-version = "1.0"
[[packages]]
name = "attrs"
version = "23.2.0"
[[packages.wheels]]
url = "https://example.org/attrs.whl"
hashes = {sha256 = "aa"}
[[packages]]
name = "colorama"
version = "1"
marker = "sys_platform == 'win32'"
[[packages]]
name = "pyspark"
version = "4.3.0"
"""


def locked(folder: Path, text: str, name: str = "lock.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_exact_versions_pass_with_their_hashes_and_options(tmp_path: Path) -> None:
    text = (
        "# made by a tool\n--index-url https://index.example/simple\n"
        "attrs==23.2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb  # via app\n"
        "own @ file:///wheels/own.whl\nfast[extra] == 1.0 ; python_version > '3'\n"
    )
    assert requirements_of(locked(tmp_path, text)).splitlines() == [
        "--index-url https://index.example/simple",
        "attrs==23.2.0 --hash=sha256:aa --hash=sha256:bb",
        "own @ file:///wheels/own.whl",
        "fast[extra] == 1.0 ; python_version > '3'",
    ]


def test_what_spark_brings_and_dagflow_itself_are_left_out(tmp_path: Path) -> None:
    assert requirements_of(locked(tmp_path, "pyspark==4.3.0\nPy4J==0.10\njdk4py==21\ndagflow>=0.1\n")) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("attrs\n", "line 1, 'attrs', has no exact version"),
        ("six==1.0\nattrs>=23\n", "line 2, 'attrs>=23', has no exact version"),
        ("attrs==23.*\n", "has no exact version"),
        ("-r other.txt\n", "names something else"),
        ("-e .\n", "names something else"),
        ("https://user:secret@example.org/x.whl\n", "has no exact version"),
    ],
)
def test_other_requirements_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(LockUnusable) as refused:
        requirements_of(locked(tmp_path, text))
    assert reason in str(refused.value)
    assert "pip freeze > lock.txt" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_pylock_is_read(tmp_path: Path) -> None:
    lines = ["attrs==23.2.0 --hash=sha256:aa", "colorama==1 ; sys_platform == 'win32'"]
    assert requirements_of(locked(tmp_path, PYLOCK, "pylock.toml")).splitlines() == lines
    with pytest.raises(LockUnusable, match="PEP 751"):
        requirements_of(locked(tmp_path, "[[packages]]\nname = 'a'\n", "pylock.toml"))


def test_a_lock_of_uv_needs_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(LockUnusable, match=r"uv export -o lock\.txt"):
        requirements_of(locked(tmp_path, "version = 1\n", "uv.lock"))


def test_without_uv_and_pip_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 1))
    with pytest.raises(InstallerMissing, match="-m ensurepip"):
        install(locked(tmp_path, "attrs==23.2.0\n"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock.txt"]


def test_a_failed_installation_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Looking in indexes: x\nERROR: No matching distribution for attrs==99 at https://user:secret@index.example/\nhint\n"
    monkeypatch.setattr(lock, "_installer", lambda path: ["pip"])
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 1, "", said))
    with pytest.raises(PackageNotMade) as failed:
        install(locked(tmp_path, "attrs==99\n"), tmp_path)
    assert "ERROR: No matching distribution for attrs==99 at https://user:***@index.example/" in str(failed.value)


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("pip") is None and shutil.which("uv") is None, reason="neither pip nor uv")
def test_a_lock_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_missing_of_ours", lambda here, installed: [])
    wheel = tmp_path / "own-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("own.py", "x = 1\n")
        file.writestr("own-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
        file.writestr("own-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("own-1.0.dist-info/RECORD", "own.py,,\nown-1.0.dist-info/METADATA,,\nown-1.0.dist-info/WHEEL,,\n")
    path = locked(tmp_path, f"own @ {wheel.as_uri()}\n")
    cache = tmp_path / "cache"
    cache.mkdir()
    [library] = install(path, cache)
    assert (library.name, library.version, "own.py" in library.files) == ("own", "1.0", True)
    wheel.unlink()
    assert install(path, cache) == [library], "from the cache"
    assert len(list(cache.iterdir())) == 1
    digest = hashlib.sha256(f"{sys.implementation.cache_tag}\n{requirements_of(path)}".encode()).hexdigest()
    assert [each.name for each in cache.iterdir()] == [digest[:16]]


def test_a_lock_without_what_dagflow_needs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_missing_of_ours", lambda here, installed: ["pyarrow"])
    with pytest.raises(LockUnusable, match="pyarrow is missing"):
        install(locked(tmp_path, ""), tmp_path)


def test_a_requirement_of_dagflow_counts(tmp_path: Path) -> None:
    here = Installed.here()
    if "dagflow" in here.by_name:
        assert "pyarrow" in lock._missing_of_ours(here, Installed({}))
        assert lock._missing_of_ours(here, here) == []
