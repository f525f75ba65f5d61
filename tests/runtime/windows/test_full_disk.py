"""A full disk says so, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import DiskFull
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, EventStream, RunEnded, Warned
from dagflow.runtime.run_folder.events_file import event_writer
from dagflow.testing import run_dag
from operators import FlatMap, RecordWriter
from tests.conformance.apps import chain, left_over, lines_in


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "x").write_text("a\nb\n")
    return folder


def run(source: Path, output: Path, **options: Any) -> Any:
    return run_dag(chain(source, sink=RecordWriter(str(output))), **options)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    ).returncode:
        pytest.skip("no file system of a chosen size can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


class TestFullDisk:
    def test_says_so_and_the_next_launch_goes_on(self, source: Path, tmp_path: Path, small_disk: Path) -> None:
        (source / "x").write_text(f"{'y' * 999}\n" * 2000)
        events: list[Event] = []
        application = chain(source, sink=RecordWriter(str(small_disk / "out")))
        with pytest.raises(DiskFull) as caught:
            launch(application, runner="local", subscribers=[events.append])
        assert caught.value.exit_code == 3
        end = events[-1]
        assert isinstance(end, RunEnded)
        assert end.status == "failed"
        subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True)
        run(source, small_disk / "out")
        assert sum(lines_in(small_disk / "out").values()) == 2000
        assert left_over(small_disk / "out") == []

    def test_records_in_a_buffer_do_not_hide_it(self, source: Path, small_disk: Path) -> None:
        (small_disk / "fill").write_bytes(b"\0" * (900 << 10))
        (source / "x").write_text(f"{'y' * 999}\n" * 300)
        many = FlatMap(lambda line: [line.record] * 2)
        with pytest.raises(DiskFull):
            run_dag(chain(source, many, sink=RecordWriter(str(small_disk / "out"))))

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_ends_the_events_file_only(self, tmp_path: Path) -> None:
        events = EventStream(lambda: 0.0)
        heard: list[Any] = []
        events.subscribe(heard.append)
        (tmp_path / "events").mkdir()
        (tmp_path / "events" / "l.jsonl").symlink_to("/dev/full")
        with event_writer(str(tmp_path), "l", events) as write:
            events.subscribe(write)
            for _ in range(3):
                events.send(RunEnded(status="done", windows=0, seconds=0.0))
        assert [type(event) for event in heard] == [RunEnded, Warned, RunEnded, RunEnded]
        assert heard[1].text.endswith("l.jsonl: no further events are written: No space left on device")

    def test_no_events_file_can_be_opened(self, tmp_path: Path) -> None:
        events = EventStream(lambda: 0.0)
        heard: list[Any] = []
        events.subscribe(heard.append)
        (tmp_path / "events").write_text("a file stands there")
        with event_writer(str(tmp_path), "l", events) as write:
            write(RunEnded(status="done", windows=0, seconds=0.0))
        assert [type(event) for event in heard] == [Warned]
