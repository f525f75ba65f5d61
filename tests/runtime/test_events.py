from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dagflow.errors import OperatorFailed
from dagflow.launching.build import build
from dagflow.launching.launch import launch, start
from dagflow.runtime import events
from dagflow.runtime.event_schema import json_schema
from dagflow.runtime.events import (
    Event,
    EventStream,
    OperatorProgress,
    RunEnded,
    Stolen,
    Warned,
    WindowDecided,
    WindowDone,
    WindowPlanned,
    line_of,
)
from dagflow.runtime.run_folder.events_file import FILES, PROGRESS_BYTES, EventObjects, event_writer
from dagflow.storage import MemoryStore
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
        "operators": {},
    }


def test_the_run_folder_has_all_events_as_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    heard: list[Event] = []
    launch(chain(tmp_path / "in", sink=RecordWriter(str(tmp_path / "out"))), runner="local", subscribers=[heard.append])
    (file,) = (tmp_path / "out" / "_dagflow" / "events").iterdir()
    assert [json.loads(line) for line in file.read_text().splitlines()] == [event.as_json() for event in heard]


def test_the_schema_of_events_is_that_of_their_classes() -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "events.schema.json"
    assert json.loads(path.read_text()) == json_schema(), (
        "python -m dagflow.runtime.event_schema > docs/reference/events.schema.json"
    )


def test_events_fit_the_schema(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    lines: list[str] = []
    launch(
        chain(tmp_path / "in", sink=RecordWriter(str(tmp_path / "out"))),
        runner="local",
        subscribers=[lambda event: lines.append(line_of(event))],
    )
    figures = {"records_in": 1, "records_out": 2, "bytes": 3, "errors": 0, "seconds": 0.5, "partitions": 1}
    lines.append(line_of(OperatorProgress(operators={"lines": figures})))
    lines.append(line_of(Stolen(window=0, source="s0-0000", to="s0-0001", bytes=1, parts=1)))
    validator = jsonschema.Draft202012Validator(json_schema())
    for text in lines:
        validator.validate(json.loads(text))
    broken = {**json.loads(lines[-1]), "parts": "one"}
    assert not validator.is_valid(broken)
    assert validator.is_valid({**json.loads(lines[-1]), "more": "one"})  # a later release may add fields


def test_the_end_of_a_failed_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    heard: list[Event] = []
    with pytest.raises(OperatorFailed, match="no such lines"):
        launch(chain(tmp_path / "a.txt", sink=Refusing(str(tmp_path / "out"))), runner="local", subscribers=[heard.append])
    end = heard[-1].as_json()
    assert (end["event"], end["status"], end["windows"]) == ("run_ended", "failed", 0)
    assert "no such lines" in end["error"]


def test_a_subscriber_of_ours_that_raises_gets_no_further_events() -> None:
    stream = EventStream(lambda: 0.0)
    heard: list[Event] = []
    tries: list[Event] = []

    def broken(event: Event) -> None:
        tries.append(event)
        raise OSError("no route to host")

    stream.subscribe(broken, on_error="warn")
    stream.subscribe(heard.append)
    for window in (0, 1):
        stream.send(WindowDone(window=window))
    assert [event.kind for event in tries] == ["window_done"]
    assert [event.kind for event in heard] == ["window_done", "warned", "window_done"]
    text = heard[1].as_json()["text"]
    assert text.endswith(
        "broken raised an exception: OSError: no route to host; it gets no further events, and the run continues"
    )


def test_events_from_another_thread_reach_subscribers_of_the_user_in_the_thread_of_the_run() -> None:
    stream = EventStream(lambda: 0.0)
    ours: list[str] = []
    theirs: list[str] = []
    stream.subscribe(lambda event: ours.append(event.kind), on_error="warn")
    stream.subscribe(lambda event: theirs.append(event.kind))
    for _ in range(2):
        stream.send_beside(OperatorProgress(operators={}))
    assert (ours, theirs) == (["operator_progress"] * 2, [])
    stream.send(WindowDone(window=0))
    assert ours == ["operator_progress"] * 2 + ["window_done"]
    assert theirs == ["operator_progress", "window_done"]  # of events that wait, the last one


def test_progress_of_many_operators_takes_little_of_the_events_file(tmp_path: Path) -> None:
    now = [0.0]
    stream = EventStream(lambda: now[0])
    with event_writer(str(tmp_path), "20260101T000000-abcdef", stream) as write:
        stream.subscribe(write)
        for second in range(100):
            now[0] = float(second)
            stream.send(OperatorProgress(operators={f"operator{n}": {"records_in": n} for n in range(500)}))
    (file,) = tmp_path.glob("events/*")
    assert 0 < file.stat().st_size < 100 * PROGRESS_BYTES * 1.1


def records_of_a_launch(store: MemoryStore, *events: tuple[float, Event]) -> list[list[str]]:
    """Write events at their times; return the kinds of those in each record."""
    now = [0.0]
    stream = EventStream(lambda: now[0])
    with EventObjects(store, "20260101T000000-abcdef", stream) as write:
        stream.subscribe(write)
        for at, event in events:
            now[0] = at
            stream.send(event)
    records = [store.read(name) or b"" for name in store.names("events/20260101T000000-abcdef")]
    return [[json.loads(line)["event"] for line in record.splitlines()] for record in records]


PLANNED, WARNED = WindowPlanned(window=0, items=1, bytes=1, tasks=1), Warned(text="w")


def ended(status: str) -> RunEnded:
    return RunEnded(status=status, windows=0, seconds=0.0)


def test_events_in_an_object_store_are_written_twice_a_minute_and_at_the_end() -> None:
    events = [(0.0, WARNED), (29.0, PLANNED), (31.0, WARNED), (60.0, WARNED), (70.0, WARNED), (71.0, ended("done"))]
    written = records_of_a_launch(MemoryStore(), *events)
    assert written == [["warned", "window_planned", "warned"], ["warned", "warned", "run_ended"]]


@pytest.mark.parametrize(("status", "records"), [("done", 0), ("failed", 1), ("interrupted", 1)])
def test_a_launch_with_nothing_to_tell_writes_nothing_to_an_object_store(status: str, records: int) -> None:
    assert len(records_of_a_launch(MemoryStore(), (0.0, WARNED), (100.0, ended(status)))) == records


def test_an_object_store_keeps_a_hundred_records_of_events() -> None:
    store = MemoryStore()
    for number in range(120):
        store.create(f"events/20250101T000000-{number:06d}.0001.jsonl", b"")
    assert records_of_a_launch(store, (0.0, PLANNED)) == [["window_planned"]]
    assert len(store.names("events/")) == FILES
    assert store.names("events/")[0].startswith("events/20250101T000000-000021")


def test_an_object_store_that_takes_no_events_is_told_once() -> None:
    class Full(MemoryStore):
        def create(self, name: str, data: bytes | memoryview) -> bool:
            raise OSError("no room")

    heard: list[Event] = []
    now = [0.0]
    stream = EventStream(lambda: now[0])
    stream.subscribe(heard.append)
    with EventObjects(Full(), "l", stream) as write:
        stream.subscribe(write)
        for second in range(100):
            now[0] = float(second)
            stream.send(PLANNED)
    (told,) = [event for event in heard if isinstance(event, Warned)]
    assert told.text == "memory://store: no further events are written: no room"


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
