"""The package of an application: the same address for the same files, and the settings for Spark."""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dagflow.packaging.package as packaging
from dagflow.errors import LibraryUnknown, LockUnusable, PackageNotMade
from dagflow.packaging.libraries import Installed, Library
from dagflow.packaging.package import Package, package_of
from operators import Filter
from tests.packaging.conftest import Install

Make = Callable[..., Package]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Install) -> Make:
    """Make packages of what looks installed, with a small dagflow."""
    install("dagflow", "attrs")
    install("attrs")
    (tmp_path / "ours.py").write_text("1\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "app.py").write_text("def populate_dag(dag, conf): ...\n")
    app = ModuleType("app")
    app.__file__ = str(tmp_path / "shop" / "app.py")
    exec("def populate_dag(dag, conf): ...", vars(app))
    monkeypatch.setitem(sys.modules, "app", app)
    monkeypatch.setattr(packaging, "our_library", lambda: Library("dagflow", "0.1", {"dagflow.py": tmp_path / "ours.py"}))
    monkeypatch.setattr(packaging, "user_modules", list)
    found = Installed.here
    monkeypatch.setattr(Installed, "here", lambda: found([str(tmp_path / "site-packages")]))

    def make(*operators: Any, name: str = "my app", **options: Any) -> Package:
        environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return package_of(name, app.populate_dag, operators or [Filter(bool)], environ=environ, **options)

    return make


def names(package: Package) -> list[str]:
    with tarfile.open(package.archive) as tar:
        return tar.getnames()


def test_it_holds_a_python_the_libraries_and_a_list_of_them(make: Make) -> None:
    package = make()
    found = names(package)
    folder = f"lib/python{package.python}/site-packages"
    assert {"bin/python", "package.json", f"{folder}/attrs.py", f"{folder}/dagflow.py"} <= set(found)
    assert [name for name in found if "direct_url" in name or "RECORD" in name] == []
    with tarfile.open(package.archive) as tar:
        manifest = json.load(tar.extractfile("package.json"))  # type: ignore[arg-type]
    assert manifest["libraries"] == {"attrs": "1.0", "dagflow": "0.1"}
    assert {each.name: each.version for each in package.libraries} == manifest["libraries"]


def test_an_unchanged_environment_is_not_archived_again(make: Make, install: Install) -> None:
    first, again = make(), make()
    assert (first.is_new, again.is_new) == (True, False)
    assert first.archive == again.archive
    install("six")
    assert make().archive == first.archive, "nothing needs it"
    changed = make(extra=["six"])
    assert changed.is_new
    assert changed.archive != first.archive


def test_code_has_an_address_of_its_own(make: Make) -> None:
    package = make()
    assert package.archive.name.startswith("my_app-")
    assert package.code.parent == package.archive.parent
    assert zipfile.ZipFile(package.code).namelist() == ["app.py"]
    assert package.module == "app:populate_dag"


def test_drivers_of_urls_come_along(make: Make, install: Install) -> None:
    install("s3fs", "botocore")
    install("botocore")
    assert [each.name for each in make(texts=["s3://logs/out"]).libraries] == ["dagflow", "attrs", "botocore", "s3fs"]


def test_a_shared_folder_gets_the_archive_once_and_spark_sends_a_script(make: Make, tmp_path: Path) -> None:
    first, again = (make(shared=str(tmp_path / "shared")) for _ in range(2))
    assert (first.is_new, again.is_new) == (True, False)
    assert list((tmp_path / "shared").iterdir()) == [first.shared]
    assert names(again) == ["bin/python"]
    assert again.archive.stat().st_size < 4096
    assert again.uri.startswith(f"{again.archive}#")


def test_a_shared_folder_that_cannot_be_written_is_told(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PackageNotMade, match="copying it to"):
        make(shared=str(tmp_path / "file"))


def test_an_unknown_library_is_refused(make: Make) -> None:
    with pytest.raises(LibraryUnknown, match="pip install nothing-like-it"):
        make(extra=["nothing_like.it"])


def test_a_lock_holds_the_further_libraries_too(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "install", lambda path, folder: [Library("attrs", "26.1", {})])
    assert [each.name for each in make(lock="lock.txt", extra=["attrs"]).libraries] == ["dagflow", "attrs"]
    with pytest.raises(LockUnusable, match="s3fs is missing, which --package-with asks for"):
        make(lock="lock.txt", extra=["attrs", "s3fs"])


def test_old_archives_go(make: Make, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / "ours.py").write_text(f"{number}\n")
        last = make()
    kept = list((tmp_path / "cache").rglob("my_app-*.tar.gz"))
    assert len(kept) == 4
    assert last.archive in kept


def test_settings_of_spark_keep_other_archives(make: Make) -> None:
    package = make()
    ours = f"{package.archive}#environment"
    assert package.spark_settings() == {"spark.archives": ours, "spark.pyspark.python": "./environment/bin/python"}
    assert package.spark_settings({"spark.archives": "a.zip#data"})["spark.archives"] == f"a.zip#data,{ours}"


def test_a_cache_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PackageNotMade, match="XDG_CACHE_HOME"):
        package_of("x", print, [], environ={"XDG_CACHE_HOME": str(tmp_path / "file")})
