"""The words of errors, whole, as users see them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

import dagflow.config.errors as errors
from dagflow.config import Bytes, Secret, apply_operators, apply_ports, build_run_settings, build_settings, read_layers
from dagflow.errors import ConfigError


@attrs.define
class Settings:
    input: list[str]  # files or directories
    output: str
    prefix: str = "."
    size: Bytes = 1
    password: Secret = attrs.field(default="", validator=attrs.validators.max_len(3))


@attrs.define
class Context:
    length: int = 1


@attrs.define
class Reader:
    reader_context: Context = attrs.field(factory=Context)
    min_readers: int = 1
    max_readers: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    on_error: Literal["fail", "skip", "route"] = "fail"


class Plain:
    __module__ = "app"


@attrs.define
class Reserved:
    spark: str = ""


def with_required(definitions: tuple[str, ...]) -> list[str]:
    return [*{text.partition("=")[0]: text for text in ("input=logs", "output=out", *definitions)}.values()]


def settings(*definitions: str, **more: Any) -> Any:
    return build_settings(Settings, read_layers(Settings, definitions=with_required(definitions), **more))


def operators(*definitions: str, **more: Any) -> Any:
    return apply_operators({"reader": Reader(), "keep": Context()}, read_layers(definitions=definitions, **more))


def ports(*definitions: str) -> Any:
    return apply_ports(
        {"reader": ["input", "messages"]}, {"partition_parallel": bool | None}, read_layers(definitions=definitions)
    )


def conf(text: str) -> Any:
    Path("app.toml").write_text(text)
    return read_layers(Settings, conf_files=["app.toml"])


def message(run: Callable[[], Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        run()
    error = caught.value
    assert (error.exit_code, isinstance(error, ValueError)) == (2, True)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
    return f"{error.code} {error}"


GOLDEN: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown setting": (
        lambda: settings("outptu=x"),
        """\
DF201 there is no setting `outptu` (-D)
  did you mean `output`?
  settings of the application: input, output, prefix, size, password""",
    ),
    "unknown setting of the environment": (
        lambda: settings(environment={"DAGFLOW_PREFX": "x"}),
        """\
DF201 there is no setting `prefx` (env DAGFLOW_PREFX)
  did you mean `DAGFLOW_PREFIX`?
  settings of the application: input, output, prefix, size, password""",
    ),
    "unknown setting of the run": (
        lambda: build_run_settings(read_layers(definitions=["run.widow=1s"])),
        """\
DF201 there is no setting `run.widow` (-D)
  did you mean `run.window`?""",
    ),
    "nothing below a single value": (
        lambda: settings("prefix.length=1"),
        """\
DF201 there is no setting `prefix.length` (-D)
  `prefix` is a single value, nothing lies below it""",
    ),
    "unknown operator": (
        lambda: operators("operator.raeder.max_readers=8"),
        """\
DF202 there is no operator `raeder` for `operator.raeder.max_readers` (-D)
  did you mean `operator.reader.max_readers`?
  operators: reader, keep""",
    ),
    "unknown operator of the environment": (
        lambda: operators(environment={"DAGFLOW_OPERATOR__RAEDER__MAX_READERS": "8"}),
        """\
DF202 there is no operator `raeder` for `operator.raeder.max_readers` (env DAGFLOW_OPERATOR__RAEDER__MAX_READERS)
  did you mean `DAGFLOW_OPERATOR__READER__MAX_READERS`?
  operators: reader, keep""",
    ),
    "no operator in the key": (
        lambda: operators("operator=8"),
        """\
DF202 `operator` does not name an operator (-D)
  operators: reader, keep""",
    ),
    "unknown property": (
        lambda: operators("operator.reader.max_reader=8"),
        """\
DF203 operator `reader` (Reader) has no property `max_reader` (-D)
  did you mean `operator.reader.max_readers`?
  its properties: reader_context, min_readers, max_readers, on_error""",
    ),
    "unknown part of a property": (
        lambda: operators("operator.reader.reader_context.lenght=8"),
        """\
DF203 `reader_context` of operator `reader` (Reader) has no property `lenght` (-D)
  did you mean `operator.reader.reader_context.length`?
  its properties: length""",
    ),
    "unknown property of any operator": (
        lambda: operators("operator.*.max_reader=8"),
        """\
DF203 no operator has a property `max_reader`, as `operator.*.max_reader` asks for (-D)
  did you mean `operator.*.max_readers`?""",
    ),
    "no property in the key": (
        lambda: operators("operator.reader=8"),
        """\
DF203 `operator.reader` does not name a property of operator `reader` (Reader) (-D)
  its properties: reader_context, min_readers, max_readers, on_error""",
    ),
    "unknown port": (
        lambda: ports("operator.reader.port.mesages.partition_parallel=true"),
        """\
DF204 operator `reader` has no port `mesages`, as `operator.reader.port.mesages.partition_parallel` asks for (-D)
  did you mean `operator.reader.port.messages.partition_parallel`?
  ports: input, messages""",
    ),
    "unknown port of any operator": (
        lambda: ports("operator.*.port.mesages.partition_parallel=true"),
        """\
DF204 no operator has a port `mesages`, as `operator.*.port.mesages.partition_parallel` asks for (-D)
  did you mean `operator.*.port.messages.partition_parallel`?
  ports: input, messages""",
    ),
    "unknown attribute of a port": (
        lambda: ports("operator.reader.port.input.partition_paralel=true"),
        """\
DF205 ports have no attribute `partition_paralel`, as `operator.reader.port.input.partition_paralel` asks for (-D)
  did you mean `operator.reader.port.input.partition_parallel`?
  attributes of ports: partition_parallel""",
    ),
    "a value of the wrong type": (
        lambda: operators("operator.reader.max_readers=many"),
        """\
DF206 `operator.reader.max_readers` cannot be 'many' (-D)
  expected: an integer, such as 8""",
    ),
    "a value of the wrong type in a file": (
        lambda: build_settings(Settings, conf('input = "logs"\n# more\noutput = 1\n')),
        """\
DF206 `output` cannot be 1 (app.toml:3)
  expected: text""",
    ),
    "a value that a validator refuses": (
        lambda: operators("operator.reader.max_readers=0"),
        """\
DF206 `operator.reader.max_readers` cannot be '0' (-D)
  because: 'max_readers' must be >= 1: 0""",
    ),
    "a value that is not among the choices": (
        lambda: operators("operator.*.on_error=ignore"),
        """\
DF206 `operator.*.on_error` cannot be 'ignore' (-D)
  expected: one of fail, skip, route""",
    ),
    "a size without a unit that is one": (
        lambda: settings("size=64M"),
        """\
DF206 `size` cannot be '64M' (-D)
  because: `M` is not a unit: write MB (a power of 1000) or MiB (a power of 1024)
  expected: a size in bytes, such as 4096, 64MiB or 1GB""",
    ),
    "a list that is not TOML": (
        lambda: settings("input=[a, b]"),
        """\
DF206 `input` cannot be '[a, b]' (-D)
  because: what begins with [ must be a TOML array, with text in quotes (Invalid value)
  expected: a list, each element text""",
    ),
    "a secret": (
        lambda: settings("password=hunter2"),
        """\
DF206 `password` cannot be *** (-D)
  because: the check of this setting refuses it""",
    ),
    "a missing setting": (
        lambda: build_settings(Settings, read_layers(Settings, definitions=["output=out"])),
        """\
DF207 the setting `input` is missing
  what it is: files or directories
  its type: list[str] (a list, each element text)
  give it: -D input=…, or DAGFLOW_INPUT=… in the environment, or in a --conf file""",
    ),
    "a missing setting without a class": (
        lambda: build_settings(None, read_layers())["input"],
        """\
DF207 the setting `input` is missing
  give it: -D input=…, or DAGFLOW_INPUT=… in the environment, or in a --conf file""",
    ),
    "settings in conflict": (
        lambda: build_run_settings(read_layers(definitions=["master=local[2]"], options={"remote": "sc://here"})),
        """\
DF208 settings that contradict each other: master and remote exclude each other
  master = 'local[2]' (-D)
  run.remote = 'sc://here' (--remote)""",
    ),
    "an address for metrics without a port": (
        lambda: build_run_settings(read_layers(options={"metrics_address": "0.0.0.0"})),
        """\
DF208 settings that contradict each other: metrics_address does nothing without metrics_port; add --metrics-port 9464, or leave it out
  run.metrics_address = '0.0.0.0' (--metrics-address)""",
    ),
    "a file that is not TOML": (
        lambda: conf('input = "logs"\noutput = out\n'),
        """\
DF209 app.toml:2: this is not TOML: Invalid value (column 10)
  text stands in quotes: output = "out"; so does `*`: [operator."*"]; lists are like ["a", "b"]""",
    ),
    "a file that ends too early": (
        lambda: conf('input = [\n  "logs"\n'),
        """\
DF209 app.toml:2: this is not TOML: Unclosed array
  text stands in quotes: output = "out"; so does `*`: [operator."*"]; lists are like ["a", "b"]""",
    ),
    "a file that is not there": (
        lambda: read_layers(conf_files=["none.toml"]),
        """\
DF210 the configuration file `none.toml` cannot be read: no such file or directory""",
    ),
    "a definition without a value": (
        lambda: read_layers(definitions=["output"]),
        """\
DF211 -D output has no `=` and no value
  write -D output=VALUE""",
    ),
    "a definition without a key": (
        lambda: read_layers(definitions=["=out"]),
        """\
DF211 -D has no key before `=`
  write -D KEY=VALUE, for example -D output=out""",
    ),
    "a key with two values": (
        lambda: read_layers(Settings, definitions=["prefix=a", "prefix=b"]),
        """\
DF214 `prefix` has 2 values (-D): 'a', 'b'
  otherwise leave the others out""",
    ),
    "a class without attrs": (
        lambda: read_layers(Plain),
        """\
DF212 `Plain` cannot hold settings: it is not an attrs class (app)
  write @attrs.define above `class Plain`""",
    ),
    "a reserved name": (
        lambda: read_layers(Reserved),
        """\
DF213 `Reserved.spark` is a reserved name: keys that begin with `spark` have another meaning
  give it another name, for example `spark_name`""",
    ),
    "several": (
        lambda: build_settings(Settings, read_layers(Settings, definitions=["outptu=out", "input=logs", "size=big"])),
        """\
DF299 3 problems in the configuration
1. [DF201] there is no setting `outptu` (-D)
     did you mean `output`?
     settings of the application: input, output, prefix, size, password
2. [DF206] `size` cannot be 'big' (-D)
     expected: a size in bytes, such as 4096, 64MiB or 1GB
3. [DF207] the setting `output` is missing
     its type: str (text)
     give it: -D output=…, or DAGFLOW_OUTPUT=… in the environment, or in a --conf file""",
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_messages(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run, expected = GOLDEN[case]
    assert message(run) == expected


def test_every_class_has_a_code_of_its_own_and_a_golden_message() -> None:
    bases = (ConfigError, errors.UnknownKey)
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, ConfigError) and c not in bases]
    codes = [c.code for c in classes]
    assert len(set(codes)) == len(codes)
    assert set(codes) == {text.split()[0] for _, text in GOLDEN.values()}
    page = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text(encoding="utf-8")
    for cls in classes:
        assert f"### {cls.code} {cls.__name__}\n" in page
