"""The page of a run, served live: read-only, on the loopback address to browsers that use a name of it, or to those with a token.

With a token, each request needs it: in the header `Authorization: Bearer TOKEN`, once in the query (`/?token=TOKEN`), which sets
a cookie, or in that cookie. Clients that are slow to ask or to read are disconnected, so that they cannot keep others out.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dagflow.errors import DagflowError
from dagflow.page.document import live_html, policy
from dagflow.page.errors import NoRun, PortInUse
from dagflow.page.run.data import RunReader

HOST = "127.0.0.1"
PORT = 8321
MAX_CLIENTS = 32
"""Connections at a time. Further ones are closed at once."""
REQUEST_SECONDS, ANSWER_SECONDS = 10.0, 30.0
"""The time that a client has to send a request, from its connection or its last answer on, and to take an answer."""


class RunServer:
    """Serves the page of a run until `close`. `url`: where it is, with the token if there is one.

    Rows are traced once for each state of the run: when no launch is running, or one has just begun.

    `token`: what each request needs; None: on the loopback address none, beyond it a new one.
    """

    def __init__(self, place: str, port: int = PORT, *, host: str = HOST, token: str | None = None) -> None:
        self.token = secrets.token_urlsafe(24) if token is None and not is_loopback(host) else token
        self._reader = RunReader(place)
        self._lock = threading.Lock()
        self._rows: list[Any] = []
        self._traced: Any = None
        handler = type("_BoundHandler", (_Handler,), {"run": self})
        try:
            self._server = _Server((host, port), handler)
        except (OSError, OverflowError) as error:
            raise PortInUse(port, str(getattr(error, "strerror", None) or error), host) from error
        self.cookie = f"dagflow-token-{self._server.server_address[1]}"  # browsers share cookies among the ports of a host
        query = "" if self.token is None else f"?token={quote(self.token)}"
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}/{query}"

    def serve(self) -> None:
        """Answer requests until `close` is called from another thread, or an exception such as KeyboardInterrupt comes."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """End serving and free the port."""
        self._server.server_close()

    def stop(self) -> None:
        """Let `serve` return. For other threads."""
        self._server.shutdown()

    def data(self) -> bytes:
        """Return the run as JSON. Before there is one, or after an error, return a sentence in `waiting`."""
        with self._lock:
            try:
                data = self._reader.data(rows=False)
                data["rows"] = self._sample(data)
            except NoRun:
                data = {"waiting": f"No run has written to {self._reader.place} yet. This page shows it as soon as one begins."}
            except (DagflowError, OSError) as error:
                data = {"waiting": f"The run cannot be read now: {error}"}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()

    def _sample(self, data: dict[str, Any]) -> list[Any]:
        """Return rows with their origins. They are traced anew when more was committed, at the end of a launch."""
        state = [data["run"]["launch"], data["run"]["status"], bool(data["run"]["decided"])]
        if data["run"]["status"] != "running":
            state.append(data["run"]["decided"])
        if state != self._traced:
            self._traced, self._rows = state, self._reader.rows()
        return self._rows


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.1", "example.org")]
    [True, True, True, False, False, False]
    """
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._clients = threading.BoundedSemaphore(MAX_CLIENTS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there are not too many already."""
        if self._clients.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for the next client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the client is gone, or was too slow."""


class _Handler(BaseHTTPRequestHandler):
    run: ClassVar[RunServer]
    server_version = "dagflow"
    sys_version = ""
    timeout = ANSWER_SECONDS

    def handle_one_request(self) -> None:
        """Answer a request. A client that takes longer to send it is disconnected, even if it sends a byte now and then."""
        deadline = threading.Timer(REQUEST_SECONDS, self._disconnect)
        deadline.daemon = True
        deadline.start()
        self._deadline = deadline
        try:
            super().handle_one_request()
        finally:
            deadline.cancel()

    def parse_request(self) -> bool:
        """Read the headers. Then the request has come as a whole."""
        is_whole = super().parse_request()
        self._deadline.cancel()
        return is_whole

    def _disconnect(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Answer with the page, or its data."""
        token = self.run.token
        if token is None and not self._is_local():
            self._send(403, b"this page is served to its own machine only\n", "text/plain; charset=utf-8")
        elif token is not None and not self._has_token(token):
            why = b"this page needs the token that `dagflow ui` has printed\n"
            self._send(401, why, "text/plain; charset=utf-8", {"WWW-Authenticate": "Bearer"})
        elif token is not None and urlsplit(self.path).query:  # the token goes from the address bar into a cookie
            cookie = f"{self.run.cookie}={quote(token)}; HttpOnly; SameSite=Lax; Path=/"
            path = "/" + urlsplit(self.path).path.lstrip("/")
            self._send(303, b"", "text/plain; charset=utf-8", {"Location": path, "Set-Cookie": cookie})
        elif self.path in ("/", "/index.html"):
            self._send(200, live_html().encode(), "text/html; charset=utf-8")
        elif self.path == "/data.json":
            self._data()
        else:
            self._send(404, b"there is no such page\n", "text/plain; charset=utf-8")

    def do_HEAD(self) -> None:
        """Answer as to GET, without the body."""
        self.do_GET()

    def _data(self) -> None:
        data = self.run.data()
        # `at` is the time of the answer: without it, the same state has the same tag
        tag = f'"{hashlib.sha256(data.partition(b",")[2].partition(b",")[2]).hexdigest()[:24]}"'
        if self.headers.get("If-None-Match") == tag:
            self.send_response(304)
            self.send_header("ETag", tag)
            self.end_headers()
            return
        self._send(200, data, "application/json; charset=utf-8", {"ETag": tag})

    def _has_token(self, token: str) -> bool:
        """Return whether the request has the token: in its header, its query, or its cookie."""
        kind, _, header = self.headers.get("Authorization", "").partition(" ")
        offered = [header.strip() if kind.lower() == "bearer" else "", *parse_qs(urlsplit(self.path).query).get("token", [])[:1]]
        with suppress(CookieError):
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
            offered += [unquote(cookies[self.run.cookie].value)] if self.run.cookie in cookies else []
        return any(hmac.compare_digest(each.encode("utf-8", "replace"), token.encode()) for each in offered)

    def _is_local(self) -> bool:
        """Return whether the header Host names this machine. Other names are refused, which prevents DNS rebinding."""
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return host in (HOST, "localhost")

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy(live=True) + "; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._write(body)

    def _write(self, body: bytes) -> None:
        """Send a body in pieces. A client that does not take it in time is disconnected."""
        end = time.monotonic() + ANSWER_SECONDS
        view = memoryview(body)
        while view:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the client is too slow")
            self.connection.settimeout(left)
            view = view[self.connection.send(view[:65536]) :]

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
