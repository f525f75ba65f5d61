"""The driver's steps, measured in a process of its own: `python -m benchmarks.scale.driver '{"blocks": 1000, …}'` prints JSON."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from benchmarks import machine
from benchmarks.scale.bucket import OBJECTS, Requests, install
from benchmarks.scale.runner import AnsweringRunner
from dagflow import DAG, launch
from dagflow.runtime.events import Event, WindowDecided, WindowDone, WindowPlanned
from dagflow.runtime.stage.program import Job
from dagflow.storage import local_path
from operators import BlockReader, FileSplitterInput, RecordWriter

BLOCK = 1 << 20
FILES = 10
MB = 1_000_000
WINDOWS = 2
"""The windows of a run whose steps are measured: those of the last one, since the first one also begins the launch."""
STEPS = ("plan", "start", "decide", "follow")


@attrs.frozen
class Size:
    """The size of a run: its windows, the blocks and tasks of each, and where it writes (a folder, or `s3://…`)."""

    blocks: int
    tasks: int
    output: str
    windows: int = WINDOWS


@attrs.define
class Step:
    """The cost of a step of the driver: seconds of its own, requests, the most memory of the process meanwhile."""

    seconds: float
    requests: dict[str, int]
    in_turn: int
    at_once: int
    peak: int

    def waits(self, latency: float, together: int) -> float:
        """Return the seconds with the answers of an object store of that latency."""
        return self.seconds + Requests(in_turn=self.in_turn, at_once=self.at_once).seconds(latency, together)


@attrs.define
class Measured:
    """The figures of a run.

    Attributes:
        steps: of the last window.
        sizes: bytes of what the driver writes for it, and sends to Spark.
        every: windows and seconds and resident bytes since the launch, now and then.
    """

    steps: dict[str, Step] = attrs.field(factory=dict)
    sizes: dict[str, int] = attrs.field(factory=dict)
    every: list[tuple[int, float, int]] = attrs.field(factory=list)


class Watch:
    """Charges time, requests and memory to the steps of windows, by their events."""

    def __init__(self, runner: AnsweringRunner, every: int) -> None:
        self.measured = Measured()
        self._runner, self._every = runner, every
        self._began = time.process_time()
        self._in_runner = 0.0
        self._windows = 0
        self.mark()

    def mark(self) -> None:
        """Begin a step."""
        self._at, self._before = time.process_time(), OBJECTS.requests.copy()
        self._in_runner = self._runner.seconds
        if not self._every:
            machine.forget_peak(os.getpid())

    def ended(self, step: str) -> None:
        """End a step, and begin the next one."""
        requests = OBJECTS.requests - self._before
        seconds = time.process_time() - self._at - (self._runner.seconds - self._in_runner)
        peak = 0 if self._every else machine.memory(os.getpid(), "VmHWM")
        self.measured.steps[step] = Step(seconds, dict(requests.kinds), requests.in_turn, requests.at_once, peak)
        self.mark()

    def started(self, job: Job) -> None:
        """The tasks of a window go to the runner."""
        self.ended("start")
        if not self._every:
            specs = tuple(pickle.dumps(spec) for spec in job.tasks)
            self.measured.sizes |= {
                "task": max(map(len, specs)),
                "job": sum(map(len, specs)) + sum(map(len, job.programs.values())),
            }
        self.mark()

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, WindowPlanned):
            self.ended("plan")
        elif isinstance(event, WindowDecided):
            self.ended("decide")
        elif isinstance(event, WindowDone):
            self.ended("follow")
            self._windows += 1
            if self._every and self._windows % self._every == 0:
                seconds = time.process_time() - self._began - self._runner.seconds
                self.measured.every.append((self._windows, seconds, machine.memory(os.getpid(), "VmRSS")))


def application(source: str, size: Size) -> Callable[[DAG, Any], None]:
    """Files → lines → output. The files are holes: nothing reads them."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        splitter = FileSplitterInput(files=[source], block_size=BLOCK, blocks_threshold=size.blocks, window_bytes=1 << 60)
        files = dag.add_operator("files", splitter)
        lines = dag.add_operator("lines", BlockReader(min_readers=size.tasks, max_readers=size.tasks))
        out = dag.add_operator("out", RecordWriter(size.output))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, out.input)

    return populate_dag


def measure(size: Size, folder: Path) -> Measured:
    """Run an application of a size in this process."""
    source = folder / "in"
    source.mkdir()
    total = size.blocks * size.windows
    for number in range(min(FILES, total)):
        blocks = total // FILES + (number < total % FILES)
        with (source / f"{number}.txt").open("wb") as file:
            file.truncate(blocks * BLOCK)
    is_local = local_path(size.output) is not None

    def stage(path: str, data: bytes) -> None:
        if is_local:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        else:
            OBJECTS.put(path.partition("://")[2], data)

    runner = AnsweringRunner(size.tasks, size.output, stage, OBJECTS.uncounted)
    watch = Watch(runner, 0 if size.windows <= WINDOWS else max(1, size.windows // 20))
    runner.inspect = watch.started
    launch(
        application(str(source), size),
        runner=runner,
        subscribers=[watch],
        windows_in_flight=1,
        max_windows=size.windows,
        durability="process",
        progress="none",
        name="scale",
    )
    for kind in ("plan", "decision"):
        if not is_local:
            *_, name = OBJECTS.keys(f"{size.output.partition('://')[2]}/_dagflow/{kind}/")
            watch.measured.sizes[kind] = OBJECTS.size(name)
    return watch.measured


def measured_apart(size: Size, disk: str | None) -> Measured:
    """Measure in another process, whose memory nothing else has used."""
    with tempfile.TemporaryDirectory(prefix="dagflow-scale-", dir=disk) as folder:
        if local_path(size.output) is not None:
            size = attrs.evolve(size, output=str(Path(folder, "out")))
        command = [sys.executable, "-m", __name__, json.dumps(attrs.asdict(size)), folder]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    steps = {name: Step(**each) for name, each in answer["steps"].items()}
    return Measured(steps, answer["sizes"], [(n, seconds, size) for n, seconds, size in answer["every"]])


def main(size: str, folder: str) -> None:
    """Print what came of a run, as JSON."""
    install()
    print(json.dumps(attrs.asdict(measure(Size(**json.loads(size)), Path(folder)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
