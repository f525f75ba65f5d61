"""The archive's Python: a script that finds the Python of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dagflow.packaging.archive import Member, publish
from dagflow.packaging.launcher import Interpreter, launcher

HERE = Interpreter.here()


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An unpacked archive with one library."""
    path = tmp_path / "environment" / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_bytes(launcher("app", HERE))
    path.chmod(0o755)
    libraries = tmp_path / "environment" / HERE.libraries
    libraries.mkdir(parents=True)
    (libraries / "from_the_package.py").write_text("x = 'here'\n")
    return path


def run(python: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-c", "import sys, from_the_package as p; print(p.x, sys.argv[1:])", "an argument"]
    kept = {"PATH": os.defpath, **environment}
    return subprocess.run(command, env=kept, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def fake(folder: Path, name: str, kind: str) -> Path:
    """A Python of another kind."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{kind}'\n")
    path.chmod(0o755)
    return path


def test_a_python_of_the_same_kind_gets_the_libraries(python: Path) -> None:
    assert run(python, DAGFLOW_PYTHON=sys.executable).stdout == "here ['an argument']\n"


def test_it_is_found_on_path_behind_others(python: Path, tmp_path: Path) -> None:
    fake(tmp_path / "bin", f"python{HERE.version}", "cpython-39 x86_64-linux-musl")
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    assert run(python, PATH=f"{tmp_path}/bin:{os.defpath}").stdout == "here ['an argument']\n"


def test_what_was_there_instead_is_told(python: Path, tmp_path: Path) -> None:
    for name in (f"python{HERE.version}", "python3", "python"):
        fake(tmp_path / "bin", name, "cpython-39 x86_64-linux-gnu")
    text = python.read_text().replace("/usr/local/bin/", "/nowhere/").replace("/usr/bin/", "/nowhere/")
    python.write_text(text)
    answer = run(python, PATH=f"{tmp_path}/bin:{os.defpath}")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"dagflow-package: app needs Python {HERE.version} ({HERE.kind}), and ")
    assert f"{tmp_path}/bin/python3 is cpython-39 x86_64-linux-gnu" in answer.stderr
    assert answer.stdout == ""


def test_the_libraries_of_the_executor_come_last(python: Path, tmp_path: Path) -> None:
    (tmp_path / "from_the_package.py").write_text("x = 'the other one'\n")
    assert run(python, DAGFLOW_PYTHON=sys.executable, PYTHONPATH=str(tmp_path)).stdout == "here ['an argument']\n"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The script for an archive in a shared folder, whose path has a blank and a quote."""
    folder = tmp_path / "it's shared"
    folder.mkdir()
    archive = folder / "app-0123456789abcdef.tar.gz"
    publish(archive, {f"{HERE.libraries}/from_the_package.py": Member(b"x = 'unpacked'\n")})
    path = tmp_path / "python"
    path.write_bytes(launcher("app", HERE, str(archive)))
    path.chmod(0o755)
    return path


def test_a_shared_archive_is_unpacked_once(shared: Path, tmp_path: Path) -> None:
    here = {"DAGFLOW_PYTHON": sys.executable, "DAGFLOW_PACKAGES": str(tmp_path / "on this host")}
    assert run(shared, **here).stdout == "unpacked ['an argument']\n"
    shutil.rmtree(tmp_path / "it's shared")
    assert run(shared, **here).stdout == "unpacked ['an argument']\n", "from the folder of this machine"
    assert [path.name for path in (tmp_path / "on this host").iterdir()] == ["app-0123456789abcdef"]


def test_processes_that_unpack_it_at_the_same_time_do_not_disturb_each_other(shared: Path, tmp_path: Path) -> None:
    here = {"DAGFLOW_PYTHON": sys.executable, "DAGFLOW_PACKAGES": str(tmp_path / "on this host")}
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: run(shared, **here), range(4)))
    assert [answer.stdout for answer in answers] == ["unpacked ['an argument']\n"] * 4
    assert [path.name for path in (tmp_path / "on this host").iterdir()] == ["app-0123456789abcdef"]


def test_a_shared_archive_that_is_not_seen_is_told(shared: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "it's shared")
    answer = run(shared, DAGFLOW_PYTHON=sys.executable, DAGFLOW_PACKAGES=str(tmp_path / "on this host"))
    assert answer.returncode == 1
    assert answer.stderr.startswith("dagflow-package: app cannot be unpacked on ")
    assert "No such file or directory" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert list((tmp_path / "on this host").iterdir()) == []


def test_a_folder_that_others_may_write_is_refused(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    answer = run(shared, DAGFLOW_PYTHON=sys.executable, DAGFLOW_PACKAGES=str(folder))
    assert "is not a folder of this user alone" in answer.stderr


def test_what_a_machine_has_not_used_for_a_month_goes(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "on this host"
    for name in ("old", "new"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o700)
    os.utime(folder / "old", (1, 1))
    assert run(shared, DAGFLOW_PYTHON=sys.executable, DAGFLOW_PACKAGES=str(folder)).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["app-0123456789abcdef", "new"]
