"""The schema of configuration files takes what launches take, and finds the mistakes that they refuse."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dagflow.cli.main import main

ROOT = Path(__file__).parents[4]
APPS = ["access_log", "line_filter", "orders", "word_count"]


def schema_of(app: str, *given: str) -> Any:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["config", app, *given, "--schema"]) == 0
    return json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def line_filter() -> jsonschema.Draft7Validator:
    schema = schema_of(str(ROOT / "apps/line_filter"), "-D", "input=in", "-D", "output=out")
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("app", APPS)
def test_it_is_a_schema(app: str) -> None:
    schema = schema_of(str(ROOT / "apps" / app), "-D", "input=in", "-D", "output=out")
    jsonschema.Draft7Validator.check_schema(schema)
    assert {"run", "operator", "spark"} < {*schema["properties"]}


RIGHT = [
    (ROOT / "apps/line_filter/python_sources.toml").read_text(),
    'input = "a"\nprefix = "#"\nwindow = "2s"\nslots = "none"\nevery = 5',
    'input = ["a", "b"]\n[run]\nwindow = 2.5\n[spark.driver]\nmemory = "2g"',
    '[operator.splitter]\nblock_size = "64MiB"\nblocks_threshold = 3\n[operator.splitter.scanner]\nrecursive = false',
    "[operator.reader]\nmax_readers = 4\npartitioner = 3\n[operator.reader.port.messages]\npartition_parallel = true",
    "[operator.'*']\nmax_readers = 4",
]
WRONG = {
    'inputs = "a"': "'inputs' was unexpected",
    "windows_in_flight = 'two'": "'two' is not of type 'integer'",
    'durability = "disk"': "'disk' is not one of",
    "[operator.reader]\nmax_reader = 4": "'max_reader' was unexpected",
    "[operator.readr]\nmax_readers = 4": "'readr' was unexpected",
    "[operator.splitter.scanner]\nrecursive = 1": "1 is not of type 'boolean'",
}


@pytest.mark.parametrize("text", RIGHT)
def test_what_a_launch_takes_is_right(line_filter: jsonschema.Draft7Validator, text: str) -> None:
    line_filter.validate(tomllib.loads(text))


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_are_found(line_filter: jsonschema.Draft7Validator, text: str) -> None:
    assert WRONG[text] in " ".join(each.message for each in line_filter.iter_errors(tomllib.loads(text)))


def test_properties_have_their_descriptions_and_values(line_filter: jsonschema.Draft7Validator) -> None:
    reader = line_filter.schema["properties"]["operator"]["properties"]["reader"]["properties"]
    assert reader["max_readers"]["default"] == 16
    assert reader["on_error"]["enum"] == ["fail", "skip", "route"]
    assert all(reader[name]["description"] for name in ("min_readers", "max_readers", "on_error"))


@pytest.mark.parametrize("app", ["settings", "none"])
def test_modules_and_secrets(app: str, tmp_path: Path) -> None:
    annotation = ": Settings" if app == "settings" else ""
    (tmp_path / "app.py").write_text(
        "import attrs\n"
        "from dagflow.config import Secret\n"
        "from operators import Console, FileInput\n"
        "@attrs.define\n"
        "class Settings:\n"
        "    input: str = 'in'  # the folder\n"
        "    password: Secret = 'hunter2'\n"
        f"def populate_dag(dag, conf{annotation}):\n"
        "    lines = dag.add_module('lines', FileInput('in'))\n"
        "    lines.messages.to(Console(), name='show')\n"
    )
    schema = schema_of(str(tmp_path / "app.py"))
    assert "hunter2" not in json.dumps(schema)
    validator = jsonschema.Draft7Validator(schema)
    validator.validate(tomllib.loads("[operator.lines.reader]\nmax_readers = 2\n[operator.lines.splitter]\nblock_size = 100"))
    assert not validator.is_valid(tomllib.loads("[operator.lines.reader]\nmax_reader = 2"))
    assert validator.is_valid({"anything": 1}) == (app == "none")
    if app == "settings":
        assert schema["properties"]["input"] == {"type": "string", "description": "the folder", "default": "in"}
