"""AvroDecoder with a double of a schema registry."""

from __future__ import annotations

import base64
import io
import itertools
import json
import pickle
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import pytest

from dagflow.errors import PackageMissing
from dagflow.testing import OperatorTask
from operators.logs.avro_messages import AvroDecoder
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, LogUnavailable, MessageNotReadable
from operators.logs.memory import MemoryLog, MemoryLogReader

fastavro = pytest.importorskip("fastavro")

CLICK: dict[str, Any] = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "page", "type": "string"}, {"name": "n", "type": "int"}],
}
WIDER = {**CLICK, "fields": [*CLICK["fields"], {"name": "v", "type": "int", "default": 7}]}
_names = itertools.count()


@attrs.define
class Registry:
    """A schema registry: answers by path, and the requests that came."""

    answers: dict[str, Any] = attrs.field(factory=dict)
    asked: list[tuple[str, str | None]] = attrs.field(factory=list)
    url: str = ""


@pytest.fixture
def registry() -> Iterator[Registry]:
    double = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            double.asked.append((self.path, self.headers.get("Authorization")))
            answer = double.answers.get(self.path, (404, {"error_code": 40403}))
            status, body = answer if isinstance(answer, tuple) else (200, answer)
            if status is None:  # no answer of HTTP at all
                self.wfile.write(b"SSH-2.0-server\r\n")
                return
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield double
    server.shutdown()
    serving.join()
    server.server_close()


def message(number: int, record: dict[str, Any], schema: Any = CLICK) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), record)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


def test_messages_are_decoded_and_each_schema_is_asked_for_once(registry: Registry) -> None:
    registry.answers = {f"/schemas/ids/{number}": {"schema": json.dumps(CLICK)} for number in (1, 300)}
    decoder = pickle.loads(pickle.dumps(AvroDecoder(registry.url, user="ada", password="secret")))
    assert "secret" not in repr(decoder)
    for number in (1, 300, 1, 1, 300):
        assert decoder(message(number, {"page": "/a", "n": number})) == {"page": "/a", "n": number}
    login = f"Basic {base64.b64encode(b'ada:secret').decode()}"
    assert registry.asked == [("/schemas/ids/1", login), ("/schemas/ids/300", login)]


def test_by_the_schema_of_the_application(registry: Registry) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": json.dumps(CLICK)}
    decoder = AvroDecoder(registry.url, schema=json.dumps(WIDER))
    assert decoder(message(1, {"page": "/a", "n": 2})) == {"page": "/a", "n": 2, "v": 7}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "does not begin with a zero byte"),
        (b"{}   ", "does not begin with a zero byte"),
        (b"\0\0\0\0\x09x", "does not have schema 9"),
        (b"\0\0\0\0\x01\x20", "are not of schema 1"),
        (message(1, {"page": "/a", "n": 2}) + b"x", "more bytes than schema 1 says"),
        (b"\0\0\0\0\x02x", "schema 2 is PROTOBUF, not Avro"),
        (b"\0\0\0\0\x03x", "schema 3 refers to others"),
        (b"\0\0\0\0\x04x", "schema 4 is not valid"),
    ],
)
def test_messages_that_are_none(registry: Registry, data: bytes, reason: str) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": json.dumps(CLICK)}
    registry.answers["/schemas/ids/2"] = {"schema": "", "schemaType": "PROTOBUF"}
    registry.answers["/schemas/ids/3"] = {
        "schema": json.dumps(CLICK),
        "references": [{"name": "A", "subject": "a"}],
    }
    registry.answers["/schemas/ids/4"] = {"schema": '{"type": "rec'}
    with pytest.raises(MessageNotReadable, match=reason):
        AvroDecoder(registry.url)(data)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((503, {}), LogUnavailable),
        ((None, {}), LogUnavailable),
        ((401, {}), LogRefused),
        ((404, "no such page"), LogRefused),
        ((404, {"error_code": 404}), LogRefused),
        ((200, []), LogRefused),
        ((200, {"status": "ok"}), LogRefused),
    ],
)
def test_no_message_is_skipped_because_the_registry_fails(registry: Registry, answer: Any, kind: type[Exception]) -> None:
    registry.answers["/schemas/ids/1"] = answer
    log = MemoryLog(f"avro-{next(_names)}")
    log.append("events", message(1, {"page": "/a", "n": 2}))
    reader: MemoryLogReader[Any] = MemoryLogReader(AvroDecoder(registry.url), log_name=log.name, on_error="skip")
    with OperatorTask(reader) as task, pytest.raises(kind):
        task.give("blocks_metadata_input", [OffsetBlock(0, "events", 0, 0, 1)])


def test_no_message_is_skipped_because_fastavro_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    log = MemoryLog(f"avro-{next(_names)}")
    log.append("events", message(1, {"page": "/a", "n": 2}))
    reader: MemoryLogReader[Any] = MemoryLogReader(AvroDecoder("http://registry:8081"), log_name=log.name, on_error="skip")
    with OperatorTask(reader) as task, pytest.raises(PackageMissing, match=r"dagflow\[avro\]"):
        task.give("blocks_metadata_input", [OffsetBlock(0, "events", 0, 0, 1)])


@pytest.mark.parametrize("schema", ['{"type": "rec', '{"type": "record"}', '"no such type"'])
def test_a_schema_that_is_none_is_refused_when_the_decoder_is_made(schema: str) -> None:
    with pytest.raises(ValueError, match="schema is not a schema of Avro as JSON"):
        AvroDecoder("http://registry:8081", schema=schema)


def test_the_schema_of_the_application_is_parsed_once(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": json.dumps(CLICK)}
    decoder = AvroDecoder(registry.url, schema=json.dumps({**WIDER, "doc": "of this test"}))
    decoder(message(1, {"page": "/a", "n": 2}))
    monkeypatch.setattr(json, "loads", None)
    assert decoder(message(1, {"page": "/b", "n": 3})) == {"page": "/b", "n": 3, "v": 7}


@pytest.mark.parametrize(
    "url", ["http://ada:secret@registry:8081", "https://ada:sec/ret@registry", "registry:8081", "file:///etc"]
)
def test_the_address_of_a_registry_has_no_login(url: str) -> None:
    with pytest.raises(ValueError, match="registry") as raised:
        AvroDecoder(url)
    assert "ret@" not in str(raised.value)


def test_a_registry_that_is_away() -> None:
    with pytest.raises(LogUnavailable, match="asking for schema 1"):
        AvroDecoder("http://127.0.0.1:1", timeout=1.0)(message(1, {"page": "/a", "n": 2}))


def test_poisoned_messages_are_routed(registry: Registry) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": json.dumps(CLICK)}
    log = MemoryLog(f"avro-{next(_names)}")
    for value in (message(1, {"page": "/a", "n": 2}), b"poison"):
        log.append("events", value)
    reader: MemoryLogReader[Any] = MemoryLogReader(AvroDecoder(registry.url), log_name=log.name, on_error="route")
    with OperatorTask(reader) as task:
        task.give("blocks_metadata_input", [OffsetBlock(0, "events", 0, 0, 2)])
    assert [each.record for each in task.emitted["messages"]] == [{"page": "/a", "n": 2}]
    assert [(each.file_path, each.position) for each in task.emitted["errors"]] == [("events[0]", 1)]
