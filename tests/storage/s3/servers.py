"""Servers of object stores, each a process of its own on a free port of this machine."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

# One request at a time: moto looks whether a name exists and writes then, so of two threads both could win.
_MOTO = """
import os, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

application, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

def serial(environ, start_response):
    with one:
        return list(application(environ, start_response))

server = make_server("127.0.0.1", 0, serial, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()  # ends with the tests, however these end
os._exit(0)
"""


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """The server of `moto`, which keeps objects in memory. Yields its endpoint."""
    command = [sys.executable, "-c", _MOTO]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            assert port, "moto has not started"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()  # at once: connections that clients keep open are not waited for


@contextlib.contextmanager
def seaweedfs(weed: str, folder: Path) -> Iterator[str]:
    """A SeaweedFS server by its program, with its files in a folder. Yields its endpoint."""
    kinds = ("master", "volume", "filer", "s3")
    ports = _free_ports(2 * len(kinds))
    flags = [f"-{kind}.port={port}" for kind, port in zip(kinds, ports[: len(kinds)], strict=True)]
    flags += [f"-{kind}.port.grpc={port}" for kind, port in zip(kinds, ports[len(kinds) :], strict=True)]
    flags += ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # else two servers on a machine want the same ports
    limits = ["-volume.max=1000", "-master.volumeSizeLimitMB=64"]  # each bucket takes seven volumes
    command = [weed, "server", "-s3", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *flags, *limits]
    with open(folder / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            endpoint = f"http://127.0.0.1:{ports[kinds.index('s3')]}"
            while not _is_up(endpoint):
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield endpoint
        finally:
            process.kill()


@contextlib.contextmanager
def localbucket(folder: Path) -> Iterator[str]:
    """A `localbucket` server, which keeps objects as files in a folder, and ignores `If-Match`. Yields its endpoint."""
    (port,) = _free_ports(1)
    (folder / "data").mkdir()
    command = [sys.executable, "-m", "localbucket", str(folder / "data"), "--port", str(port)]
    with open(folder / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            while not _listens(port):
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@contextlib.contextmanager
def azurite(program: str, folder: Path) -> Iterator[str]:
    """Azurite by its program, with its blobs in a folder. Yields its endpoint."""
    (port,) = _free_ports(1)
    options = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]  # clients are newer than it is
    command = [program, *options, "--location", str(folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with open(folder / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            while not _listens(port):
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _is_up(endpoint: str) -> bool:
    try:
        return ask(endpoint, "PUT", "/trial")[0] in (200, 409)  # 409: it is there
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def ask(endpoint: str, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send a request whose signature is wrong, which no server here looks at; return the status and the body of its answer."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc)
    signed = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    try:
        connection.request(method, path, body or None, {"Authorization": signed})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
