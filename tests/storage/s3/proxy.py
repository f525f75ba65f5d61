"""A proxy between an S3 client and its server. It counts requests, and does to them what a test asks for."""

from __future__ import annotations

import enum
import http
import http.client
import os
import re
import signal
import socket
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import attrs

from tests.storage.s3.listings import History

_HOP_BY_HOP = frozenset({"connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})


class Fault(enum.Enum):
    """A fault that a request can meet."""

    UNSENT = "the connection ends before the server has the request"
    LOST = "the server does what was asked for, and its answer is lost"
    SLOW_DOWN = "503 SlowDown instead of an answer"
    DENIED = "403 AccessDenied instead of an answer"
    NOT_IMPLEMENTED = "501 NotImplemented instead of an answer"
    CONFLICT = "409 ConditionalRequestConflict to a conditional write, which is not done"
    SLOW = "the answer takes a while"
    STALE = "a listing as it was when it was asked for before"
    UNCONDITIONAL = "the conditions of the request are dropped, as a server does that does not know them"


@attrs.frozen
class Request:
    """A request as S3 clients send it. `kind` is the name of the operation; `range`: the bytes that are asked for, or ""."""

    number: int
    method: str
    path: str
    query: dict[str, str]
    is_conditional: bool
    is_copy: bool
    range: str = ""

    @property
    def key(self) -> str:
        """The name of the object, without its bucket."""
        return self.path.lstrip("/").partition("/")[2]

    @property
    def kind(self) -> str:
        """`create` is a PUT that must not replace anything; `list` is of objects."""
        query = self.query
        if "uploads" in query:
            return "begin upload" if self.method == "POST" else "list uploads"
        if "uploadId" in query:
            return {"PUT": "upload part", "POST": "complete upload", "DELETE": "abort upload"}.get(self.method, self.method)
        if "delete" in query:
            return "delete many"
        if self.method == "GET" and not self.key:
            return "list"
        if self.method == "PUT":
            return "create" if self.is_conditional else "copy" if self.is_copy else "put"
        return self.method.lower()


Schedule = Callable[[Request], Fault | None]


@attrs.define
class Death:
    """The death of a client: it is killed at a request, before the server has that request, or once it has answered it."""

    pid: int
    left: int
    is_after: bool


class Proxy:
    """Passes requests on to a server, on a free port of this machine. A context manager.

    Attributes:
        schedule: called with each request; returns its fault, None for none.
        requests: all requests so far.
        delay: seconds that a slow answer takes.
        lag: called with each listing that is asked for, if it is set. Returns by how many writes it is too old.
    """

    def __init__(self, server: str, schedule: Schedule = lambda request: None, *, delay: float = 0.05) -> None:
        self.server = urllib.parse.urlsplit(server).netloc
        self.schedule = schedule
        self.delay = delay
        self.lag: Callable[[Request], int] | None = None
        self._histories: dict[str, History] = {}
        self._history_lock = threading.Lock()
        self.requests: list[Request] = []
        self.listings: dict[str, tuple[http.client.HTTPResponse, bytes]] = {}
        self._death: Death | None = None
        self._lock = threading.Lock()
        self._served = _Server(self)

    @property
    def url(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self._served.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._served.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._served.shutdown()
        self._served.server_close()

    def counts(self) -> Counter[str]:
        """The number of requests of each kind so far."""
        return Counter(request.kind for request in self.requests)

    def forget(self) -> None:
        """Count from zero."""
        self.requests.clear()

    def kill(self, pid: int, at: int, *, is_after: bool) -> None:
        """Kill a process at its request number `at`, counted from 0 from now on."""
        self._death = Death(pid, at, is_after)

    def spare(self) -> None:
        """Kill nothing: the process has ended by itself."""
        self._death = None

    def history(self, request: Request) -> History:
        """The history of the bucket of a request."""
        bucket = request.path.strip("/").partition("/")[0]
        with self._history_lock:
            return self._histories.setdefault(bucket, History(self.server, bucket))

    def note(self, method: str, path: str, query: str, headers: Any) -> Request:
        """Return the request, which has a number now."""
        arguments = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        is_conditional = headers.get("If-None-Match") is not None and method in ("PUT", "POST")
        is_copy = headers.get("x-amz-copy-source") is not None
        with self._lock:
            number, path, wanted = len(self.requests), urllib.parse.unquote(path), headers.get("Range", "")
            request = Request(number, method, path, arguments, is_conditional, is_copy, wanted)
            self.requests.append(request)
        return request

    def strikes(self) -> Death | None:
        """Return the death that is due at this request."""
        with self._lock:
            death = self._death
            if death is None:
                return None
            death.left -= 1
            if death.left >= 0:
                return None
            self._death = None
            return death


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        super().finish()
        if self.upstream is not None:
            self.upstream.close()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        """Answer at once: the client sends its body after that."""
        answer = super().handle_expect_100()
        self.wfile.flush()
        return answer

    def _serve(self) -> None:
        proxy = self.server.proxy
        body = self._body()
        path, _, query = self.path.partition("?")
        if path == "/-/kill":
            arguments = dict(urllib.parse.parse_qsl(query))
            proxy.kill(int(arguments["pid"]), int(arguments["at"]), is_after=arguments["after"] == "1")
            self._answer(200, [], b"")
            return
        if path == "/-/spare":
            proxy.spare()
            self._answer(200, [], b"")
            return
        request = proxy.note(self.command, path, query, self.headers)
        fault = proxy.schedule(request)
        death = proxy.strikes()
        if death is not None and not death.is_after:
            self._die(death)
        elif fault is Fault.UNSENT:
            self._hang_up()
        elif fault is Fault.SLOW_DOWN:
            self._refuse(503, "SlowDown", "Please reduce your request rate.")
        elif fault is Fault.DENIED:
            self._refuse(403, "AccessDenied", "Access Denied.")
        elif fault is Fault.NOT_IMPLEMENTED:
            self._refuse(501, "NotImplemented", "This server does not know uploads.")
        elif fault is Fault.CONFLICT and request.is_conditional:
            self._refuse(409, "ConditionalRequestConflict", "A conflicting operation is under way. Try again.")
        else:
            self._pass_on(request, body, fault, death)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  # the names that the base class looks for

    def _pass_on(self, request: Request, body: bytes, fault: Fault | None, death: Death | None) -> None:
        proxy = self.server.proxy
        if fault is Fault.SLOW:
            threading.Event().wait(proxy.delay)
        history = None if proxy.lag is None else proxy.history(request)  # from before this write
        before = proxy.listings.get(self.path) if request.kind == "list" else None
        if fault is Fault.STALE and before is not None:
            response, data = before
        else:
            response, data = self._ask(body, with_conditions=fault is not Fault.UNCONDITIONAL)
        if history is not None and proxy.lag is not None:
            if request.kind == "list" and response.status == http.HTTPStatus.OK:
                data = history.answer(request.query, proxy.lag(request))
            elif request.method not in ("GET", "HEAD"):
                many = (key.decode() for key in re.findall(rb"<Key>([^<]*)</Key>", body)) if request.kind == "delete many" else ()
                history.note(filter(None, (request.key, *many)))
        if request.kind == "list":
            proxy.listings[self.path] = (response, data)
        if death is not None:
            self._die(death)
        elif fault is Fault.LOST:
            self._hang_up()
        else:
            self._answer(response.status, response.getheaders(), data)

    def _ask(self, body: bytes, *, with_conditions: bool) -> tuple[http.client.HTTPResponse, bytes]:
        conditions = () if with_conditions else ("if-match", "if-none-match")
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in (*_HOP_BY_HOP, "content-length", *conditions)
        }
        if self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        if self.upstream is None:
            self.upstream = http.client.HTTPConnection(self.server.proxy.server)
        try:
            self.upstream.request(self.command, self.path, body or None, headers)
            response = self.upstream.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was kept open, and the server closed it
            self.upstream.close()
            self.upstream.request(self.command, self.path, body or None, headers)
            response = self.upstream.getresponse()
        return response, response.read()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        length = None
        for name, value in headers:
            if name.lower() == "content-length":
                length = value
            elif name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", (length or "0") if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def _refuse(self, status: int, code: str, message: str) -> None:
        text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
        self._answer(status, [("Content-Type", "application/xml")], text.encode())

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _die(self, death: Death) -> None:
        os.kill(death.pid, signal.SIGKILL)
        self._hang_up()
