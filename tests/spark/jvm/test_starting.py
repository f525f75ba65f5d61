"""Sessions that start with a class archive, each in a process of its own: really used, and silent when it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.spark.jvm.class_archive import ARCHIVE, CHECKSUM, ClassArchive, archive_for, checksum
from dagflow.spark.jvm.java import find_java
from dagflow.spark.jvm.making import make_archive

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from dagflow.spark.jvm.options import DriverJvm
from dagflow.spark.connection.session import connect

link, ours = connect("archive", master="local[1]", jvm=DriverJvm(runs_dataframes=False, use_archive=True))
process = link.spark._jvm.java.lang.ProcessHandle.current().pid()
with open(f"/proc/{process}/maps") as maps:
    is_mapped = "archive.jsa" in maps.read()
print(link.spark.range(3).count(), is_mapped, link.spark._jvm.System.getenv("_DAGFLOW_CLASS_PATH"))
link.stop()
"""


@pytest.fixture(scope="module")
def archive() -> ClassArchive:
    """The archive of the user who runs the tests: made once, in half a minute."""
    made = make_archive(find_java(), os.environ)
    assert made is not None
    return made


@pytest.fixture
def copied(archive: ClassArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = archive_for(find_java(), os.environ)
    assert place is not None
    place.folder.parent.mkdir(parents=True, mode=0o700)
    shutil.copytree(archive.folder, place.folder)
    (place.folder / ARCHIVE).chmod(0o600)
    return place


def start() -> tuple[str, str]:
    """Return what a session prints on standard output and standard error."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200, check=True)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
class TestArchive:
    def test_it_is_used(self, copied: ClassArchive) -> None:
        assert start() == ("3 True None", "")

    def test_a_broken_one_is_passed_over_in_silence(self, copied: ClassArchive) -> None:
        with open(copied.folder / ARCHIVE, "r+b") as file:
            file.truncate(1 << 20)
        assert start() == ("3 False None", "")

    def test_one_that_java_refuses_is_passed_over_in_silence(self, copied: ClassArchive) -> None:
        """Its checksum is right, and still Java does not take it: here, its header is of another Java."""
        with open(copied.folder / ARCHIVE, "r+b") as file:
            file.seek(8)
            file.write(b"\0" * 64)
        (copied.folder / CHECKSUM).write_text(checksum(copied.folder / ARCHIVE), encoding="ascii")
        assert start() == ("3 False None", "")

    def test_without_a_cache_folder_it_starts_all_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "cache").write_text("a file", encoding="utf-8")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert start() == ("3 False None", "")
