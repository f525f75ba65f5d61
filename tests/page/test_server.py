from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dagflow import DAG
from dagflow.page.errors import PortInUse
from dagflow.page.server import RunServer
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, RecordWriter


def copy(dag: DAG, conf: dict[str, str]) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader())
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, out.input)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunServer]:
    """A server for an output that is not there yet."""
    server = RunServer(str(tmp_path / "out"), port=0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    server.stop()
    thread.join()
    server.close()


def ask(server: RunServer, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_page_waits_for_a_run_and_then_shows_it(server: RunServer, tmp_path: Path) -> None:
    status, headers, page = ask(server)
    assert status == 200
    assert b"data-live" in page
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "No run has written" in json.loads(ask(server, "/data.json")[2])["waiting"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("one\ntwo\n")
    run_dag(copy, {"input": str(tmp_path / "logs"), "output": str(tmp_path / "out")})
    status, headers, body = ask(server, "/data.json")
    data = json.loads(body)
    assert data["run"]["status"] == "done"
    assert [row["text"] for row in data["rows"]] == ["one", "two"]
    assert ask(server, "/data.json", If_None_Match=headers["ETag"])[0] == 304
    (tmp_path / "logs" / "b.txt").write_text("three\n")
    run_dag(copy, {"input": str(tmp_path / "logs"), "output": str(tmp_path / "out")})
    status, headers, body = ask(server, "/data.json", If_None_Match=headers["ETag"])
    assert status == 200
    assert json.loads(body)["windows"]["window"] == [0, 1]
    assert len(json.loads(body)["rows"]) == 3


def test_it_listens_on_loopback_only(server: RunServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert server._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_reads(server: RunServer, method: str) -> None:
    assert ask(server, "/data.json", method)[0] == 501


@pytest.mark.parametrize("path", ["/", "/data.json", "/none"])
def test_head_answers_as_get_does_without_the_body(server: RunServer, path: str) -> None:
    status, headers, body = ask(server, path)
    again, same, nothing = ask(server, path, "HEAD")
    assert (again, same["Content-Type"], nothing) == (status, headers["Content-Type"], b"")
    assert body


@pytest.mark.parametrize("path", ["/../etc/passwd", "/_dagflow/owner", "/data.json?x", "//evil"])
def test_it_serves_nothing_else(server: RunServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_names_that_lead_here_are_refused(server: RunServer, host: str) -> None:
    assert ask(server, "/data.json", Host=host)[0] == 403


def test_localhost_is_this_machine(server: RunServer) -> None:
    assert ask(server, "/", Host="localhost:1")[0] == 200


def test_a_port_that_is_taken(server: RunServer) -> None:
    with pytest.raises(PortInUse):
        RunServer("out", port=urlsplit(server.url).port or 0)
