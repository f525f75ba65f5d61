"""The start of the fork server. It imports nothing of dagflow, so that a command can start the server before all else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import attrs

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from dagflow.local.fork_server import main; main(int(sys.argv[1]))"
_STDERR = 2
SINGLE_THREADED = {
    # Of numpy's and Arrow's pools: with one thread, none is started. And a process for each core is enough to use them all.
    "OMP_NUM_THREADS": "1",
    # Arrow's jemalloc returns memory in the background, even where Arrow uses another allocator.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The variables that keep libraries from starting threads when they are imported. What the user has set comes first."""


@attrs.define(eq=False)
class ServerProcess:
    """The process of the fork server, and this end of its control socket: the server ends when it is closed.

    `is_prepared`: it may have forked.
    """

    popen: subprocess.Popen[bytes]
    control: socket.socket
    is_prepared: bool = False

    def close(self) -> None:
        """End the server. It kills all worker processes first."""
        self.control.close()
        if not self.is_prepared:
            self.popen.kill()  # it is still importing: a mistake in the application is shown at once
        try:
            self.popen.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.popen.kill()  # on Linux, its worker processes end with it
            self.popen.wait()


def boot() -> ServerProcess:
    """Start the server, and do not wait: it imports what tasks need while the launch plans its first window."""
    ours, theirs = socket.socketpair()
    with theirs:
        popen = subprocess.Popen(
            # -P: what lies in the current folder must not take the place of modules
            [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,  # standard output is the report's
            env={**SINGLE_THREADED, **os.environ},
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for the launch
        )
    return ServerProcess(popen, ours)
