"""The output of `dagflow config APP`."""

from __future__ import annotations

import enum
import json
import pathlib
import re
from typing import Any

import attrs
import pytest

from dagflow.config import (
    Bytes,
    MiB,
    Millis,
    Seconds,
    Secret,
    SettingRow,
    apply_operators,
    apply_ports,
    effective,
    read_layers,
    render_json,
    render_text,
    show,
)


class Colour(enum.Enum):
    RED = 1


@attrs.define
class Shown:
    """Says itself how it is shown."""

    n: int = 1

    def __str__(self) -> str:
        return f"shown.{self.n}()"


@attrs.define
class Database:
    host: str = "localhost"  # where it runs
    password: Secret = ""


@attrs.define
class Settings:
    input: list[str]  # files or directories
    prefix: str = "."
    size: Bytes = 64 * MiB
    database: Database = attrs.field(factory=Database)
    labels: dict[str, int] = attrs.field(factory=dict)
    keys: list[Secret] = attrs.field(factory=list)


@attrs.define(eq=False)
class Context:
    length: int = 100


@attrs.define(eq=False)
class Reader:
    """Reads."""

    reader_context: Context | None = attrs.field(factory=Context)
    convert: Any = None
    max_readers: int = 16


def rows_of(*definitions: str, **more: Any) -> dict[str, tuple[str, str]]:
    layers = read_layers(Settings, definitions=definitions, **more)
    return {row.key: (row.value, row.origin) for row in effective(Settings, layers) if row.group != "run"}


def test_every_value_with_its_origin(tmp_path: pathlib.Path) -> None:
    (tmp_path / "app.toml").write_text('# mine\nsize = "1GB"\n[labels]\na = 1\n')
    rows = rows_of(
        "input=logs",
        "labels.b=2",
        "spark.executor.memory=2g",
        "spark.my.token=hunter2",
        conf_files=[tmp_path / "app.toml"],
        environment={"DAGFLOW_DATABASE__PASSWORD": "hunter2", "DAGFLOW_KEYS": '["hunter2"]'},
        code={"prefix": "#"},
    )
    assert rows == {
        "input": ('["logs"]', "-D"),
        "prefix": ("#", "code"),
        "size": ("1GB", f"{tmp_path}/app.toml:2"),
        "database": ("Database", "default"),
        "database.host": ("localhost", "default"),
        "database.password": ("***", "env DAGFLOW_DATABASE__PASSWORD"),
        "labels": ("{a = 1, b = 2}", f"{tmp_path}/app.toml:4, -D"),
        "keys": ("***", "env DAGFLOW_KEYS"),
        "spark.executor.memory": ("2g", "-D"),
        "spark.my.token": ("***", "-D"),
    }


def test_a_settings_object_of_code_tells_what_differs_from_the_defaults() -> None:
    given = Settings(["a"], database=Database("db"))
    layers = read_layers(Settings, code=given, definitions=["prefix=x"])
    rows = {row.key: row.origin for row in effective(Settings, layers)}
    assert [rows[key] for key in ("input", "prefix", "size", "database", "database.host", "database.password")] == [
        "code", "-D", "default", "code", "code", "default",
    ]  # fmt: skip


def test_without_a_class_secrets_are_guessed_from_their_names() -> None:
    layers = read_layers(definitions=["input=[1]", "db_password=hunter2"])
    rows = [(row.key, row.value) for row in effective(None, layers) if row.group == "application"]
    assert rows == [("input", "[1]"), ("db_password", "***")]


def test_settings_of_the_run_are_named_so_that_they_can_be_given() -> None:
    @attrs.define
    class Own:
        window: str = "left"

    layers = read_layers(Own, definitions=["run.window=2s"])
    rows = {row.key: (row.value, row.origin) for row in effective(Own, layers)}
    assert rows["window"] == ("left", "default")
    assert rows["run.window"] == ("2s", "-D")
    assert rows["runner"] == ("spark", "default")


def test_operators_and_ports() -> None:
    operators = {"one": Reader(), "two": Reader(Context(5), convert=len), "three": Reader()}
    ports = {"one": {"messages": {"partition_parallel": None}, "errors": {"partition_parallel": True}}}
    layers = read_layers(
        None,
        definitions=[
            "operator.one.max_readers=8",
            "operator.three.reader_context.length=7",
            "operator.one.port.messages.partition_parallel=false",
        ],
    )
    applied = apply_operators(operators, layers)
    names = {"one": ["messages", "errors"]}
    applied_ports = apply_ports({**{name: [] for name in operators}, **names}, {"partition_parallel": bool | None}, layers)
    rows = effective(None, layers, operators=operators, applied=applied, ports=ports, applied_ports=applied_ports)
    assert {row.key: (row.value, row.origin) for row in rows if row.group.startswith("operator")} == {
        "operator.one.reader_context": ("Context", "default"),
        "operator.one.reader_context.length": ("100", "default"),
        "operator.one.convert": ("none", "default"),
        "operator.one.max_readers": ("8", "-D"),
        "operator.one.port.messages.partition_parallel": ("false", "-D"),
        "operator.one.port.errors.partition_parallel": ("true", "code"),
        "operator.two.reader_context": ("Context", "code"),
        "operator.two.reader_context.length": ("5", "code"),
        "operator.two.convert": ("len", "code"),
        "operator.two.max_readers": ("16", "default"),
        "operator.three.reader_context": ("Context", "default"),
        "operator.three.reader_context.length": ("7", "-D"),
        "operator.three.convert": ("none", "default"),
        "operator.three.max_readers": ("16", "default"),
    }
    assert {row.group for row in rows} >= {"run", "operator one (Reader)"}


def test_defaults_that_depend_on_the_object() -> None:
    @attrs.define
    class Derived:
        count: int
        made: Context = attrs.Factory(lambda self: Context(self.count), takes_self=True)
        made_too: Context = attrs.field(default=None, converter=lambda given: given or Context(7))

    def origins(*definitions: str) -> list[str]:
        layers, operators = read_layers(definitions=definitions), {"o": Derived(3)}
        rows = effective(None, layers, operators=operators, applied=apply_operators(operators, layers))
        return [row.origin for row in rows if row.key.startswith("operator.o.made")]

    assert origins() == ["default", "default", "default", "default"]
    assert origins("operator.o.made.length=4") == ["default", "-D", "default", "default"]


def test_values_that_compare_oddly_have_an_origin_too() -> None:
    class Odd:
        def __eq__(self, other: object) -> Any:
            return self

        def __bool__(self) -> bool:
            raise ValueError("neither true nor false")

        def __repr__(self) -> str:
            return "odd"

        __hash__ = None  # type: ignore[assignment]

    @attrs.define(eq=False)
    class Filter:
        predicate: Any = attrs.field(factory=Odd)

    rows = effective(None, read_layers(), operators={"keep": Filter(Odd())})
    assert [(row.value, row.origin) for row in rows if row.key == "operator.keep.predicate"] == [("odd", "code")]


@pytest.mark.parametrize(
    ("value", "hint", "text"),
    [
        ("x", str, "x"),
        (" x", str, '" x"'),
        ("a\nb", str, '"a\\nb"'),
        (5, Bytes, "5"),
        (1536, Bytes | None, "1536"),
        (0.5, Seconds | None, "500ms"),
        (2000, Millis, "2s"),
        ([1024, 5], list[Bytes], "[1KiB, 5]"),
        ({"b", "a"}, set[str], '["a", "b"]'),
        ((b"\n", b"\xff"), tuple[bytes, ...], '["\\n", "\\\\xff"]'),
        (pathlib.Path("a/b"), pathlib.Path, "a/b"),
        (re.compile("a+"), re.Pattern[str], "a+"),
        (Colour.RED, Colour, "RED"),
        (1.0, float, "1.0"),
        (None, Secret | None, "none"),
        ("hunter2", Secret | None, "***"),
        ({"n": Shown(2)}, dict[str, Shown], "{n = shown.2()}"),
        ([Database("h", "hunter2")], list[Database], '[Database(host="h", password=***)]'),
        ({"k": "hunter2"}, dict[str, Secret], "***"),
        (test_operators_and_ports, Any, "test_operators_and_ports"),
        (object(), Any, "<object object>"),
    ],
)
def test_shown_values(value: Any, hint: Any, text: str) -> None:
    assert show(value, hint) == text


def test_text_and_json() -> None:
    rows = [
        SettingRow("input", '["logs"]', "-D", "list[str]", "files or directories", "application"),
        SettingRow("prefix", ".", "default", "str", "", "application"),
        SettingRow("spark.executor.memory", "2g", "env X", "", "", "spark"),
    ]
    assert (
        render_text(rows)
        == """\
application
  input  = ["logs"]  (-D)       list[str]: files or directories
  prefix = .         (default)  str

spark
  spark.executor.memory = 2g  (env X)"""
    )
    assert json.loads(render_json(rows))[0] == {
        "key": "input",
        "value": '["logs"]',
        "origin": "-D",
        "type": "list[str]",
        "doc": "files or directories",
        "group": "application",
    }
    assert render_text([]) == ""


def test_text_fits_the_width() -> None:
    rows = [
        SettingRow("slots", "none", "default", "int | None", "how many processes the local runner uses, each for a task", "run"),
        SettingRow("name", "none", "default", "str", "a name", "run"),
        SettingRow("operator.splitter.scanner.files", '["one", "two"]', "default", "list[str]", "", "operator splitter"),
    ]
    assert (
        render_text(rows, 60)
        == """\
run
  slots = none  (default)
      int | None: how many processes the local runner uses,
      each for a task
  name  = none  (default)  str: a name

operator splitter
  operator.splitter.scanner.files = ["one", "two"]
      (default)  list[str]"""
    )
