"""Spark's JVM, started before the application is loaded. Both take a second or more, and neither needs the other.

A launch does this only if its settings leave no doubt: the runner is Spark, the master is local, and the session is this
launch's own. The plan is not known yet, so the JVM is one for quick starts. If the plan needs another, a new one replaces it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from dagflow.spark.connection.address import Given, address, checked, outside_settings
from dagflow.spark.connection.links import is_local
from dagflow.spark.connection.starting import environment_of_jvm, quick_start, quiet_file, settings_at_start
from dagflow.spark.errors import SparkNotStarted
from dagflow.spark.jvm.class_archive import spark_home
from dagflow.spark.jvm.options import DriverJvm

_LENGTH = struct.Struct("!i")
_LOOK_EVERY = 0.01  # seconds between looks for the JVM's port


def _for_any_operators(jvm: DriverJvm) -> DriverJvm:
    return attrs.evolve(jvm, preload=(), runs_queries=True)


@attrs.frozen
class _Needs:
    """All that decides how the JVM starts."""

    master: str
    conf: Mapping[str, str]
    outside: Mapping[str, Given]
    jvm: DriverJvm = attrs.field(converter=_for_any_operators)


@attrs.define(eq=False)
class JvmAhead:
    """A JVM that is starting, or waits for pyspark to connect to it. `settings` are those of its session."""

    settings: dict[str, Any]
    _needs: _Needs
    _process: subprocess.Popen[bytes]
    _port_file: Path
    _files: contextlib.ExitStack
    _is_adopted: bool = False

    def adopted(self, master: str, conf: Mapping[str, str], outside: Mapping[str, Given], jvm: DriverJvm) -> bool:
        """Make this the JVM of pyspark in this process. Return False if it has ended, or if the session needs another one.

        Raises SparkNotStarted if it was killed, by Ctrl-C say: then no other JVM may start.
        """
        if self._is_adopted or _Needs(master, conf, outside, jvm) != self._needs:
            return False
        with contextlib.suppress(OSError, ValueError, struct.error):
            _connect(self._process, *self._wait())
            self._is_adopted = True
            self._files.close()
        if not self._is_adopted and (self._process.poll() or 0) < 0:
            raise SparkNotStarted(master, "its JVM was killed", "if the system ran out of memory, lower spark.driver.memory")
        return self._is_adopted

    def _wait(self) -> tuple[int, str]:
        """Return the port and the secret that the JVM has written. Raises OSError if the JVM has ended."""
        while not self._port_file.is_file():
            if self._process.poll() is not None:
                raise ChildProcessError("the JVM has ended")
            time.sleep(_LOOK_EVERY)
        data = self._port_file.read_bytes()
        (port,), (length,) = _LENGTH.unpack_from(data), _LENGTH.unpack_from(data, _LENGTH.size)
        start = 2 * _LENGTH.size
        return port, data[start : start + length].decode()

    def close(self) -> None:
        """End the JVM, unless pyspark has adopted it."""
        if self._is_adopted:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._files.close()


def start_ahead(master: str | None, remote: str | None, conf: Mapping[str, str], jvm: DriverJvm) -> JvmAhead | None:
    """Start the JVM of a session without waiting for it. Return None if it may not be needed, or cannot start. Never raises."""
    if "pyspark" in sys.modules or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    with contextlib.suppress(Exception):  # the session says why
        outside = outside_settings()
        wanted = checked(address(master or conf.get("spark.master"), remote, conf, outside))
        home = spark_home(os.environ)
        if wanted.kind == "master" and is_local(wanted.value) and home is not None and os.name == "posix":
            return _started(home, _Needs(wanted.value, dict(conf), outside, jvm))
    return None


def _started(home: Path, needs: _Needs) -> JvmAhead:
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(quiet_file())
        port_file = Path(file).with_name("port")
        where = needs.master, needs.conf, needs.outside
        with environment_of_jvm(*where), quick_start(needs.jvm, *where) as options:
            settings = settings_at_start(*where, file, options)
            arguments = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
            submitted = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
            process = subprocess.Popen(
                [str(home / "bin" / "spark-submit"), "--master", needs.master, *arguments, *submitted],
                stdin=subprocess.PIPE,  # the JVM ends when it closes
                env={**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(port_file)},
                process_group=0,  # Ctrl-C is for the launch; and the launcher's processes end together
            )
        return JvmAhead(settings, needs, process, port_file, stack.pop_all())


def _connect(process: subprocess.Popen[bytes], port: int, secret: str) -> None:
    """Connect pyspark to a JVM of its own, as it would to the one that has started this process."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    with _variables(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    SparkContext._ensure_initialized(gateway=gateway)


@contextlib.contextmanager
def _variables(**values: str) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
