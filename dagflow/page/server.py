"""The page of a run, served live on this machine: read-only, on the loopback address, to browsers that use a name of it."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from dagflow.errors import DagflowError
from dagflow.page.document import live_html, policy
from dagflow.page.errors import NoRun, PortInUse
from dagflow.page.run.data import RunReader

HOST = "127.0.0.1"
PORT = 8321


class RunServer:
    """Serves the page of a run until `close`. `url`: where it is.

    Rows are traced once for each state of the run: when no launch is running, or one has just begun.
    """

    def __init__(self, place: str, port: int = PORT) -> None:
        self._reader = RunReader(place)
        self._lock = threading.Lock()
        self._rows: list[Any] = []
        self._traced: Any = None
        handler = type("_BoundHandler", (_Handler,), {"run": self})
        try:
            self._server = _Server((HOST, port), handler)
        except (OSError, OverflowError) as error:
            raise PortInUse(port, str(getattr(error, "strerror", None) or error)) from error
        self.url = f"http://{HOST}:{self._server.server_address[1]}/"

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


class _Handler(BaseHTTPRequestHandler):
    run: ClassVar[RunServer]
    server_version = "dagflow"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer with the page, or its data."""
        if not self._is_local():
            self._send(403, b"this page is served to its own machine only\n", "text/plain; charset=utf-8")
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
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
