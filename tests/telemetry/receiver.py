"""A receiver of HTTP requests on the loopback address, which keeps their bodies."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs


@attrs.define
class Receiver:
    """The requests that were received, as path and body. `delay`: seconds before it answers; `status`: its answer."""

    url: str
    bodies: list[tuple[str, bytes]] = attrs.field(factory=list)
    delay: float = 0.0
    status: int = 200
    released: threading.Event = attrs.field(factory=threading.Event)


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """Receive until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.bodies.append((self.path, body))
            state.released.wait(state.delay)
            with contextlib.suppress(OSError):
                self.send_response(state.status)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    state = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.released.set()
        time.sleep(0)
        server.shutdown()
        server.server_close()
        thread.join()
