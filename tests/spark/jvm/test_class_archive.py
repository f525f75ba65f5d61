"""The class archive: found by what it was made for, made once, whole or not at all. Java and Spark are stand-ins here."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import ArchiveNotMade
from dagflow.spark.jvm import making
from dagflow.spark.jvm.class_archive import ARCHIVE, ClassArchive, archive_for
from dagflow.spark.jvm.java import Java
from dagflow.spark.jvm.making import make_archive, make_later


class Machine:
    """A Java, a Spark and a cache folder."""

    def __init__(self, root: Path) -> None:
        self.java_home, self.spark, self.cache = root / "java", root / "spark", root / "cache"
        (self.java_home / "lib" / "server").mkdir(parents=True)
        (self.java_home / "lib" / "server" / "libjvm.so").write_bytes(b"jvm")
        (self.java_home / "release").write_text('JAVA_VERSION="17.0.1"\n', encoding="utf-8")
        (self.spark / "jars").mkdir(parents=True)
        (self.spark / "jars" / "spark-core.jar").write_bytes(b"core")
        self.environ = {"SPARK_HOME": str(self.spark), "XDG_CACHE_HOME": str(self.cache)}
        self.java = Java(self.java_home, 17, "JAVA_HOME")
        self.steps: list[str] = []

    def place(self) -> ClassArchive:
        found = archive_for(self.java, self.environ)
        assert found is not None
        return found

    def step(self, command: list[str], environ: dict[str, str]) -> None:
        """Do what the processes would do."""
        self.steps.append(command[0])
        if making._TRAINING in command:
            folder = Path(environ[making.CLASS_PATH])
            jar = str(self.spark / "jars" / "spark-core.jar")
            (folder / making.CLASS_LIST).write_text("java/lang/Object\n", encoding="utf-8")
            (folder / making.LOADED_CLASS_PATH).write_text(f"{self.spark}/conf:{jar}:{jar}", encoding="utf-8")
            (folder / "launcher_class_path").write_text(f"{self.spark}/conf:{self.spark}/jars/*\n", encoding="utf-8")
        else:
            [file] = [option.partition("=")[2] for option in command if option.startswith("-XX:SharedArchiveFile")]
            Path(file).write_bytes(b"archive" * 1000)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(making, "_run", machine.step)
    return machine


def test_it_is_made_once_and_whole(machine: Machine) -> None:
    assert not machine.place().is_whole()
    made = make_archive(machine.java, machine.environ)
    assert made == machine.place()
    assert made.is_whole()
    jar = machine.spark / "jars" / "spark-core.jar"
    assert (made.folder / "class_path").read_text() == f'-cp "{jar}"\n', "no entry twice, none that is missing"
    assert make_archive(machine.java, machine.environ) == made
    assert len(machine.steps) == 2
    assert sorted(os.listdir(made.folder)) == ["archive.jsa", "checksum", "class_path", "launcher_class_path"]


def test_another_java_or_spark_has_another_archive(machine: Machine) -> None:
    names = {machine.place().folder}
    os.utime(machine.java_home / "lib" / "server" / "libjvm.so", (1, 1))
    names.add(machine.place().folder)
    (machine.spark / "jars" / "another.jar").write_bytes(b"")
    names.add(machine.place().folder)
    shutil.copytree(machine.spark, machine.spark.with_name("moved"))
    machine.environ["SPARK_HOME"] += "/../moved"
    names.add(machine.place().folder)
    assert len(names) == 4


def test_there_is_none_beside_files_of_configuration_nor_without_a_cache_folder(machine: Machine) -> None:
    assert archive_for(machine.java, {"SPARK_HOME": str(machine.spark)}) is None
    (machine.spark / "conf").mkdir()
    assert archive_for(machine.java, machine.environ) is None
    with pytest.raises(ArchiveNotMade, match="a Spark without a folder conf"):
        make_archive(machine.java, machine.environ)


@pytest.mark.parametrize("damage", ["truncated", "changed", "gone"])
def test_a_broken_one_is_not_used_and_made_again(machine: Machine, damage: str) -> None:
    made = make_archive(machine.java, machine.environ)
    assert made is not None
    file = made.folder / ARCHIVE
    content = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(content[:-1])
        case "changed":
            file.write_bytes(content[:99] + b"!" + content[100:])
        case "gone":
            file.unlink()
    assert not made.is_whole()
    assert make_archive(machine.java, machine.environ) == made
    assert made.is_whole()


def test_what_a_killed_process_left_goes(machine: Machine) -> None:
    half = machine.cache / "dagflow" / f".{machine.place().folder.name}-half"
    half.mkdir(parents=True)
    os.chmod(half.parent, 0o700)
    assert make_archive(machine.java, machine.environ) is not None
    assert not half.exists()


def test_two_at_once_make_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_run", lambda command, environ: (time.sleep(0.05), machine.step(command, environ))[1])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: make_archive(machine.java, machine.environ), range(4)))
    assert any(found)
    assert set(found) <= {None, machine.place()}
    assert len(machine.steps) == 2
    assert machine.place().is_whole()


def test_a_failure_leaves_nothing_and_is_not_tried_again_at_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], environ: dict[str, str]) -> None:
        raise ArchiveNotMade("Java says no", "nothing")

    monkeypatch.setattr(making, "_run", fail)
    with pytest.raises(ArchiveNotMade, match="Java says no"):
        make_archive(machine.java, machine.environ)
    assert list((machine.cache / "dagflow").glob("*classes-*/")) == []
    assert making._has_failed(machine.place())
    os.utime(making._failure(machine.place()), (1, 1))
    assert not making._has_failed(machine.place())


def test_a_cache_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.cache.write_text("a file", encoding="utf-8")
    with pytest.raises(ArchiveNotMade, match="cache"):
        make_archive(machine.java, machine.environ)


def test_a_full_disk_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 30, 1 << 30, 1 << 20))  # type: ignore[attr-defined]
    with pytest.raises(ArchiveNotMade, match="no room"):
        make_archive(machine.java, machine.environ)


def test_those_of_an_older_spark_go_when_unused(machine: Machine) -> None:
    old = make_archive(machine.java, machine.environ)
    (machine.spark / "jars" / "newer.jar").write_bytes(b"")
    assert old is not None
    assert make_archive(machine.java, machine.environ) != old
    assert old.folder.is_dir(), "two versions side by side keep theirs"
    os.utime(old.folder, (1, 1))
    (machine.spark / "jars" / "newest.jar").write_bytes(b"")
    make_archive(machine.java, machine.environ)
    assert not old.folder.is_dir()


class TestInTheBackground:
    @pytest.fixture
    def started(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        started: list[Any] = []
        monkeypatch.setattr(making, "find_java", lambda environ: machine.java)
        monkeypatch.setattr(making.subprocess, "Popen", lambda command, **rest: started.append(command))
        return started

    def test_it_starts_where_there_is_none(self, machine: Machine, started: list[Any]) -> None:
        make_later(machine.environ)
        assert [command[1:] for command in started] == [["-m", "dagflow.spark.jvm.making"]]

    def test_it_does_not_where_one_is_there_or_has_failed(self, machine: Machine, started: list[Any]) -> None:
        make_archive(machine.java, machine.environ)
        make_later(machine.environ)
        shutil.rmtree(machine.place().folder)
        making._failure(machine.place()).touch()
        make_later(machine.environ)
        assert started == []

    def test_it_never_raises(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(making, "find_java", lambda environ: 1 / 0)
        make_later(machine.environ)


def test_a_lock_that_another_process_has_is_left_alone(machine: Machine) -> None:
    make_archive(machine.java, machine.environ)
    with open(machine.cache / "dagflow" / f".{machine.place().folder.name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert make_archive(machine.java, machine.environ) is None
