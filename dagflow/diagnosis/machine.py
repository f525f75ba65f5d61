"""Checks of the machine: folders, disk, memory, network."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping

from dagflow.diagnosis.check import Check
from dagflow.render.words import size
from dagflow.storage.local.cache import lasting

LOW_DISK, NO_DISK = 1 << 30, 100 << 20
"""Free bytes below which a folder gets a warning, or is a problem."""
LOW_MEMORY = 3 << 29
"""Available bytes that a Spark on this machine should have: its JVM takes 1 GiB, each Python worker 100 MiB."""
_DNS_SECONDS = 1.0


def folders(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check that files can be written to the folders that a launch uses."""
    cache = lasting(environ)
    yield _folder("current folder", os.getcwd(), "cd to a folder of your own")
    yield _folder("temporary files", tempfile.gettempdir(), "export TMPDIR=/path/to/a/folder")
    if cache is None:
        yield Check("cache", "warning", "neither XDG_CACHE_HOME nor HOME names a folder", 'export XDG_CACHE_HOME="$PWD/.cache"')
    else:
        yield _folder("cache", str(cache), "export XDG_CACHE_HOME=/path/to/a/folder")


def _folder(name: str, path: str, elsewhere: str) -> Check:
    place = path
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)  # it will be made there
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        return Check(name, "problem", f"{path} cannot be written: {error.strerror or error}", elsewhere)
    if free < LOW_DISK:
        status = "problem" if free < NO_DISK else "warning"
        return Check(name, status, f"{path} has only {size(free)} of free space", f"df -h {shlex.quote(place)}")  # type: ignore[arg-type]
    return Check(name, "ok", f"{path}, {size(free)} free")


def memory(path: str = "/proc/meminfo") -> Iterator[Check]:
    """Check the available memory, where the system tells it."""
    try:
        with open(path, encoding="ascii") as file:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in file if line.endswith("kB\n")}
    except (OSError, ValueError):
        return
    total, available = kib.get("MemTotal", 0) << 10, kib.get("MemAvailable", 0) << 10
    text = f"{size(available)} of {size(total)} available"
    if available < LOW_MEMORY:
        yield Check("memory", "warning", f"{text}, which is little for Spark", "dagflow launch APP --runner local")
    else:
        yield Check("memory", "ok", text)


def network() -> Iterator[Check]:
    """Check that the loopback interface works, and that the name of this host is known."""
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
        yield Check("loopback", "ok", "a server can listen on 127.0.0.1")
    except OSError as error:
        yield Check(
            "loopback", "problem", f"127.0.0.1 cannot be listened on: {error.strerror or error}", "sudo ip link set lo up"
        )
    host, resolved = socket.gethostname(), threading.Event()

    def resolve() -> None:
        try:
            socket.gethostbyname(host)
        except OSError:
            return
        resolved.set()

    threading.Thread(target=resolve, name="dagflow-doctor-dns", daemon=True).start()
    if resolved.wait(_DNS_SECONDS):
        yield Check("host name", "ok", f"{host} has an address")
    else:
        remedy = f"echo '127.0.0.1 {host}' | sudo tee -a /etc/hosts"
        yield Check("host name", "warning", f"{host} has no address, which Spark on a cluster needs", remedy)
