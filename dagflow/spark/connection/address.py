"""The address of Spark when the run itself does not say: an active session, spark-submit, the environment, spark-defaults.conf.

Starts nothing, and imports pyspark only in a process that spark-submit has started.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Literal

import attrs

from dagflow.spark.errors import AddressUnknown

DEFAULT_MASTER = "local[*,4]"  # with retries: one killed Python worker must not fail a window
DEFAULT = "default"
SUBMITTED = "spark-submit"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(\s*,\s*\d+)?\])?")
_MASTER = re.compile(rf"{_LOCAL.pattern}|local-cluster\[.*\]|yarn|k8s://.+|spark://.+")
_HOST = re.compile(r"(\[[^]]+\]|[^\[:]+)(:(\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?")
_OPTIONS = {  # of spark-submit, that are settings under another name
    "--master": "spark.master",
    "--remote": "spark.remote",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}


@attrs.frozen
class Given:
    """A setting of Spark's from outside the run, and its origin."""

    value: str
    origin: str


@attrs.frozen
class Address:
    """A master, or the address of a Spark Connect server, and its origin."""

    value: str
    origin: str
    kind: Literal["master", "remote"] = "master"

    @property
    def is_given(self) -> bool:
        """Return whether something outside the run names it."""
        return self.origin not in (DEFAULT, "run")


def address(master: str | None, remote: str | None, conf: Mapping[str, str], outside: Mapping[str, Given]) -> Address:
    """The address that a run takes when no session is active; the run's own settings go before those from outside.

    >>> address(None, None, {}, {})
    Address(value='local[*,4]', origin='default', kind='master')
    >>> address(None, None, {}, {"spark.master": Given("yarn", "spark-submit")})
    Address(value='yarn', origin='spark-submit', kind='master')
    """
    if wanted := remote or conf.get("spark.remote"):
        return Address(wanted, "run", "remote")
    if wanted := master or conf.get("spark.master"):
        return Address(wanted, "run")
    if given := outside.get("spark.remote"):
        return Address(given.value, given.origin, "remote")
    if given := outside.get("spark.master"):
        return Address(given.value, given.origin)
    return Address(DEFAULT_MASTER, DEFAULT)


def checked(address: Address) -> Address:
    """The address, when it has the form of one. Raises AddressUnknown.

    >>> [checked(Address(value, "run")).value for value in ("local", "local[*,4]", "local-cluster[2,1,1024]", "spark://a:1,b")]
    ['local', 'local[*,4]', 'local-cluster[2,1,1024]', 'spark://a:1,b']
    """
    reason, value = "", address.value
    if address.kind == "remote" and not value.startswith("sc://") and not _LOCAL.fullmatch(value):
        reason = "it does not begin with sc://"
    elif address.kind == "master" and not _MASTER.fullmatch(value):
        reason = "it is not a master"
    else:
        port = next((one.rpartition(":")[2] for one in _hosts(value) if not _HOST.fullmatch(one)), None)
        if port is not None:
            reason = f"{port!r} is not a port"
    if reason:
        raise AddressUnknown(value, address.origin, reason)
    return address


def _hosts(value: str) -> list[str]:
    scheme, _, rest = value.partition("://")
    return rest.partition("/")[0].split(",") if scheme in ("spark", "sc") else []


def outside_settings(environ: Mapping[str, str] | None = None) -> dict[str, Given]:
    """Spark's settings that come from outside the run, by key.

    In a process of spark-submit those of its JVM, which knows all others. Elsewhere, the later before the earlier:
    spark-defaults.conf, PYSPARK_SUBMIT_ARGS, SPARK_REMOTE. A master and a remote exclude each other: the one that goes
    before the other is there alone.
    """
    environ = os.environ if environ is None else environ
    if "PYSPARK_GATEWAY_PORT" in environ:
        return {key: Given(value, SUBMITTED) for key, value in _of_gateway().items()}
    outside, file = _of_submit_arguments(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    path = file or _defaults_file(environ)
    layers = [_of_file(path) if path else {}, outside]
    if remote := environ.get("SPARK_REMOTE"):
        layers.append({"spark.remote": Given(remote, "env SPARK_REMOTE")})
    settings: dict[str, Given] = {}
    for layer in layers:
        if layer.keys() & {"spark.master", "spark.remote"}:
            settings.pop("spark.master", None)
            settings.pop("spark.remote", None)
        settings |= layer
    return settings


def _of_gateway() -> dict[str, str]:
    """The settings of the JVM that has started this process."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _of_submit_arguments(text: str) -> tuple[dict[str, Given], str]:
    """The settings in the arguments of a spark-submit, and the file of properties that they name, or ""."""
    try:
        words = shlex.split(text)
    except ValueError:  # an open quote: pyspark refuses it when it starts Spark
        return {}, ""
    in_conf: dict[str, str] = {}
    named: dict[str, str] = {}
    file = ""
    while words:
        option, separator, value = words.pop(0).partition("=")
        if option not in (*_OPTIONS, "--conf", "-c", "--properties-file"):
            continue
        if not separator:
            value = words.pop(0) if words else ""
        if option in _OPTIONS:
            named[_OPTIONS[option]] = value
        elif option == "--properties-file":
            file = value
        else:
            key, _, setting = value.partition("=")
            in_conf[key.strip()] = setting
    return {key: Given(value, "env PYSPARK_SUBMIT_ARGS") for key, value in {**in_conf, **named}.items()}, file


def _defaults_file(environ: Mapping[str, str]) -> str:
    folder = environ.get("SPARK_CONF_DIR", "")
    if not folder:
        home = environ.get("SPARK_HOME", "")
        if not home:
            pyspark = sys.modules.get("pyspark") or importlib.util.find_spec("pyspark")
            origin = getattr(pyspark, "origin", None) or getattr(pyspark, "__file__", None)
            home = os.path.dirname(origin) if origin else ""
        folder = os.path.join(home, "conf")
    return os.path.join(folder, "spark-defaults.conf")


def _of_file(path: str) -> dict[str, Given]:
    """The settings in a file of properties, as Java reads it; none when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    settings: dict[str, Given] = {}
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*([^#!\s=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*$", line)
        if match is not None and match[1].startswith("spark.") and match[2]:
            settings[match[1]] = Given(match[2], f"{path}:{number}")
    return settings
