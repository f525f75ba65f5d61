from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import ApplicationBroken, ApplicationMissing, ConfigErrors, NoPopulateDag, NotAnOperator, SettingsNotAttrs
from dagflow.launching.application import application_of, load_application
from dagflow.launching.build import build

APP = """
from __future__ import annotations
import attrs
from dagflow import DAG

@attrs.define
class Settings:
    input: str = "x"

def populate_dag(dag: DAG, conf: Settings) -> None:
    pass

def other(dag, conf):
    pass

class Application:
    def populate_dag(self, dag, conf):
        pass
"""


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("dagflow", "operators")):
            del sys.modules[name]
    sys.path[:] = path


def test_a_folder_a_file_and_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wordcount"
    folder.mkdir()
    (folder / "app.py").write_text(APP)
    (tmp_path / "single.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    for spec, name in (
        ("wordcount", "wordcount"),
        ("wordcount/app.py", "wordcount"),
        ("single.py", "single"),
        ("single", "single"),
    ):
        found = load_application(spec)
        assert (found.name, found.populate_dag.__name__) == (name, "populate_dag")
        assert found.settings_class is not None
        assert found.settings_class.__name__ == "Settings"
    assert load_application("single.py:other").settings_class is None
    assert load_application("single:Application").populate_dag.__name__ == "populate_dag"


def test_siblings_and_relative_imports(tmp_path: Path) -> None:
    flat, package = tmp_path / "flat", tmp_path / "package"
    for folder in (flat, package):
        folder.mkdir()
    (flat / "helper_of_flat.py").write_text("VALUE = 1\n")
    (flat / "app.py").write_text("from helper_of_flat import VALUE\ndef populate_dag(dag, conf): return VALUE\n")
    (package / "__init__.py").touch()
    (package / "helper.py").write_text("VALUE = 2\n")
    (package / "app.py").write_text("from .helper import VALUE\ndef populate_dag(dag, conf): return VALUE\n")
    found: list[Any] = [load_application(str(folder)).populate_dag(None, None) for folder in (flat, package)]
    assert found == [1, 2]


def test_two_applications_both_have_an_app(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.py").write_text(f"def populate_dag(dag, conf): return {name!r}\n")
    found: list[Any] = [load_application(str(tmp_path / name)).populate_dag(None, None) for name in ("one", "two", "one")]
    assert found == ["one", "two", "one"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nowhere", "there is no folder, file or module nowhere"),
        ("nowhere.py", r"there is no file nowhere\.py"),
        ("./nowhere", "there is no folder ./nowhere"),
        ("empty", r"the folder empty has no app\.py"),
        ("good.py:othre", r"good\.py has no 'othre'\. Did you mean 'other'"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "good.py").write_text(APP)
    with pytest.raises(ApplicationMissing, match=text):
        load_application(spec)


def test_a_module_without_an_application(tmp_path: Path) -> None:
    (tmp_path / "empty_module.py").write_text("x = 1\n")
    with pytest.raises(NoPopulateDag):
        load_application(str(tmp_path / "empty_module.py"))
    with pytest.raises(NoPopulateDag):
        application_of(3)


def test_an_application_that_raises_shows_its_line(tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("x = 1\n1 / 0\n")
    with pytest.raises(ApplicationBroken) as caught:
        load_application(str(tmp_path / "broken_module.py"))
    assert "ZeroDivisionError" in str(caught.value)
    assert "broken_module.py:2" in str(caught.value)


def test_what_attrs_has_generated_is_no_line_of_the_user(tmp_path: Path) -> None:
    text = "from operators import SparkOperator\nSparkOperator(len, input_schema='host string', output_schema='a: int8')\n"
    (tmp_path / "generated_module.py").write_text(text)
    with pytest.raises(ApplicationBroken) as caught:
        load_application(str(tmp_path / "generated_module.py"))
    assert str(caught.value).partition("\n  at ")[2].startswith(str(tmp_path / "generated_module.py:2"))


@attrs.define
class Settings:
    path: str


def annotated(dag: DAG, conf: Settings) -> None: ...


def unknown(dag: DAG, conf: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def test_settings_are_found_by_the_annotation() -> None:
    assert application_of(annotated).settings_class is Settings
    assert application_of(unknown).settings_class is None
    assert application_of(lambda dag, conf: None).settings_class is None
    assert application_of(lambda dag: None).settings_class is None


@dataclasses.dataclass
class Dataclass:
    input: str = ""


class Bare:
    input = ""


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (Dataclass, "Dataclass, which is a dataclass"),
        (Bare, "Bare, which is no attrs class"),
        (str, "no attrs"),
        (Dataclass | None, "a union"),
    ],
)
def test_settings_of_a_class_that_cannot_be_filled(annotation: Any, told: str) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None: ...

    populate_dag.__annotations__["conf"] = annotation
    with pytest.raises(SettingsNotAttrs, match=told) as caught:
        application_of(populate_dag)
    assert "test_application.py:" in str(caught.value)


@pytest.mark.parametrize("annotation", [Any, object, dict, dict[str, Any], Mapping[str, Any], Mapping, "Missing", None])
def test_annotations_that_a_mapping_satisfies(annotation: Any) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None: ...

    populate_dag.__annotations__["conf"] = annotation
    assert application_of(populate_dag).settings_class is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("async def populate_dag(dag, conf): pass", "it is a coroutine function: write def instead of async def"),
        ("def populate_dag(dag, conf): yield", "it is a generator: remove yield"),
        ("def populate_dag(dag): pass", "it is called as populate_dag(dag, conf)"),
        ("def populate_dag(): pass", "it is called as populate_dag(dag, conf)"),
    ],
)
def test_a_function_that_cannot_fill_a_dag_is_refused(tmp_path: Path, code: str, reason: str) -> None:
    (tmp_path / "app.py").write_text(code)
    with pytest.raises(ApplicationBroken, match=re.escape(reason)):
        build(str(tmp_path))


@pytest.mark.parametrize("operator", ["None", "'Filter'", "Filter"])
def test_what_is_no_operator_is_told_before_the_failure_that_follows_from_it(tmp_path: Path, operator: str) -> None:
    (tmp_path / "app.py").write_text(
        f"from operators import Filter\ndef populate_dag(dag, conf):\n    dag.add_operator('keep', {operator}).nothing\n"
    )
    with pytest.raises(ConfigErrors) as caught:
        build(str(tmp_path))
    assert [type(error) for error in caught.value.errors] == [NotAnOperator, ApplicationBroken]
