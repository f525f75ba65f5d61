"""A relay between clients and a broker that loses connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import attrs

from tests import servers


@attrs.define
class Relay:
    """Forwards bytes to a port of this machine, and back."""

    target: int
    port: int
    _open: set[socket.socket] = attrs.field(factory=set, init=False)

    def cut(self) -> int:
        """Close all connections at once: requests and answers on their way are lost. Return how many there were."""
        clients = list(self._open)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        return len(clients)

    def serve(self, listening: socket.socket) -> None:
        """Take connections until the socket is closed."""
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            self._open.add(client)
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
            self._open.discard(client)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relay(target: int) -> Iterator[Relay]:
    """Run a relay before a port, which need not be served yet."""
    port = servers.free_port()
    with socket.create_server(("127.0.0.1", port)) as listening:
        made = Relay(target, port)
        thread = threading.Thread(target=made.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            made.cut()
            thread.join(5)
