"""The address of Spark when a run does not name one: the order of precedence. No test starts Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.errors import AddressUnknown
from dagflow.spark.connection import starting
from dagflow.spark.connection.address import DEFAULT_MASTER, Address, Given, address, checked, outside_settings


@pytest.fixture
def defaults(tmp_path: Path) -> Path:
    """A spark-defaults.conf, in the forms that Java reads."""
    path = tmp_path / "spark-defaults.conf"
    path.write_text(
        "# a comment\n\nspark.master   spark://defaults:7077\nspark.speculation=true\n  spark.driver.memory : 3g \nother.key 1\n"
        "spark.driver.extraJavaOptions -Da=b -Dc=d\nspark.empty\n"
    )
    return path


def test_the_file_of_defaults(defaults: Path) -> None:
    found = outside_settings({"SPARK_CONF_DIR": str(defaults.parent)})
    assert found == {
        "spark.master": Given("spark://defaults:7077", f"{defaults}:3"),
        "spark.speculation": Given("true", f"{defaults}:4"),
        "spark.driver.memory": Given("3g", f"{defaults}:5"),
        "spark.driver.extraJavaOptions": Given("-Da=b -Dc=d", f"{defaults}:7"),
    }


def test_the_home_of_spark_has_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master yarn")
    assert outside_settings({"SPARK_HOME": str(tmp_path)})["spark.master"].value == "yarn"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("--master spark://a:1 pyspark-shell", {"spark.master": "spark://a:1"}),
        ("--master=spark://a:1 --conf spark.master=spark://b:2 pyspark-shell", {"spark.master": "spark://a:1"}),
        ("--conf 'spark.master=yarn' -c spark.a='b c' pyspark-shell", {"spark.master": "yarn", "spark.a": "b c"}),
        ("--driver-memory 4g --name x pyspark-shell", {"spark.driver.memory": "4g"}),
        ("--remote sc://here pyspark-shell", {"spark.remote": "sc://here"}),
        ("--master", {"spark.master": ""}),
        ("'open", {}),
    ],
)
def test_the_arguments_of_pyspark(arguments: str, found: dict[str, str], tmp_path: Path) -> None:
    settings = outside_settings({"PYSPARK_SUBMIT_ARGS": arguments, "SPARK_CONF_DIR": str(tmp_path)})
    assert {key: given.value for key, given in settings.items()} == found
    assert {given.origin for given in settings.values()} <= {"env PYSPARK_SUBMIT_ARGS"}


def test_a_file_of_properties_takes_the_place_of_the_defaults(defaults: Path, tmp_path: Path) -> None:
    other = tmp_path / "mine.conf"
    other.write_text("spark.master yarn\n")
    environ = {"PYSPARK_SUBMIT_ARGS": f"--properties-file {other} pyspark-shell", "SPARK_CONF_DIR": str(defaults.parent)}
    assert outside_settings(environ) == {"spark.master": Given("yarn", f"{other}:1")}


def test_each_layer_goes_before_the_one_below(defaults: Path) -> None:
    environ = {"SPARK_CONF_DIR": str(defaults.parent)}

    def taken(master: str | None = None, remote: str | None = None, conf: dict[str, str] | None = None) -> Address:
        return address(master, remote, conf or {}, outside_settings(environ))

    assert address(None, None, {}, outside_settings({"SPARK_CONF_DIR": "/nowhere"})) == Address(DEFAULT_MASTER, "default")
    assert taken() == Address("spark://defaults:7077", f"{defaults}:3")
    environ["PYSPARK_SUBMIT_ARGS"] = "--master spark://arguments:7077 pyspark-shell"
    assert taken() == Address("spark://arguments:7077", "env PYSPARK_SUBMIT_ARGS")
    environ["SPARK_REMOTE"] = "sc://environment"
    assert taken() == Address("sc://environment", "env SPARK_REMOTE", "remote")
    assert taken(conf={"spark.master": "yarn"}) == Address("yarn", "run")
    assert taken(master="local[2]") == Address("local[2]", "run")
    assert taken(remote="sc://mine") == Address("sc://mine", "run", "remote")


def test_our_defaults_give_way_to_settings_from_outside(defaults: Path) -> None:
    outside = outside_settings({"SPARK_CONF_DIR": str(defaults.parent)})
    settings = starting.settings_at_start("local[2]", {"spark.ui.enabled": "false"}, outside, "/quiet")
    assert settings.keys().isdisjoint({"spark.speculation", "spark.driver.memory", "spark.master"})
    assert settings["spark.driver.extraJavaOptions"] == "-Dlog4j2.configurationFile=file:/quiet -Da=b -Dc=d"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.sql.adaptive.enabled"] == "false"
    assert starting.settings_at_start("local[2]", {"spark.driver.memory": "9g"}, outside, "/quiet")["spark.driver.memory"] == "9g"


def test_looking_loads_no_pyspark() -> None:
    look = "from dagflow.spark.connection.session import address_of; address_of(None, None, {})"
    code = f"import sys; {look}; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("locl[2]", "it is not a master"),
        ("local[2", "it is not a master"),
        ("local[0]", "it is not a master"),
        ("mesos://a:1", "it is not a master"),
        ("127.0.0.1:7077", "it is not a master"),
        ("sc://a:1", "it is not a master"),
        ("spark://a:99999", "'99999' is not a port"),
        ("spark://a:1,b:x", "'x' is not a port"),
    ],
)
def test_what_is_no_master(value: str, reason: str) -> None:
    with pytest.raises(AddressUnknown) as caught:
        checked(Address(value, "env PYSPARK_SUBMIT_ARGS"))
    assert str(caught.value).startswith(
        f"Spark cannot run at '{value}' (env PYSPARK_SUBMIT_ARGS): {reason}\n  help: a master is "
    )
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("value", ["http://a:1", "a:15002", "spark://a:1", "sc://a:port", "sc://[::1]:70000"])
def test_what_is_no_server(value: str) -> None:
    with pytest.raises(AddressUnknown):
        checked(Address(value, "run", "remote"))


@pytest.mark.parametrize("value", ["sc://a", "sc://a:65535/;token=b,c:d", "sc://[::1]:1", "local", "local[2, 4]"])
def test_servers(value: str) -> None:
    assert checked(Address(value, "run", "remote")).value == value
