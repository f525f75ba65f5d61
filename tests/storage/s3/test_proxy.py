"""The proxy does to requests what tests ask for: tried with a server of a few lines."""

from __future__ import annotations

import http.client
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.storage.s3.proxy import Fault, Proxy, Request


class Objects(ThreadingHTTPServer):
    """Keeps what is put, and shows the names of all of it for `/bucket`."""

    daemon_threads = True

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Objects

    def log_message(self, *arguments: object) -> None:
        pass

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("If-None-Match") == "*" and self.path in self.server.objects:
            self.answer(412)
        else:
            self.server.objects[self.path] = data
            self.answer(200)

    def do_GET(self) -> None:
        if self.path.startswith("/bucket?"):
            self.answer(200, " ".join(sorted(self.server.objects)).encode())
        elif self.path in self.server.objects:
            self.answer(200, self.server.objects[self.path])
        else:
            self.answer(404)

    do_HEAD = do_GET  # noqa: N815  # the name that the base class looks for

    def answer(self, status: int, data: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Objects]:
    with Objects() as served:
        threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield served
        served.shutdown()


@pytest.fixture
def proxy(server: Objects) -> Iterator[Proxy]:
    with Proxy(f"http://127.0.0.1:{server.server_port}") as made:
        yield made


def ask(proxy: Proxy, method: str, path: str, data: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(proxy.url).netloc)
    try:
        connection.request(method, path, data or None, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def first(fault: Fault) -> Callable[[Request], Fault | None]:
    return lambda request: fault if request.number == 0 else None


def test_requests_pass_and_are_counted(proxy: Proxy) -> None:
    assert ask(proxy, "PUT", "/bucket/a", b"one") == (200, b"")
    assert ask(proxy, "PUT", "/bucket/a", b"two", If_None_Match="*") == (412, b"")
    assert ask(proxy, "GET", "/bucket/a") == (200, b"one")
    assert ask(proxy, "HEAD", "/bucket/a") == (200, b"")
    assert ask(proxy, "GET", "/bucket?list-type=2&prefix=a") == (200, b"/bucket/a")
    assert dict(proxy.counts()) == {"put": 1, "create": 1, "get": 1, "head": 1, "list": 1}
    assert proxy.requests[0].key == "a"
    assert proxy.requests[4].query == {"list-type": "2", "prefix": "a"}


@pytest.mark.parametrize(("fault", "is_done"), [(Fault.UNSENT, False), (Fault.LOST, True)])
def test_a_connection_ends_before_or_after_the_request_has_worked(
    proxy: Proxy, server: Objects, fault: Fault, is_done: bool
) -> None:
    proxy.schedule = first(fault)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ask(proxy, "PUT", "/bucket/a", b"one")
    assert ("/bucket/a" in server.objects) is is_done
    assert ask(proxy, "PUT", "/bucket/b", b"one")[0] == 200


@pytest.mark.parametrize(("fault", "status"), [(Fault.SLOW_DOWN, 503), (Fault.CONFLICT, 409)])
def test_a_refusal_does_not_reach_the_server(proxy: Proxy, server: Objects, fault: Fault, status: int) -> None:
    proxy.schedule = first(fault)
    assert ask(proxy, "PUT", "/bucket/a", b"one", If_None_Match="*")[0] == status
    assert server.objects == {}
    assert ask(proxy, "PUT", "/bucket/a", b"one", If_None_Match="*")[0] == 200


def test_a_listing_may_be_old(proxy: Proxy) -> None:
    listing = "/bucket?list-type=2"
    assert ask(proxy, "GET", listing) == (200, b"")
    ask(proxy, "PUT", "/bucket/a", b"one")
    proxy.schedule = lambda request: Fault.STALE
    assert ask(proxy, "GET", listing) == (200, b"")
    proxy.schedule = lambda request: None
    assert ask(proxy, "GET", listing) == (200, b"/bucket/a")


def test_conditions_may_be_dropped(proxy: Proxy, server: Objects) -> None:
    proxy.schedule = lambda request: Fault.UNCONDITIONAL
    for data in (b"one", b"two"):
        assert ask(proxy, "PUT", "/bucket/a", data, If_None_Match="*")[0] == 200
    assert server.objects == {"/bucket/a": b"two"}


def test_a_client_is_killed_at_one_of_its_requests(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[Any] = []
    monkeypatch.setattr("tests.storage.s3.proxy.os.kill", lambda *arguments: killed.append(arguments[0]))
    assert ask(proxy, "POST", "/-/kill?pid=17&at=1&after=1")[0] == 200
    assert ask(proxy, "PUT", "/bucket/a", b"one")[0] == 200
    assert killed == []
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ask(proxy, "PUT", "/bucket/b", b"one")
    assert killed == [17]
    assert ask(proxy, "GET", "/bucket/b")[0] == 200
