"""The sources of settings, and their precedence."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.config import Layers, Problems, Secret, Setting, build_run_settings, build_settings, read_layers, spark_conf
from dagflow.config.layers import conf_file, join_key, split_key
from dagflow.config.settings import assemble_settings
from dagflow.errors import BadConfFile, BadDefinition, BadValue, ConfFileMissing, ConfigErrors, RepeatedDefinition, UnknownSetting


@attrs.define
class Settings:
    alpha: str = "default"
    beta: str = "default"
    window: str = "default"


ORIGINS = ["code", "env", "one.toml", "two.toml", "-D"]  # lowest first


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> str:
        Path(name).write_text(text)
        return name

    return write


def layers_of(values: dict[str, dict[str, str]], folder: Path) -> tuple[Layers, dict[tuple[str, str], str]]:
    """The layers that hold `values` (layer → key → value), and the origin of each (layer, key)."""
    origins = {}
    for layer, given_values in values.items():
        for number, key in enumerate(given_values):
            file_line = f"{folder / layer}:{2 * number + 2}"
            origins[layer, key] = {"code": "code", "env": f"env DAGFLOW_{key.upper()}", "-D": "-D"}.get(layer, file_line)
    for name in ("one.toml", "two.toml"):
        (folder / name).write_text("".join(f'\n{key} = "{value}"\n' for key, value in values.get(name, {}).items()))
    layers = read_layers(
        Settings,
        code=values.get("code"),
        environment={f"DAGFLOW_{key.upper()}": value for key, value in values.get("env", {}).items()},
        conf_files=[folder / "one.toml", folder / "two.toml"],
        definitions=[f"{key}={value}" for key, value in values.get("-D", {}).items()],
    )
    return layers, origins


@given(
    st.dictionaries(
        st.sampled_from(ORIGINS), st.dictionaries(st.sampled_from(["alpha", "beta", "window"]), st.text("abc", min_size=1))
    )
)
def test_the_highest_layer_wins_and_says_where_it_comes_from(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, dict[str, str]]
) -> None:
    layers, origins = layers_of(values, tmp_path_factory.mktemp("conf"))
    settings, deciding = assemble_settings(Settings, layers)
    for key in ("alpha", "beta", "window"):
        highest = max((layer for layer in values if key in values[layer]), key=ORIGINS.index, default=None)
        if highest is None:
            assert getattr(settings, key) == "default"
            assert key not in deciding
        else:
            assert getattr(settings, key) == values[highest][key]
            assert deciding[key].origin == origins[highest, key]


def test_options_of_the_command_line_beat_everything() -> None:
    layers = read_layers(
        environment={"DAGFLOW_WINDOW": "1s", "DAGFLOW_PROGRESS": "plain", "DAGFLOW_MAX_WINDOWS": "4"},
        definitions=["window=2s", "run.max_windows=5"],
        options={"window": "3s", "fresh": True, "progress": None},
        run={"max_windows": 3, "durability": "process", "name": None},
    )
    run = build_run_settings(layers)
    assert (run.window, run.fresh, run.progress, run.max_windows, run.durability) == (3.0, True, "plain", 5, "process")
    origins = {setting.key: setting.origin for setting in layers.run() if setting.origin.startswith("--")}
    assert origins == {"run.window": "--window", "run.fresh": "--fresh"}


def test_two_definitions_of_a_key_are_refused_unless_they_agree() -> None:
    layers = read_layers(Settings, definitions=["alpha=1", "beta=2", "alpha=1"])
    assert build_settings(Settings, layers) == Settings(alpha="1", beta="2")
    with pytest.raises(RepeatedDefinition) as caught:
        read_layers(Settings, definitions=["alpha=1", "beta=2", " alpha=3"])
    assert (caught.value.key, caught.value.values, caught.value.as_list) == ("alpha", ("1", "3"), "")


@pytest.mark.parametrize(
    ("key", "values", "as_list"),
    [
        ("names", ("a", "b c"), '["a", "b c"]'),
        ("names", ('["a", "b"]', "c"), '["a", "b", "c"]'),
        ("numbers", ("1", "2"), "[1, 2]"),
        ("secrets", ("hunter", "2"), "[…, …]"),
        ("password", ("hunter", "2"), ""),
        ("operator.x.password", ("hunter", "2"), "[…, …]"),  # what it is, is known when there is a DAG
        ("unknown", ("a", "b"), '["a", "b"]'),
        ("runner", ("spark", "local"), ""),
        ("run.window", ("1s", "2s"), ""),
        ("spark.master", ("a", "b"), ""),
    ],
)
def test_the_list_that_was_meant_is_shown_and_no_secret_is(key: str, values: tuple[str, ...], as_list: str) -> None:
    @attrs.define
    class Lists:
        names: list[str]
        numbers: list[int]
        secrets: list[Secret]
        password: Secret

    with pytest.raises(RepeatedDefinition) as caught:
        read_layers(Lists, definitions=[f"{key}={value}" for value in values])
    error = caught.value
    assert error.as_list == as_list
    assert ("hunter" in str(error)) is False
    if as_list and "…" not in as_list and key in ("names", "numbers"):
        pasted = shlex.split(error.message().partition(": -D ")[2].partition("\n")[0])
        others = [f"{name}=1" for name in ("names", "numbers", "secrets", "password") if name != key]
        again = read_layers(Lists, definitions=[*pasted, *others])
        assert len(getattr(build_settings(Lists, again), key)) == as_list.count(",") + 1


def test_a_definition_is_split_at_its_first_equals_sign() -> None:
    layers = read_layers(Settings, definitions=["alpha= a=b ", " beta =", "window=x\ny"])
    assert build_settings(Settings, layers) == Settings(alpha=" a=b ", beta="", window="x\ny")


@pytest.mark.parametrize("text", ["alpha", "", "=x", " =x"])
def test_a_definition_needs_key_and_value(text: str) -> None:
    with pytest.raises(BadDefinition):
        read_layers(definitions=[text])


def test_each_part_of_dagflow_gets_its_own(write: Any) -> None:
    path = write(
        "all.toml",
        """
alpha = "a"
runner = "local"
"spark.executor.memory" = "2g"
"spark.sql.shuffle.partitions" = 4
"operator.keep.prefix" = "#"
[spark]
"ui.enabled" = false
[operator.reader]
max_readers = 8
reader_context.length = 4
[operator."*"]
on_error = "skip"
[run]
window = "2s"
""",
    )
    layers = read_layers(Settings, conf_files=[path])
    assert [(s.key, s.value, s.origin) for s in layers.application()] == [("alpha", "a", "all.toml:2")]
    assert [(s.key, s.value, s.origin) for s in layers.run()] == [
        ("runner", "local", "all.toml:3"),
        ("run.window", "2s", "all.toml:15"),
    ]
    assert [(s.key, s.value, s.origin) for s in layers.operators()] == [
        ("operator.keep.prefix", "#", "all.toml:6"),
        ("operator.reader.max_readers", 8, "all.toml:10"),
        ("operator.reader.reader_context.length", 4, "all.toml:11"),
        ("operator.*.on_error", "skip", "all.toml:13"),
    ]
    assert {key: (s.value, s.origin) for key, s in spark_conf(layers).items()} == {
        "spark.executor.memory": ("2g", "all.toml:4"),
        "spark.ui.enabled": ("false", "all.toml:8"),
        "spark.sql.shuffle.partitions": ("4", "all.toml:5"),
    }


def test_a_setting_of_the_application_goes_before_one_of_the_run() -> None:
    layers = read_layers(Settings, definitions=["window=left", "run.window=2s"])
    assert build_settings(Settings, layers).window == "left"
    assert build_run_settings(layers).window == 2.0


def test_names_of_the_environment_are_matched_regardless_of_case() -> None:
    environment = {
        "DAGFLOW_Alpha": "1",
        "DAGFLOW_RUN__WINDOW": "2s",
        "DAGFLOW_SPARK__EXECUTOR__MEMORY": "2g",
        "DAGFLOW_SPARK__DRIVER__maxResultSize": "1g",
        "DAGFLOW_OPERATOR__READER__MAX_READERS": "8",
        "OTHER": "x",
        "DAGFLOWALPHA": "x",
    }
    layers = read_layers(Settings, environment=environment)
    assert build_settings(Settings, layers) == Settings(alpha="1")
    assert build_run_settings(layers).window == 2.0
    assert {key: s.value for key, s in spark_conf(layers).items()} == {
        "spark.executor.memory": "2g",
        "spark.driver.maxResultSize": "1g",
    }
    assert [s.key for s in layers.operators()] == ["operator.reader.max_readers"]


def test_unknown_names_of_the_environment_are_errors() -> None:
    layers = read_layers(Settings, environment={"DAGFLOW_ALPA": "x"})
    with pytest.raises(UnknownSetting) as caught:
        build_settings(Settings, layers)
    assert caught.value.message().splitlines()[:2] == [
        "there is no setting `alpa` (env DAGFLOW_ALPA)",
        "  did you mean `DAGFLOW_ALPHA`?",
    ]


def test_code_gives_dotted_keys_or_nested_mappings() -> None:
    layers = read_layers(code={"operator.reader.max_readers": 8, "operator": {"keep": {"prefix": "#"}}, "alpha": "x"})
    assert [(s.key, s.value) for s in layers.operators()] == [("operator.reader.max_readers", 8), ("operator.keep.prefix", "#")]


def test_files_of_windows_editors(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbf# one\r\nalpha = 'x'\r\n")
    (setting,) = conf_file(str(tmp_path / "a.toml"))
    assert (setting.value, setting.origin) == ("x", f"{tmp_path}/a.toml:2")


@pytest.mark.parametrize(
    ("content", "reason", "line"),
    [
        (b"a = 1\nb = out\n", "Invalid value", 2),
        (b"a = 1\na = 2\n", "Cannot overwrite a value", 2),
        (b"a = [1,\n\n", "Invalid value", 1),
        (b"a = '\xff'", "byte 5 is not UTF-8", None),
        (b"a = " + b"9" * 5000, "", None),
    ],
)
def test_files_that_are_not_toml(tmp_path: Path, content: bytes, reason: str, line: int | None) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(BadConfFile) as caught:
        read_layers(conf_files=[path])
    assert caught.value.path == str(path)
    assert reason in caught.value.reason
    assert caught.value.line == line or not reason


def test_files_that_cannot_be_read_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("a =")
    with pytest.raises(ConfigErrors) as caught:
        read_layers(conf_files=[tmp_path / "none.toml", tmp_path / "bad.toml", tmp_path], definitions=["x"])
    assert [type(error) for error in caught.value.errors] == [ConfFileMissing, BadConfFile, ConfFileMissing, BadDefinition]


def test_spark_takes_plain_values_only() -> None:
    layers = read_layers(code={"spark.a": [1], "spark.b": 1.5})
    with pytest.raises(BadValue, match=r"`spark.a` cannot be a list \(code\)"):
        spark_conf(layers)
    with pytest.raises(BadValue, match="a longer key"):
        spark_conf(read_layers(definitions=["spark=1"]))


def test_values_of_settings_are_not_in_their_repr() -> None:
    assert repr(Setting("password", "hunter2", "-D", is_text=True)) == "Setting(key='password', origin='-D')"


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ('a."b.c"', ("a", "b.c")),
        ('"a.b".c', ("a.b", "c")),
        ("operator.*.x", ("operator", "*", "x")),
    ],
)
def test_keys_and_their_parts(key: str, path: tuple[str, ...]) -> None:
    assert split_key(key) == path
    assert join_key(path) == key


@given(st.text('ab."*', max_size=8))
def test_any_text_may_stand_for_a_key(key: str) -> None:
    layers = read_layers(Settings, definitions=[f"{key}x=1"])
    problems = Problems()
    for use in (lambda it: build_settings(Settings, it), spark_conf, build_run_settings):
        with problems:
            use(layers)
    assert all(error.message() for error in problems.errors)
