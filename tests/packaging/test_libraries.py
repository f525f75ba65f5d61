"""The distributions that a package holds, and their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.errors import LibraryUnknown, PackageNotMade
from dagflow.packaging.libraries import Installed, our_library
from tests.packaging.conftest import Install

Here = Callable[[], Installed]


def test_what_is_required_comes_along_as_far_as_it_is_installed(install: Install, installed: Here) -> None:
    install("app", "Needed_One (>=1)", "other[fast]; python_version > '3'", "absent", "tool; extra == 'test'", "pyspark>=4")
    install("needed-one", "app")  # a circle
    install("other", "quick; extra == 'fast'", "slow; extra == 'slow'")
    for name in ("quick", "slow", "tool", "pyspark"):
        install(name)
    assert installed().closed(["app"]) == ["app", "needed-one", "other", "quick"]


def test_extras_with_which_dagflow_requires_a_library_come_along(install: Install, installed: Here) -> None:
    install("dagflow", "lake[sql-lite,fast]>=1; extra == 'lake'")
    install("lake", "database; extra == 'sql-lite'", "tests; extra == 'dev'")
    install("database")
    install("tests")
    assert installed().closed(["lake"]) == ["database", "lake"]


def test_what_spark_brings_stays_here(install: Install, installed: Here) -> None:
    install("pyspark", "py4j")
    install("py4j")
    assert installed().closed(["pyspark", "py4j"]) == []


def test_modules_are_found_in_their_distributions(install: Install, installed: Here) -> None:
    install("PyYAML", files=("yaml/__init__.py", "_yaml.py"))
    install("six")
    assert installed().that_provide(["yaml.loader", "os.path", "missing"]) == {"pyyaml"}
    assert installed().that_provide(["six"]) == {"six"}


def test_what_is_missing_is_named_but_not_what_other_systems_need(install: Install, installed: Here) -> None:
    install("app", "attrs", "colorama; sys_platform == 'win32'", "pyspark", "six")
    install("six")
    assert installed().missing("app") == ["attrs"]


def test_files_are_those_of_the_record_without_secrets_scripts_and_bytecode(install: Install, installed: Here) -> None:
    top = install("app", files=("app/__init__.py", "app/part.py"))
    record = next(top.glob("*.dist-info")) / "RECORD"
    (top / "app" / "part.pyc").touch()
    record.write_text(record.read_text() + "app/part.pyc,,\n/etc/hosts,,\napp/gone.py,,\n")
    assert sorted(installed().library("app").files) == ["app-1.0.dist-info/METADATA", "app/__init__.py", "app/part.py"]


def test_a_link_that_leads_out_is_refused(install: Install, installed: Here, tmp_path: Path) -> None:
    top = install("app")
    (tmp_path / "secret").write_text("s")
    (top / "app.py").unlink()
    (top / "app.py").symlink_to(tmp_path / "secret")
    with pytest.raises(PackageNotMade, match="link to"):
        installed().library("app")


def test_an_unknown_library_is_refused(installed: Here) -> None:
    with pytest.raises(LibraryUnknown, match="nothing-like-it"):
        installed().library("nothing-like-it")


def test_dagflow_is_packaged_as_it_is_imported_here() -> None:
    files = our_library().files
    assert {"dagflow/__init__.py", "operators/__init__.py", "dagflow/spark/task.py"} <= files.keys()
    assert [name for name in files if name.endswith(".pyc") or "__pycache__" in name] == []
