from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dagflow import DAG
from dagflow.page import server as module
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


TOKEN = "a-token-of-enough-letters"


@contextlib.contextmanager
def serving(server: RunServer) -> Iterator[RunServer]:
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        server.close()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RunServer]:
    """A server with a token."""
    with serving(RunServer(str(tmp_path / "out"), port=0, token=TOKEN)) as server:
        yield server


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


@pytest.mark.parametrize("path", ["/", "/index.html", "/data.json", "/none", "/?token=", "/?token=wrong", f"/?x={TOKEN}"])
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": "dagflow-token=x; a"}]
)
def test_with_a_token_nothing_is_told_without_it(guarded: RunServer, path: str, headers: dict[str, str]) -> None:
    for method in ("GET", "HEAD"):
        status, answered, body = ask(guarded, path, method, **headers)
        assert status == 401
        assert answered["WWW-Authenticate"] == "Bearer"
        assert b"data-live" not in body
        assert TOKEN.encode() not in body


def test_a_token_is_taken_from_a_header(guarded: RunServer) -> None:
    status, _, body = ask(guarded, "/data.json", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert b"waiting" in body
    assert ask(guarded, "/", Authorization=f"bearer {TOKEN}", Host="example.org")[0] == 200


def test_a_token_goes_from_the_query_into_a_cookie(guarded: RunServer) -> None:
    assert guarded.url.endswith(f"/?token={TOKEN}")
    status, headers, _ = ask(guarded, f"/?token={TOKEN}")
    assert (status, headers["Location"]) == (303, "/")
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Lax"} <= set(attributes)
    assert ask(guarded, "/data.json", Cookie=cookie)[0] == 200
    assert ask(guarded, "/data.json", Cookie=f"{cookie}x")[0] == 401
    assert ask(guarded, f"//evil/?token={TOKEN}")[1]["Location"] == "/evil/"


def test_beyond_loopback_there_is_always_a_token(tmp_path: Path) -> None:
    with serving(RunServer(str(tmp_path / "out"), port=0, host="0.0.0.0")) as server:
        assert server.token is not None
        assert len(server.token) >= 24
        assert ask(server)[0] == 401
        assert ask(server, Authorization=f"Bearer {server.token}")[0] == 200
    with serving(RunServer(str(tmp_path / "out"), port=0, host="0.0.0.0")) as other:
        assert other.token != server.token


def connected(server: RunServer) -> socket.socket:
    where = urlsplit(server.url)
    client = socket.create_connection((where.hostname or "", where.port or 0))
    client.settimeout(30)
    return client


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\n"])
def test_a_client_that_is_slow_to_ask_is_disconnected(server: RunServer, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Also one that sends a byte now and then."""
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.5)
    with connected(server) as client:
        client.sendall(sent)
        drip = b"X-Header: a\r\n" * 1000 if sent.endswith(b"\n") else b""
        client.settimeout(0.05)
        end = time.monotonic() + 30
        closed = False
        while not closed and time.monotonic() < end:
            try:
                client.sendall(drip[:1])
                drip = drip[1:]
                closed = client.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True
        assert closed
    assert ask(server)[0] == 200


def test_a_client_that_is_slow_to_read_is_disconnected(server: RunServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(module, "MAX_CLIENTS", 1)
    size = 64 << 20  # more than the buffers of both sockets hold
    monkeypatch.setattr(module, "live_html", lambda: "a" * size)
    with connected(server) as client:
        client.sendall(f"GET / HTTP/1.0\r\nHost: {module.HOST}\r\n\r\n".encode())
        got = len(client.recv(1))  # the answer has begun, however busy the machine is
        time.sleep(1.5)
        with contextlib.suppress(ConnectionError):
            while data := client.recv(1 << 20):
                got += len(data)
        assert got < size
    monkeypatch.setattr(module, "live_html", lambda: "a")
    assert ask(server)[2] == b"a"


def test_there_are_so_many_clients_at_once_and_no_more(server: RunServer) -> None:
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(connected(server)) for _ in range(module.MAX_CLIENTS)]
        with connected(server) as one_more:
            assert is_closed(one_more)
        waiting[0].close()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                assert ask(server)[0] == 200
                break
            except (ConnectionError, http.client.HTTPException):
                time.sleep(0.05)
        else:
            pytest.fail("no client gets in after another one has gone")
