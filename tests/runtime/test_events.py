from __future__ import annotations

import json
from pathlib import Path

import pytest

from dagflow.errors import OperatorFailed
from dagflow.launching.build import build
from dagflow.launching.launch import launch, start
from dagflow.runtime import events
from dagflow.runtime.events import Event, EventStream, WindowDecided, line_of
from operators import RecordWriter
from tests.conformance.apps import chain

KINDS = [value for value in vars(events).values() if isinstance(value, type) and issubclass(value, Event) and value is not Event]


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len(KINDS) >= 8
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


def test_events_are_stamped_and_handed_on_in_order() -> None:
    stream = EventStream(lambda: 12.3456789)
    heard: list[tuple[int, Event]] = []
    for n in (1, 2):
        stream.subscribe(lambda event, n=n: heard.append((n, event)))  # type: ignore[misc]
    stream.send(WindowDecided(window=3, files=1, bytes=10, records=2))
    assert [n for n, _ in heard] == [1, 2]
    assert json.loads(line_of(heard[0][1])) == {
        "v": 1,
        "event": "window_decided",
        "at": 12.345679,
        "window": 3,
        "files": 1,
        "bytes": 10,
        "records": 2,
    }


def test_the_run_folder_has_all_events_as_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    heard: list[Event] = []
    launch(chain(tmp_path / "in", sink=RecordWriter(str(tmp_path / "out"))), runner="local", subscribers=[heard.append])
    (file,) = (tmp_path / "out" / "_dagflow" / "events").iterdir()
    assert [json.loads(line) for line in file.read_text().splitlines()] == [event.as_json() for event in heard]


def test_the_end_of_a_failed_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    heard: list[Event] = []
    with pytest.raises(OperatorFailed, match="no such lines"):
        launch(chain(tmp_path / "a.txt", sink=Refusing(str(tmp_path / "out"))), runner="local", subscribers=[heard.append])
    end = heard[-1].as_json()
    assert (end["event"], end["status"], end["windows"]) == ("run_ended", "failed", 0)
    assert "no such lines" in end["error"]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_subscriber_that_raises_at_the_end_hides_nothing(tmp_path: Path, refuses: bool) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    heard: list[Event] = []

    def trip(event: Event) -> None:
        if event.kind == "run_ended":
            raise LookupError("my own mistake")

    sink = (Refusing if refuses else RecordWriter)(str(tmp_path / "out"))
    application = chain(tmp_path / "a.txt", sink=sink)
    run = start(build(application, run={"runner": "local"}), subscribers=[trip, heard.append])
    if refuses:
        with pytest.raises(OperatorFailed, match="no such lines"):
            run.run_here()
    else:
        run.run_here()
    assert run.report.status == ("failed" if refuses else "done")
    assert [event.kind for event in heard[-2:]] == ["run_ended", "warned"]
    (warning,) = run.report.warnings
    assert warning.endswith("trip raised an exception at the end of the run: LookupError: my own mistake")


class Refusing(RecordWriter[object]):
    def get_bytes_for_tuple(self, record: object) -> bytes:
        raise ValueError("no such lines")
