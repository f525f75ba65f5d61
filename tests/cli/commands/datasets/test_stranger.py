"""A dataset from a stranger: whatever is in it, commands that read it end soon, in little memory, and say which file is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dagflow.page.server import RunServer
from dagflow.storage import seal, unseal
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]
SECONDS = 40
BYTES = 2 << 30  # beyond what the process has already
COMMANDS = (
    ("log", "out"),
    ("log", "out", "--json"),
    ("show", "out"),
    ("report", "out"),
    ("report", "out", "--json"),
    ("report", "out", "--html", "-"),
    ("verify", "out"),
    ("trace", "out", "--offset", "1"),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset as a launch leaves it."""
    from dagflow.cli.main import main

    top = tmp_path_factory.mktemp("good")
    (top / "a.txt").write_text("one\n.two\nthree\n")
    arguments = [
        "launch",
        LINE_FILTER,
        "-D",
        f"input={top}/a.txt",
        "-D",
        f"output={top}/out",
        "--runner",
        "local",
        "--slots",
        "1",
    ]
    assert main([*arguments, "--progress", "none"]) == 0
    return top / "out"


@pytest.fixture
def ours(good: Path, tmp_path: Path) -> Path:
    """Its folder `_dagflow`, in a copy that is called `out`."""
    shutil.copytree(good, tmp_path / "out")
    (tmp_path / "out" / "_dagflow" / "owner").unlink()  # it names the folder that was copied
    (tmp_path / "out" / "_dagflow" / "owner").write_bytes(os.fsencode(tmp_path / "out" / "_dagflow"))
    return tmp_path / "out" / "_dagflow"


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise after some time, and beyond some memory."""

    def late(*_: Any) -> None:
        raise AssertionError(f"it still runs after {SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read_all(dagflow: Dagflow) -> dict[str, Answer]:
    """Run every command that only reads. Check the exit code, and that no error is one of ours."""
    answers = {}
    for command in COMMANDS:
        with limited():
            answer = answers[" ".join(command)] = dagflow(*command)
        assert answer.code in (0, 1, 2, 3), (command, answer)
        assert "internal error" not in answer.err, (command, answer.err)
        assert "Traceback" not in answer.out + answer.err, command
    with limited(), contextlib.closing(RunServer("out", 0)) as server:
        json.loads(server.data())
    return answers


def the(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    path.unlink()
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def sparse(path: Path) -> None:
    os.truncate(path, 40 << 30)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def nothing_but_nul(path: Path) -> None:
    path.write_bytes(b"\0" * 5000)


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 100_000 + b"]" * 100_000 + b"\n")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def link_round(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


RECORDS = ("owner", "app-id", ".lock", "ledger/*/*", "ledger-hint/*", "plan/*", "decision/*", "done/*", "launches/*", "events/*")
DAMAGES = (fifo, a_socket, sparse, empty, nothing_but_nul, deep, cut, link_out, link_round, folder)


@pytest.mark.full
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("record", RECORDS)
def test_a_damaged_record(dagflow: Dagflow, ours: Path, record: str, damage: Callable[[Path], None]) -> None:
    path = the(ours, record)
    damage(path)
    answers = read_all(dagflow)
    text = "".join(answer.out + answer.err for answer in answers.values())
    assert "root:x:0" not in text
    if record in ("ledger/*/*", "plan/*", "decision/*"):
        assert answers["verify out"].code in (1, 3)
        assert f"{record.partition('/')[0]}/" in text or "entry 3: " in text


@pytest.mark.parametrize(
    ("record", "damage"), [("ledger/*/*", sparse), ("events/*", fifo), ("plan/*", deep), ("owner", link_out)]
)
def test_some_damaged_records(dagflow: Dagflow, ours: Path, record: str, damage: Callable[[Path], None]) -> None:
    damage(the(ours, record))
    read_all(dagflow)


def reseal(path: Path, change: Callable[[Any], Any]) -> None:
    """Change a sealed record, and seal it again: a stranger can."""
    name = str(path.relative_to(path.parents[1]))
    record = unseal(path.read_bytes(), name, "")
    body = change(json.loads(record.body))
    path.write_bytes(seal(name, body if isinstance(body, bytes) else json.dumps(body).encode(), record.builds_on))


NESTED = b"[" * 900 + b"]" * 900
VALUES = (
    "text",
    1e308,
    10**30,
    -1,
    None,
    [],
    {},
    [1],
    {"a": 1},
    [["a", {"file_path": "/a", "start": 5, "stop": -1}]],
    float("nan"),
)


@pytest.mark.full
@pytest.mark.parametrize("record", ["plan/*", "decision/*", "launches/*"])
def test_a_sealed_record_with_a_value_of_another_kind(dagflow: Dagflow, ours: Path, record: str) -> None:
    path = the(ours, record)
    good = path.read_bytes()
    for number, field in enumerate(json.loads(unseal(good, str(path.relative_to(ours)), "").body)):
        path.write_bytes(good)
        reseal(path, lambda data: {**data, field: VALUES[number % len(VALUES)]})  # noqa: B023  # called at once
        read_all(dagflow)
    path.write_bytes(good)
    reseal(path, lambda data: json.dumps({**data, "view": "@", "items": "@"}).encode().replace(b'"@"', NESTED))
    read_all(dagflow)


EVENTS: tuple[dict[str, Any] | bytes, ...] = (
    {"event": "window_planned", "at": 1e308, "window": 10**12, "items": 10**18, "bytes": 10**30, "tasks": 10**9},
    {"event": "window_planned", "at": 1.0, "window": 10**30, "items": 1, "bytes": 1, "tasks": 1},
    {"event": "window_planned", "at": 1.0, "window": "7", "items": {}, "bytes": [], "tasks": "a"},
    {"event": "run_started", "at": 1.0, "application": 7, "sinks": [1], "slots": "many"},
    {"event": "run_ended", "at": -1.0, "status": 7, "windows": "a", "seconds": "b", "error": [1]},
    {"event": "operator_progress", "at": 1.0, "operators": {"keep": {"records_in": "x"}}, "waiting": [1]},
    {"event": "task_ended", "at": 1.0, "window": 0, "task": 7, "attempt": [], "started": 1e300, "ended": "x", "records": 1},
    {"event": "expectation", "at": 1.0, "window": 0, "operator": [], "name": {}, "records": "x", "rejected": 1, "status": 1},
    {"event": ["window_planned"], "at": 1.0},
    {"event": "of another version", "at": 1.0, "window": "x", "started": []},
    {"event": "warned", "at": 1.0, "text": {"a": []}},
    b'{"v": 1, "event": "warned", "at": NaN, "text": "x"}',
    b'{"v": 1, "event": "warned", "at": 1' + b"0" * 5000 + b', "text": "x"}',
    b"[" * 100_000 + b"]" * 100_000,
    b'{"v": 1, "event": "warned", "at": 1, "text": ' + NESTED + b"}",
    b"\0" * 1000,
)


def test_events_that_no_launch_writes(dagflow: Dagflow, ours: Path) -> None:
    with open(the(ours, "events/*"), "ab") as file:
        file.writelines(
            (event if isinstance(event, bytes) else json.dumps({"v": 1, **event}).encode()) + b"\n" for event in EVENTS
        )
    answers = read_all(dagflow)
    assert answers["report out"].code == 0
    assert "line_filter: done" in answers["report out"].out


def test_numbers_that_are_far_from_the_others(dagflow: Dagflow, ours: Path) -> None:
    entry, plan = the(ours, "ledger/*/*"), the(ours, "plan/*")
    (ours / "ledger" / "999999999").mkdir()
    shutil.copy(entry, ours / "ledger" / "999999999" / "999999999999.json")
    shutil.copy(plan, ours / "plan" / "9999999999")
    shutil.copy(the(ours, "decision/*"), ours / "decision" / "9999999999")
    answers = read_all(dagflow)
    assert answers["verify out"].code == 1
    assert "are missing, but entry 999999999999 is there" in answers["verify out"].err


def test_folders_that_lead_round_in_circles(dagflow: Dagflow, ours: Path) -> None:
    for kind in ("ledger", "plan", "decision", "launches", "state", "keyed-state", "events"):
        (ours / kind).mkdir(exist_ok=True)
        for name in "ab":
            (ours / kind / name).symlink_to(".")
    os.makedirs(ours / "task-states" / "/".join("a" * 500))
    read_all(dagflow)


@pytest.mark.parametrize("name", [".", "events", "ledger", "plan"])
def test_a_folder_that_is_a_link_out_of_the_dataset(dagflow: Dagflow, ours: Path, good: Path, name: str) -> None:
    shutil.rmtree(ours / name)
    (ours / name if name != "." else ours).symlink_to(good / "_dagflow" / name)
    answers = read_all(dagflow)
    if name in (".", "ledger"):
        assert answers["log out"].code == 1
        assert "leads out of this folder" in answers["log out"].err
    assert "line_filter" not in answers["report out"].out if name == "." else True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A host that counts its requests, by URL and as the endpoint of s3."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_error(404)

        do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815  # names of the standard library

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        host = f"127.0.0.1:{listening.server_address[1]}"
        for name, value in {
            "AWS_ACCESS_KEY_ID": "victim",
            "AWS_SECRET_ACCESS_KEY": "victim",
            "AWS_ENDPOINT_URL": f"http://{host}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",
        }.items():
            monkeypatch.setenv(name, value)
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield host, requests
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "form", ["http://{}/x/_dagflow", "s3://attacker/x/_dagflow", "file://{}/x", "simplecache::http://{}/x", "", "\0", "relative"]
)
def test_no_host_is_contacted_that_an_owner_names(dagflow: Dagflow, ours: Path, server: tuple[str, list[str]], form: str) -> None:
    host, requests = server
    (ours / "owner").write_text(form.format(host))
    for kind in ("plan", "decision", "launches", "events"):
        shutil.rmtree(ours / kind)  # so that the owner alone says where they are
    read_all(dagflow)
    shutil.rmtree(ours / "ledger")
    read_all(dagflow)
    assert requests == []


@pytest.mark.parametrize("form", ["http://{}/x", "s3://attacker/x"])
def test_no_host_is_contacted_that_another_record_names(
    dagflow: Dagflow, ours: Path, server: tuple[str, list[str]], form: str
) -> None:
    host, requests = server
    place = form.format(host)

    def plan(data: Any) -> Any:
        for items in data["items"].values():
            for item in items:
                item[1]["file_path"] = f"{place}/a.txt"
        return {**data, "outputs": [place]}

    reseal(the(ours, "plan/*"), plan)
    reseal(the(ours, "decision/*"), lambda data: {**data, "outputs": [place]})
    shutil.rmtree(ours / "done")
    read_all(dagflow)
    assert requests == []
