"""The application's own files, and what they import."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from dagflow.packaging.code import code_files, imported_by, imported_by_operators
from operators import Filter, PostgresWriter


def test_imports_are_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import os.path\nfrom . import b\ndef f():\n    from numpy import linalg\n    import six as s\n"
    )
    (tmp_path / "broken.py").write_text("def (\n")
    found = imported_by([tmp_path / "a.py", tmp_path / "broken.py", tmp_path / "gone.py"])
    assert found == {"os.path", "numpy", "numpy.linalg", "six"}


def test_operators_bring_what_their_modules_import() -> None:
    assert "psycopg" in imported_by_operators([PostgresWriter(dsn="postgresql://h/d", table="t")])
    assert not {"psycopg", "deltalake", "pyspark"} & {each.partition(".")[0] for each in imported_by_operators([Filter(bool)])}


def test_code_is_python_below_the_application_and_nothing_else(tmp_path: Path) -> None:
    names = [
        "app.py",
        "helpers/one.py",
        ".env",
        ".hidden/x.py",
        "data.json",
        "venv/pyvenv.cfg",
        "venv/lib.py",
        "__pycache__/a.py",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    module = ModuleType("app")
    module.__file__ = str(tmp_path / "app.py")
    assert list(code_files(module, [])) == ["app.py", "helpers/one.py"]


def test_code_keeps_the_names_of_its_packages(tmp_path: Path) -> None:
    package = tmp_path / "shop" / "orders"
    package.mkdir(parents=True)
    (package / "app.py").touch()
    module = ModuleType("shop.orders.app")
    module.__file__ = str(package / "app.py")
    assert list(code_files(module, [])) == ["shop/orders/app.py"]
    assert list(code_files(None, [sys.modules[__name__]])) != []
