"""A Spark of its own that speculates, in a process of its own: Spark speculates on clusters only, and a process has one Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.skew.work import Input, run

MASTER = "local-cluster[2,1,1024]"
CONF = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.ui.enabled": "false",
}


class Speculating:
    """The process, as its parent sees it; started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, made: Input, output: Path, readers: int) -> float:
        """Runs the application once; seconds."""
        if self._process is None:
            command = [sys.executable, "-m", "benchmarks.skew.peer"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = [str(made.folder), made.block_size, str(output), readers, made.counts]
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the Spark that speculates has ended")
        return float(answer)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.communicate(timeout=60)
            self._process = None


def serve() -> None:
    """Runs what standard input names, line by line."""
    from dagflow.spark.connection.session import open_session

    session, _ = open_session("skew", MASTER, None, CONF)
    for line in sys.stdin:
        source, block_size, output, readers, counts = json.loads(line)
        began = time.perf_counter()
        run(Path(source), block_size, Path(output), readers=readers, rebalance="off", counts=counts)
        print(time.perf_counter() - began, flush=True)
    session.stop()


if __name__ == "__main__":
    serve()
