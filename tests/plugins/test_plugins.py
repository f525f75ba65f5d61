"""Packages that extend dagflow: found when they are asked for, and harmless when they are broken."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.cli.main import main
from dagflow.plugins import FORMATS, GROUPS, PluginWarning, plugin_named, plugin_names, plugins
from dagflow.testing import run_operator, scan_table
from operators import ScanReader


@pytest.mark.usefixtures("temperature")
def test_the_package_of_the_how_to_is_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operators"]) == 0
    listed = capsys.readouterr().out.partition("From other packages\n")[2]
    assert re.findall(r"^  (\w+)", listed, re.MULTILINE)[:2] == ["Celsius", "station"]  # long texts go on in lines of their own
    assert "Convert temperatures from Fahrenheit. (dagflow-temperature 1.0)" in " ".join(listed.split())
    assert main(["operators", "Celsius"]) == 0
    text = capsys.readouterr().out
    assert "digits: int  default 1\n      how many digits after the point are kept." in text
    assert "from dagflow_temperature import Celsius" in text
    celsius = importlib.import_module("dagflow_temperature").Celsius
    assert run_operator(celsius(digits=0), {"input": [212.0]})["output"] == [100.0]


@pytest.mark.usefixtures("temperature")
def test_a_format_is_used_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("station;degrees\nlund;3\n")
    assert plugin_names(FORMATS) == ["station"]
    assert scan_table(ScanReader("station"), tmp_path / "a.csv").to_pylist() == [{"station": "lund", "degrees": 3}]
    with pytest.raises(ValueError, match=r"there is no format 'stations'. Did you mean 'station'?"):
        ScanReader("stations")


def test_a_broken_package_is_named_and_breaks_nothing_else(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("broken-one", "[dagflow.operators]\nGone = broken_one:Gone\n", broken_one="import not_installed_at_all\n")
    install("broken-two", "[dagflow.formats]\nodd = broken_two:odd\n", broken_two="odd = 3\n")
    install("whole", "[dagflow.sinks]\nWhole = whole:Whole\n", whole="class Whole:\n    '''Do nothing.'''\n")
    assert [(each.name, bool(each.problem)) for each in plugins(*GROUPS)] == [("Gone", True), ("odd", True), ("Whole", False)]
    assert main(["operators"]) == 0
    answer = capsys.readouterr()
    assert "Whole" in answer.out
    assert (
        "warning: broken-one 1.0 offers 'Gone', which cannot be used: ModuleNotFoundError: No module named 'not_installed"
        in answer.err
    )
    assert "warning: broken-two 1.0 offers 'odd', which cannot be used: broken_two:odd is not a class" in answer.err
    assert main(["operators", "--json"]) == 0
    assert [each["package"] for each in json.loads(capsys.readouterr().out)["broken"]] == ["broken-one 1.0", "broken-two 1.0"]
    with pytest.warns(PluginWarning, match="broken-two 1.0 offers 'odd'"), pytest.raises(ValueError, match="there is no format"):
        ScanReader("odd")
    assert plugin_named(FORMATS, "nothing") is None


def test_a_format_that_is_none_is_refused(install: Callable[..., None]) -> None:
    install("odd", "[dagflow.formats]\nodd = odd:Odd\n", odd="class Odd:\n    pass\n")
    with pytest.raises(ValueError, match=r"the class Odd, which does not derive from dagflow.scan.Format"):
        ScanReader("odd")


def test_formats_of_the_library_need_no_entry_points() -> None:
    code = (
        "import sys, operators; reader = operators.ScanReader('csv'); "
        "assert type(reader.format).__name__ == 'CsvFormat'; assert 'dagflow.plugins' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
