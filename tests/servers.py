"""Servers as processes of the tests, on 127.0.0.1. They end when the tests end, however these end."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

SLOW = 120.0  # seconds for a server to come up on a machine that is busy with other things


def free_port() -> int:
    """Return a port at which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def process(log: Path, *command: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process as long as this context, and no longer than the tests. `env` None: the environment of the tests.

    On Linux it ends with the thread that has started it: call this in the main thread.
    """
    with log.open("ab") as out:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
        running = subprocess.Popen(command, env=env, preexec_fn=_die_with_parent, **pipes)  # noqa: PLW1509  # one call
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(15)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def listening(port: int, running: subprocess.Popen[bytes], log: Path, pause: float = 0.1) -> None:
    """Wait until a server listens."""
    deadline = time.monotonic() + SLOW
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if running.poll() is not None:
            break
        time.sleep(pause)
    raise AssertionError(f"no server listens at {port}: {log.read_text(errors='replace')[-2000:]}")
