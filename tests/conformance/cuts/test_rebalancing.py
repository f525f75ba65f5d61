"""Work that readers take over from one another: the same output with and without, on both runners; kills at every step."""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata, InputPort, Operator, OperatorContext, OutputPort, ReaderRecord
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, Stolen, WindowRetried
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing import stealing as work
from dagflow.runtime.run_report import RunReport
from operators import BlockReader, Map, RecordWriter
from tests.conformance.apps import chain, left_over, lines_in, wait_for, wait_for_file
from tests.runtime.rebalancing.provoked import provoked

SLOW_LINES = 150
LAST_LINE = f"fast line {4 * SLOW_LINES - 1:04d}"
EARLY = ("before start", "after start", "recovered")  # before setup(): there, nothing of the application can kill
STEPS = tuple(step for step in failpoints.NAMES if step not in EARLY)
QUICK = ("narrowed", "after grant", "stolen", "before report", "after withdraw", "after refuse")


@attrs.define
class Slow(Operator):
    """Takes its time for lines that begin with `slow`. Kills its process at a step of sharing, `times` in all.

    `other_read`: a file by which the other task says that it has read its last line. Slow lines wait for it, so that there is
    something to steal however late a busy machine begins that task.
    """

    seconds: float = 0.01
    other_read: str = ""
    markers: str = ""
    step: str = ""
    times: int = 0
    before: dict[str, Any] = attrs.field(init=False, factory=dict)

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[ReaderRecord[str]]()

    def setup(self, context: OperatorContext) -> None:
        if self.step:
            folder, step, times, this = self.markers, self.step, self.times, os.getpid()

            def kill(at: str) -> None:
                for n in range(times if at == step else 0):
                    try:
                        os.close(os.open(f"{folder}/{n}", os.O_CREAT | os.O_EXCL))
                    except FileExistsError:
                        continue
                    except FileNotFoundError:  # the worker has outlived the test
                        return
                    os.kill(this, signal.SIGKILL)

            failpoints.hook = kill
            self.before = {name: getattr(work, name) for name in provoked(self.step)}
            self._set(provoked(self.step))

    def teardown(self) -> None:
        self._set(self.before)

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(work, name, value)

    @input.process
    def wait(self, line: ReaderRecord[str]) -> None:
        if line.record.startswith("slow"):
            if self.other_read:
                wait_for_file(self.other_read)
            time.sleep(self.seconds)
        elif line.record == LAST_LINE and self.other_read:
            Path(self.other_read).touch()
        self.output.emit(line)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """All the work is in the first lines of one file: they are its first block of four."""
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f"{'slow' if n < SLOW_LINES else 'fast'} line {n:04d}\n" for n in range(4 * SLOW_LINES)]
    (folder / "a.txt").write_text("".join(lines))
    return folder


def start_of(block: FileBlockMetadata) -> str:
    return str(block.start)


def run(source: Path, output: Path, runner: str, slow: Slow, rebalance: str = "auto") -> tuple[RunReport, list[Event]]:
    """Four blocks for two readers; the starts of blocks that have been read are written beside the output."""
    if has_two_slots(runner):
        slow = attrs.evolve(slow, other_read=str(output.with_name("other has read")))
    size = sum(path.stat().st_size for path in source.iterdir())
    reader: BlockReader[Any] = BlockReader(min_readers=2, max_readers=2)
    application = chain(source, slow, sink=RecordWriter(str(output)), reader=reader, block_size=-(-size // 4))

    def and_blocks(dag: DAG, conf: Any) -> None:
        application(dag, conf)
        starts = dag.add_operator("starts", Map(start_of))
        sink = dag.add_operator("told", RecordWriter(str(told_in(output))))
        dag.add_stream("read", reader.blocks_metadata_output, starts.input)
        dag.add_stream("starts", starts.output, sink.input)

    events: list[Event] = []
    report = launch(and_blocks, runner=runner, durability="process", subscribers=[events.append], rebalance=rebalance).report
    return report, events


def has_two_slots(runner: str) -> bool:
    return runner == "spark" or "DAGFLOW_SLOTS" in os.environ


def told_in(output: Path) -> Path:
    """The file that lists the blocks which were read to their ends."""
    return output.with_name("told")


def blocks_of(source: Path) -> Counter[bytes]:
    """The lines to expect there: each block once."""
    size = sum(path.stat().st_size for path in source.iterdir())
    return Counter(str(start).encode() for start in range(0, size, -(-size // 4)))


def expected(source: Path) -> Counter[bytes]:
    return Counter(line for path in source.iterdir() for line in path.read_bytes().splitlines())


@pytest.mark.parametrize("rebalance", ["auto", "off"])
def test_the_output_is_the_same_with_and_without(runner: str, source: Path, tmp_path: Path, rebalance: str) -> None:
    report, events = run(source, tmp_path / "out", runner, Slow(), rebalance=rebalance)
    assert lines_in(tmp_path / "out") == expected(source)
    assert lines_in(told_in(tmp_path / "out")) == blocks_of(source)
    assert report.operators["lines"].records_in == report.operators["lines"].counters["blocks"] == 4
    assert report.rebalanced == len([event for event in events if isinstance(event, Stolen)])
    if rebalance == "off":
        assert (report.rebalanced, report.rebalancing) == (0, "rebalance is off")
    elif has_two_slots(runner):
        assert (report.rebalanced > 0, report.rebalancing) == (True, "")
    else:
        assert (report.rebalanced, report.rebalancing) == (0, "tasks run one after the other")


class TestWorkers:
    @pytest.mark.parametrize("step", [step if step in QUICK else pytest.param(step, marks=pytest.mark.nightly) for step in STEPS])
    def test_a_worker_killed_at_any_step_loses_nothing(self, worker_runner: str, source: Path, tmp_path: Path, step: str) -> None:
        (tmp_path / "kills").mkdir()
        _, events = run(source, tmp_path / "out", worker_runner, Slow(markers=str(tmp_path / "kills"), step=step, times=1))
        assert lines_in(tmp_path / "out") == expected(source)
        assert lines_in(told_in(tmp_path / "out")) == blocks_of(source), "each block is told once, by an attempt that counts"
        assert not [event for event in events if isinstance(event, WindowRetried)], "the runner tries a task again by itself"
        assert left_over(tmp_path / "out") == []
        assert len(list((tmp_path / "kills").iterdir())) == 1

    @pytest.mark.parametrize("at", ["0005", pytest.param("0120", marks=pytest.mark.nightly)])
    def test_a_worker_killed_in_either_job_of_a_yield_loses_nothing(
        self, worker_runner: str, source: Path, tmp_path: Path, at: str
    ) -> None:
        """Line 5 is read by the first job, before it yields; line 120 by the further one.

        The attempt after the killed one waits for the other task to end, however late that one has begun: else it could have
        too little left to yield.
        """
        marker = str(tmp_path / "killed")

        def dies(line: ReaderRecord[str]) -> ReaderRecord[str]:
            if os.path.exists(marker) and line.record.startswith("slow"):
                wait_for(lambda: glob.glob("**/claims/*.free", root_dir=tmp_path, recursive=True))
            elif line.record == f"slow line {at}":
                Path(marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return line

        reader: BlockReader[Any] = BlockReader(min_readers=2, max_readers=2)
        size = -(-sum(path.stat().st_size for path in source.iterdir()) // 4)
        sink = RecordWriter(str(tmp_path / "out"))
        application = chain(source, Slow(seconds=0.04), Map(dies), sink=sink, reader=reader, block_size=size)
        report = launch(application, runner=worker_runner, durability="process", rebalance="yield").report
        assert os.path.exists(marker)
        assert report.jobs > report.windows == 1
        assert report.rebalanced > 0
        assert lines_in(tmp_path / "out") == expected(source)
        assert left_over(tmp_path / "out") == []


KILLER = """
import os, signal, sys

def kill(at):
    folder, wanted = os.environ["KILLS"], os.environ["KILL_AT"].split(",")
    for n, step in enumerate(wanted):
        if at == step and (n == 0 or os.path.exists(f"{folder}/{n - 1}")):
            try:
                os.close(os.open(f"{folder}/{n}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

if "KILLS" in os.environ:
    from dagflow.runtime.rebalancing import failpoints
    failpoints.hook = kill
"""
SCRIPT = """
import json, sys
from pathlib import Path
from dagflow.runtime.events import WindowRetried
from tests.conformance.cuts.test_rebalancing import Slow, run

report, events = run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Slow())
print(json.dumps([report.rebalanced, len([event for event in events if isinstance(event, WindowRetried)])]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize(
    "kills", ["before start", "after start", "asked,recovered", "before report,recovered", "stolen,after start"]
)
def test_a_worker_killed_before_its_work_begins_loses_nothing(on: str, source: Path, tmp_path: Path, kills: str) -> None:
    """Workers find the killer when Python starts: nothing of the application has come to them yet."""
    (tmp_path / "kills").mkdir()
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(KILLER)
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(tmp_path / "path"), str(root)])
    command = [sys.executable, "-c", SCRIPT, str(source), str(tmp_path / "out"), on]
    environment = {**os.environ, "PYTHONPATH": path, "KILLS": str(tmp_path / "kills"), "KILL_AT": kills, "DAGFLOW_SLOTS": "2"}
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(list((tmp_path / "kills").iterdir())) == len(kills.split(","))
    _, retried = json.loads(ran.stdout.splitlines()[-1])
    assert retried == 0, "the runner tries a task again by itself"
    assert lines_in(tmp_path / "out") == expected(source)
    assert lines_in(told_in(tmp_path / "out")) == blocks_of(source)
    assert left_over(tmp_path / "out") == []
