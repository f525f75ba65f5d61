"""From layers to the objects that applications and runs are given."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import pytest

import dagflow.config
from dagflow.config import (
    Bytes,
    MiB,
    RunSettings,
    Secret,
    build_run_settings,
    build_settings,
    read_layers,
)
from dagflow.config.values.field_docs import field_docs
from dagflow.errors import (
    BadValue,
    ConfigErrors,
    ConflictingSettings,
    MissingSetting,
    NotASettingsClass,
    ReservedSettingName,
    UnknownSetting,
)

if TYPE_CHECKING:
    from somewhere import Elsewhere


@attrs.frozen
class Database:
    host: str
    """where the database runs"""
    port: int = attrs.field(default=5432, validator=attrs.validators.ge(1))
    password: Secret = ""


def even(instance: Any, attribute: Any, value: int) -> None:
    if value % 2:
        raise ValueError(f"{value} is odd")


@attrs.define
class Settings:
    input: list[str]  # files or directories
    output: str
    prefix: str = "."
    size: Bytes = 64 * MiB
    pairs: int = attrs.field(default=2, validator=even)
    lower: str = attrs.field(default="", converter=str.lower)
    labels: dict[str, int] = attrs.field(factory=dict)
    database: Database | None = None
    backup: Database = Database("backup")
    free: Any = None
    _hidden: int = 0
    elsewhere: Elsewhere | None = None
    function: Callable[[str], str] = str.lower
    computed: int = attrs.field(default=1, init=False)

    def __attrs_post_init__(self) -> None:
        if self.output in self.input:
            raise ValueError("output is one of input")


def with_required(definitions: tuple[str, ...]) -> list[str]:
    return [*{text.partition("=")[0]: text for text in ("input=logs", "output=out", *definitions)}.values()]


def build(*definitions: str, **layers: Any) -> Any:
    return build_settings(Settings, read_layers(Settings, definitions=with_required(definitions), **layers))


def problems(*definitions: str, **layers: Any) -> list[Any]:
    try:
        build(*definitions, **layers)
    except ConfigErrors as error:
        return list(error.errors)
    except (BadValue, UnknownSetting, MissingSetting, ConflictingSettings) as error:
        return [error]
    return []


def test_types_defaults_and_converters() -> None:
    settings = build("size=1KiB", "lower=ABC", "hidden=7", "free=[1]")
    assert settings == Settings(["logs"], "out", size=1024, lower="abc", hidden=7, free=[1])


def test_what_is_missing_unknown_or_wrong_is_reported_together() -> None:
    with pytest.raises(ConfigErrors) as caught:
        build_settings(Settings, read_layers(Settings, definitions=["outptu=x", "size=big", "pairs=3"]))
    assert [(type(error), getattr(error, "key", "")) for error in caught.value.errors] == [
        (UnknownSetting, "outptu"),
        (BadValue, "size"),
        (MissingSetting, "input"),
        (MissingSetting, "output"),
        (BadValue, "pairs"),
    ]


def test_one_problem_is_raised_itself() -> None:
    (error,) = problems("pairs=3")
    assert (error.key, error.value, error.reason, error.origin) == ("pairs", "'3'", "3 is odd", "-D")


def test_a_wrong_value_that_a_higher_layer_replaces_does_no_harm() -> None:
    assert build("size=2KiB", environment={"DAGFLOW_SIZE": "wrong"}).size == 2048


def test_a_missing_setting_is_a_key_error_that_tells_type_and_doc() -> None:
    with pytest.raises(KeyError) as caught:
        build_settings(Settings, read_layers(Settings, definitions=["output=x"]))
    error = caught.value
    assert isinstance(error, MissingSetting)
    assert (error.key, error.type, error.doc) == ("input", "list[str]", "files or directories")


def test_rules_between_fields_name_the_settings() -> None:
    (error,) = problems("input=out")
    assert isinstance(error, ConflictingSettings)
    assert error.reason == "output is one of input"
    assert error.given == ("input = ['out'] (-D)", "output = 'out' (-D)")


def test_nested_objects_are_made_of_their_parts() -> None:
    settings = build("database.host=h", environment={"DAGFLOW_DATABASE__PORT": "7"})
    assert settings.database == Database("h", 7)


def test_nested_objects_that_are_there_keep_what_is_not_named() -> None:
    assert build("backup.port=9").backup == Database("backup", 9)
    assert build("backup={port = 9}").backup == Database("backup", 9)
    assert Settings(["a"], "b").backup == Database("backup")  # the default itself is untouched


def test_parts_of_nested_objects_are_checked() -> None:
    missing, unknown, bad = problems("database.port=1", "backup.prot=1", "backup.port=0")
    assert isinstance(missing, MissingSetting)
    assert (missing.key, missing.doc) == ("database.host", "where the database runs")
    assert "did you mean `backup.port`?" in unknown.message()
    assert (bad.key, bad.reason) == ("backup.port", "'port' must be >= 1: 0")
    (single,) = problems("prefix.x=1")
    assert single.message() == "there is no setting `prefix.x` (-D)\n  `prefix` is a single value, nothing lies below it"


def test_tables_merge_and_an_empty_one_empties() -> None:
    code = {"labels": {"a": 1, "b": 1}}
    assert build("labels.b=2", "labels={c = 3}", code=code).labels == {"a": 1, "b": 2, "c": 3}
    assert build("labels={}", "labels.d=4", code=code).labels == {"d": 4}
    assert build("labels.with.dots=1").labels == {"with.dots": 1}
    assert build("free.a.b=x", "free.a.c=[1]").free == {"a": {"b": "x", "c": [1]}}


def test_none_replaces_a_whole_object() -> None:
    assert build("database=none", code={"database": {"host": "h"}}).database is None
    assert build("database=none", "database.host=h").database == Database("h")


def test_what_only_code_can_give() -> None:
    assert build(code={"function": str.upper}).function("a") == "A"
    (error,) = problems("function=upper")
    assert error.expected == "a value of type Callable[[str], str], which only code can give"
    (error,) = problems("elsewhere=x")
    assert error.expected == "a value of type Elsewhere, which only code can give, or none"
    assert build("elsewhere=none").elsewhere is None


def test_what_is_no_argument_cannot_be_set() -> None:
    (error,) = problems("computed=3")
    assert isinstance(error, UnknownSetting)


def test_a_settings_object_of_code_is_taken_as_it_is() -> None:
    given = Settings(["a"], "b", size=5)
    assert build_settings(Settings, read_layers(Settings, code=given)) is given
    changed = build_settings(Settings, read_layers(Settings, code=given, definitions=["size=6"]))
    assert changed == Settings(["a"], "b", size=6)
    assert given.size == 5
    assert build_settings(None, read_layers(code=given)) is given


def test_a_settings_object_of_another_class_is_refused() -> None:
    with pytest.raises(BadValue, match="expected: a Settings, or a mapping"):
        build_settings(Settings, read_layers(Settings, code=Database("h")))


def test_secrets_never_appear() -> None:
    @attrs.define
    class WithSecrets:
        password: Secret = attrs.field(validator=attrs.validators.max_len(3))
        tokens: list[Secret] = attrs.field(factory=list)
        database: Database | None = None

        def __attrs_post_init__(self) -> None:
            if self.password:
                raise ValueError(f"password {self.password} is not allowed")

    def message(*definitions: str) -> str:
        with pytest.raises((BadValue, ConfigErrors, ConflictingSettings)) as caught:
            build_settings(WithSecrets, read_layers(WithSecrets, definitions=definitions))
        assert "hunter2" not in repr(caught.value) + repr(vars(caught.value))
        return str(caught.value)

    assert message("password=hunter2") == "`password` cannot be *** (-D)\n  because: the check of this setting refuses it"
    assert "`tokens` cannot be ***" in message("password=abc", 'tokens=["hunter2", 1]')
    assert "`tokens` cannot be ***" in message("password=abc", "tokens=[hunter2]")
    assert "`database` cannot be ***" in message("password=abc", 'database={password = "hunter2", host = 1')
    assert message("password=abc") == "settings that contradict each other: password *** is not allowed\n  password = *** (-D)"


def test_classes_that_cannot_hold_settings() -> None:
    class Plain:
        input: str

    @attrs.define
    class Reserved:
        spark: str = ""

    with pytest.raises(NotASettingsClass):
        build_settings(Plain, read_layers())
    with pytest.raises(NotASettingsClass):
        read_layers(Plain)
    with pytest.raises(ReservedSettingName):
        read_layers(Reserved)


def test_without_a_class_conf_is_a_mapping() -> None:
    layers = read_layers(
        code={"a": 1, "t": {"u": 2}},
        environment={"DAGFLOW_B": "x", "DAGFLOW_A": "2", "DAGFLOW_RUNNER": "local"},
        definitions=["list=[1]", "text=8", 'table={x = "y"}', "password=hunter2"],
    )
    conf = build_settings(None, layers)
    assert dict(conf) == {"a": "2", "t.u": 2, "b": "x", "list": [1], "text": "8", "table.x": "y", "password": "hunter2"}
    with pytest.raises(MissingSetting, match="the setting `inptu` is missing"):
        conf["inptu"]
    assert conf.get("inptu") is None
    with pytest.raises(AttributeError, match=r'conf\.a: the application has no class of its settings.* or write conf\["a"\]'):
        _ = conf.a
    assert copy.deepcopy(conf)["a"] == "2"
    assert "hunter2" not in repr(conf)
    with pytest.raises(BadValue):
        build_settings(None, read_layers(definitions=["x=[a"]))


def test_run_settings_are_checked() -> None:
    assert build_run_settings(read_layers()) == RunSettings()
    with pytest.raises(ConfigErrors) as caught:
        build_run_settings(read_layers(definitions=["runner=sprak", "window=0s", "windows_in_flight=0", "run.widow=1"]))
    assert [error.message().splitlines()[0] for error in caught.value.errors] == [
        "there is no setting `run.widow` (-D)",
        "`runner` cannot be 'sprak' (-D)",
        "`window` cannot be '0s' (-D)",
        "`windows_in_flight` cannot be '0' (-D)",
    ]
    assert build_run_settings(read_layers(definitions=["lock_lease=10min"])).lock_lease == 600.0
    for given in ("500ms", "0"):
        with pytest.raises(BadValue, match="must be a second or more"):
            build_run_settings(read_layers(definitions=[f"lock_lease={given}"]))
    with pytest.raises(ConflictingSettings) as conflicting:
        build_run_settings(read_layers(definitions=["master=local[2]", "name=x"], options={"remote": "sc://h"}))
    assert conflicting.value.given == ("master = 'local[2]' (-D)", "run.remote = 'sc://h' (--remote)")


def test_every_setting_of_the_run_is_documented() -> None:
    assert list(field_docs(RunSettings)) == [a.name for a in attrs.fields(RunSettings)]


def test_docs_of_fields_are_read_from_where_they_stand() -> None:
    assert field_docs(Settings) == {"input": "files or directories"}
    assert field_docs(Database) == {"host": "where the database runs"}

    @attrs.define
    class Child(Database):  # type: ignore[misc]
        more: int = attrs.field(default=1, metadata={"doc": "from metadata"})  # not this
        lint: int = 1  # pragma: no cover

    assert field_docs(Child) == {"host": "where the database runs", "more": "from metadata"}
    assert field_docs(attrs.make_class("Made", ["x"])) == {}


def test_the_room_loads_nothing_heavy() -> None:
    heavy = "{'cattrs', 'click', 'networkx', 'pyarrow', 'pyspark', 'fsspec', 'tomllib', 'decimal', 'json'}"
    code = f"import sys; before = set(sys.modules); import dagflow.config; print({heavy} & (set(sys.modules) - before))"
    root = pathlib.Path(dagflow.config.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "set()"
