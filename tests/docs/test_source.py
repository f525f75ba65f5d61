"""The source of the tutorial, as it stands on its page, reads an API of this test."""

from __future__ import annotations

import json
import re
import threading
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dagflow import launch
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.testing import OperatorTask

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "source.md"
pytestmark = pytest.mark.full


class Api:
    """An API with pages."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.total: int | None = None  # None: that of the rows
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = parse_qs(urlsplit(self.path).query)
                start, limit = int(asked["start"][0]), int(asked["limit"][0])
                assert limit <= 100
                answer = {"total": api.total or len(api.rows), "rows": api.rows[start : start + limit]}
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def code() -> Any:
    """The module of the page."""
    (text,) = re.findall(r'^```python title="app.py"\n(.*?)^```', PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) < 100, "the page says that it is less than 100 lines"
    module = types.ModuleType("source_of_the_tutorial")
    exec(compile(text, str(PAGE), "exec"), module.__dict__)
    return module


def ids(output: Path) -> list[int]:
    return sorted(json.loads(line)["id"] for file in output.rglob("*.jsonl") for line in file.read_text().splitlines())


def test_each_row_is_read_once_and_traced(api: Api, code: Any, tmp_path: Path) -> None:
    settings = {"url": api.url, "output": str(tmp_path / "out")}
    options = {"runner": "local", "run_folder": str(tmp_path / "run"), "durability": "process"}
    api.rows = [{"id": number, "user": f"u{number}"} for number in range(1030)]
    launch(code.populate_dag, settings, **options)
    assert ids(tmp_path / "out") == list(range(1030))
    launch(code.populate_dag, settings, **options)
    assert ids(tmp_path / "out") == list(range(1030))
    api.rows += [{"id": number, "user": f"u{number}"} for number in range(1030, 1100)]
    launch(code.populate_dag, settings, **options)
    assert ids(tmp_path / "out") == list(range(1100))
    definitions = [f"{name}={value}" for name, value in settings.items()]
    locator = ApplicationLocator(application=code.populate_dag, definitions=definitions)
    found = trace(str(tmp_path / "out"), 1042, exact=True, locator=locator)
    assert found.source is not None
    assert (found.source.position, json.loads(found.source.data)) == (1042, {"id": 1042, "user": "u1042"})


def test_a_bad_row_is_named_with_its_number(api: Api, code: Any, tmp_path: Path) -> None:
    api.rows = [{"id": 0}, {"id": "one"}]
    settings = {"url": api.url, "output": str(tmp_path / "out")}
    with pytest.raises(Exception, match="'one' is not a valid int64") as raised:
        launch(code.populate_dag, settings, runner="local", run_folder=str(tmp_path / "run"), durability="process")
    assert api.url in str(raised.value)


def test_a_page_without_rows_that_were_planned_is_an_error(api: Api, code: Any, tmp_path: Path) -> None:
    api.rows, api.total = [{"id": number} for number in range(30)], 40
    settings = {"url": api.url, "output": str(tmp_path / "out")}
    with pytest.raises(Exception, match="has no row 30, and 40 were planned"):
        launch(code.populate_dag, settings, runner="local", run_folder=str(tmp_path / "run"), durability="process")


def test_the_backlog_and_the_position(api: Api, code: Any) -> None:
    api.rows = [{"id": number} for number in range(600)]
    operator = code.ApiInput(api.url)
    with OperatorTask(operator) as task:
        task.emit_tuples()
        assert operator.backlog().items == 2
        assert not operator.is_exhausted()
        task.emit_tuples()
        task.emit_tuples()
        assert (operator.backlog().items, operator.is_exhausted()) == (0, True)
        assert operator.position_text(task.states()) == f"{api.url}: rows before 600"
