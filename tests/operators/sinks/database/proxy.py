"""A proxy between psycopg and a server that loses connections at COMMIT."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import attrs

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


@attrs.define
class Proxy:
    """Forwards bytes. The COMMITs of these numbers are lost: the statement itself, or the answer of the server to it."""

    server: str
    loses: Literal["statement", "answer"]
    numbers: frozenset[int]
    seen: int = 0
    lost: int = 0
    port: int = 0
    _open: set[socket.socket] = attrs.field(factory=set, init=False)

    def serve(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def cut(self) -> int:
        """Close all connections, and return how many there were."""
        clients = list(self._open)
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        return len(clients)

    def _connect(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):  # a server may be down
            server.connect(self.server)
            self._open.add(client)
            try:
                self._forward(client, server)
            finally:
                self._open.discard(client)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        lost = threading.Event()
        back = threading.Thread(target=self._pump, args=(server, client, lost), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if data == COMMIT:
                    self.seen += 1
                    if self.seen - 1 in self.numbers:
                        self.lost += 1
                        if self.loses == "answer":
                            lost.set()
                            server.sendall(data)
                            server.shutdown(socket.SHUT_WR)  # the answer has come when the server hangs up
                            back.join()
                        else:
                            server.shutdown(socket.SHUT_RDWR)
                        return
                server.sendall(data)

    def _pump(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not lost.is_set():
                    client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(database: Any, loses: Literal["statement", "answer"], *numbers: int) -> Iterator[tuple[Proxy, Any]]:
    """A proxy before a server, and the database behind it."""
    place, _, query = database.address.rpartition("?host=")
    listening = socket.create_server(("127.0.0.1", 0))
    made = Proxy(str(Path(query, ".s.PGSQL.5432")), loses, frozenset(numbers), port=listening.getsockname()[1])
    thread = threading.Thread(target=made.serve, args=(listening,), daemon=True)
    thread.start()
    address = place.replace("@/", f"@127.0.0.1:{made.port}/")
    try:
        yield made, attrs.evolve(database, address=address)
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)
