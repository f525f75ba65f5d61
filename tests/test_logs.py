from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import sys
import threading
from collections.abc import Iterator

import pytest

from dagflow import LogFields
from dagflow.launching.event_log import log_event, record_of
from dagflow.logs import (
    JsonFormatter,
    StandardErrorHandler,
    TextFormatter,
    WorkerLogs,
    configure,
    fields_now,
    levels_set,
    within,
)
from dagflow.runtime.events import Event, LeaseAwaited, RunEnded, TaskEnded, Warned, WindowDecided, WindowRetried

PLACE = {"run": "r1", "window": 3, "operator": "parse", "task": "s0-0001"}


@contextlib.contextmanager
def bare_root() -> Iterator[None]:
    """Take the root logger's handlers away, pytest's too, and give everything back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for name in ("myapp", "myapp.parse", "dagflow.run"):
            logging.getLogger(name).setLevel(logging.NOTSET)


def record(text: str = "text", *arguments: object, **attributes: object) -> logging.LogRecord:
    made = logging.LogRecord("myapp.parse", logging.WARNING, "app.py", 1, text, arguments, None)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    vars(made).update(attributes)
    with within(**PLACE):
        LogFields().filter(made)
    return made


def failed() -> tuple[object, ...]:
    try:
        int("x")
    except ValueError:
        return sys.exc_info()
    raise AssertionError


class TestPlace:
    def test_it_is_known_within_a_task_and_gone_after_it(self) -> None:
        with within(run="r1"), within(window=3, task="s0-0001"):
            assert fields_now() == {"run": "r1", "window": 3, "operator": None, "task": "s0-0001"}
        assert fields_now() == dict.fromkeys(PLACE)

    def test_threads_of_user_code_have_the_place_of_the_task(self) -> None:
        found = []
        with within(**PLACE):
            thread = threading.Thread(target=lambda: found.append(fields_now()))
            thread.start()
            thread.join()
        assert found == [PLACE]

    def test_the_operator_at_work_counts_before_the_place(self) -> None:
        with within(**PLACE, at_work=lambda: ("keep", 4)):
            assert fields_now() == {**PLACE, "operator": "keep", "window": 4}

    def test_attributes_of_a_record_stay(self) -> None:
        assert vars(record(window=9))["window"] == 9


class TestText:
    def test_a_line(self) -> None:
        line = TextFormatter().format(record("bad %r", "x"))
        at, _, rest = line.partition(".")
        assert re.fullmatch(r"250[+-]\d{4}", rest.partition(" ")[0]), f"{at}: the offset from UTC follows"
        assert rest.partition(" ")[2] == "WARNING myapp.parse: bad 'x'  run=r1 window=3 operator=parse task=s0-0001"

    def test_unknown_fields_are_left_out(self) -> None:
        outside = logging.LogRecord("a", logging.INFO, "", 1, "text", (), None)
        LogFields().filter(outside)
        assert TextFormatter().format(outside).endswith("INFO a: text")

    def test_more_lines_and_the_traceback_follow(self) -> None:
        lines = TextFormatter().format(record("one\ntwo", exc_info=failed())).splitlines()
        assert lines[0].endswith("one  run=r1 window=3 operator=parse task=s0-0001")
        assert lines[1] == "two"
        assert lines[2].startswith("Traceback")
        assert lines[-1] == "ValueError: invalid literal for int() with base 10: 'x'"

    def test_secrets_and_control_characters_are_not_shown(self) -> None:
        line = TextFormatter().format(record("read %s \x1b[2J", "s3://user:pw@host/a"))
        assert "pw" not in line
        assert "\x1b" not in line


class TestJson:
    def line(self, made: logging.LogRecord) -> dict[str, object]:
        text = JsonFormatter().format(made)
        assert "\n" not in text
        parsed: dict[str, object] = json.loads(text)
        return parsed

    def test_the_fields(self) -> None:
        assert self.line(record("größe\n%s", 1)) == {
            "at": 1_700_000_000.25,
            "level": "WARNING",
            "logger": "myapp.parse",
            "message": "größe\n1",
            **PLACE,
            "exception": None,
        }

    def test_an_exception_and_extra_attributes(self) -> None:
        line = self.line(record(exc_info=failed(), position=7, thing=object))
        assert str(line["exception"]).endswith("ValueError: invalid literal for int() with base 10: 'x'")
        assert line["extra"] == {"position": 7, "thing": "<class 'object'>"}

    def test_secrets_are_masked_everywhere(self) -> None:
        assert "pw" not in JsonFormatter().format(record("ftp://u:pw@h/", url="ftp://u:pw@h/"))


class TestConfigure:
    @bare_root()
    def test_lines_go_to_what_standard_error_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        configure("text", "WARNING", {"myapp.parse": "debug"}, events=False)
        for stream in (io.StringIO(), io.StringIO()):
            monkeypatch.setattr(sys, "stderr", stream)
            logging.getLogger("myapp").info("not shown")
            logging.getLogger("myapp.parse").debug("shown")
            logging.getLogger("dagflow.run").error("progress shows it")
            assert stream.getvalue().endswith("DEBUG myapp.parse: shown\n")
            assert stream.getvalue().count("\n") == 1

    @bare_root()
    def test_a_second_launch_replaces_the_handler(self) -> None:
        for _ in range(2):
            configure("json", "INFO", {}, events=True)
        assert [type(handler) for handler in logging.root.handlers] == [StandardErrorHandler]
        assert logging.root.level == logging.INFO

    @bare_root()
    def test_what_the_application_has_configured_stays(self) -> None:
        stream = io.StringIO()
        logging.basicConfig(stream=stream, level=logging.DEBUG, format="%(message)s in %(window)s")
        configure("json", "WARNING", {}, events=True)
        with within(window=3):
            logging.getLogger("myapp").debug("shown")
        assert stream.getvalue() == "shown in 3\n"

    @bare_root()
    def test_the_handler_that_logging_makes_by_itself_is_replaced(self) -> None:
        logging.warning("before")  # noqa: LOG015  # as applications do
        configure("text", "WARNING", {}, events=False)
        assert [type(handler) for handler in logging.root.handlers] == [StandardErrorHandler]

    @bare_root()
    def test_a_closed_stream_does_not_end_a_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        configure("text", "WARNING", {}, events=False)
        stream = io.StringIO()
        stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
        logging.getLogger("myapp").error("text")


class TestWorkers:
    @bare_root()
    def test_logging_is_as_before_when_the_task_has_ended(self, capsys: pytest.CaptureFixture[str]) -> None:
        logging.getLogger("myapp").setLevel(logging.ERROR)
        before = levels_set()
        logs = WorkerLogs(form="json", levels={"": logging.INFO, "myapp": logging.DEBUG, "myapp.parse": logging.DEBUG})
        with logs.in_worker():
            logging.getLogger("myapp").debug("shown")
        assert levels_set() == before
        assert logging.root.handlers == []
        assert json.loads(capsys.readouterr().err)["message"] == "shown"

    @bare_root()
    def test_handlers_of_the_process_stay(self, capsys: pytest.CaptureFixture[str]) -> None:
        logging.root.addHandler(logging.NullHandler())
        with WorkerLogs(levels={"": logging.DEBUG}).in_worker():
            logging.getLogger("myapp").error("text")
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (Warned(text="a"), "WARNING"),
        (WindowRetried(window=1, attempt=2, reason="a"), "WARNING"),
        (LeaseAwaited(run_folder="out", pid=1, host="a", since="12:00", who="b", seconds=60.0), "INFO"),
        (WindowDecided(window=1, files=1, bytes=1, records=1), "INFO"),
        (RunEnded(status="done", windows=1, seconds=1.0), "INFO"),
        (RunEnded(status="failed", windows=1, seconds=1.0, error="a"), "ERROR"),
        (RunEnded(status="interrupted", windows=1, seconds=1.0), "WARNING"),
    ],
)
def test_events_are_logged(event: Event, level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "dagflow.run")
    log_event(event)
    (logged,) = caplog.records
    assert (logged.name, logged.levelname, vars(logged)["event"]) == ("dagflow.run", level, event.kind)
    assert vars(logged).get("window") == getattr(event, "window", None)


def test_events_for_programs_are_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    ended = TaskEnded(window=1, task="s0-0000", attempt="1", started=0.0, ended=1.0, records=5)
    assert record_of(ended) == (logging.DEBUG, "")
    caplog.set_level("DEBUG", "dagflow.run")
    log_event(ended)
    assert json.loads(caplog.records[0].getMessage())["task"] == "s0-0000"
