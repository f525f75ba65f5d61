"""A REST catalog on this machine, whose requests meet faults. Its tables are those of an SQL catalog of `pyiceberg`.

Namespaces are as strict as in catalogs on servers: one is created within another that is there.
"""

from __future__ import annotations

import contextlib
import enum
import json
import threading
import types
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import CommitTableRequest

WAREHOUSE = "lake/of shops"
"""Its name of the warehouse, which says nothing about where that is."""


class Fault(enum.Enum):
    """A fault that a request can meet."""

    BUSY = "503 instead of an answer; nothing is done"
    SLOW = "it is done, and the answer takes longer than clients wait"
    FORBIDDEN = "403 instead of an answer; nothing is done"
    THROTTLED = "429 instead of an answer; nothing is done"
    FAILED_AFTERWARDS = "it is done, and the answer is 503"
    LOST = "it is done, and the connection ends without an answer"
    TWICE = "it arrives twice, and the answer is that to the second one"
    OVERTAKEN = "the answer is 409, and it is done after the next request"


_STATUS = {Fault.BUSY: 503, Fault.FORBIDDEN: 403, Fault.THROTTLED: 429, Fault.FAILED_AFTERWARDS: 503}
_OF_ERRORS = {NoSuchTableError: 404, NoSuchNamespaceError: 404, TableAlreadyExistsError: 409, CommitFailedException: 409}


@attrs.define
class RestCatalog:
    """A catalog that a server has.

    Attributes:
        kept: the catalog with its tables.
        schedule: called with each request (`POST namespaces/shop/tables/rows`); returns the fault that it meets.
        requests: all that have arrived.
        namespaces: those that were created.
        late: what is done after the next request.
    """

    url: str
    folder: Path
    kept: Catalog
    schedule: Callable[[str], Fault | None] = lambda request: None
    requests: list[str] = attrs.field(factory=list)
    namespaces: set[tuple[str, ...]] = attrs.field(factory=set)
    late: list[Callable[[], object]] = attrs.field(factory=list)

    @property
    def properties(self) -> dict[str, str]:
        """The properties with which `pyiceberg` loads it."""
        return {"type": "rest", "uri": self.url, "warehouse": WAREHOUSE}

    def once(self, fault: Fault, beginning: str = "POST", *, skip: int = 0) -> None:
        """Let the next request meet a fault that begins so, after `skip` others."""
        left = [skip]

        def schedule(request: str) -> Fault | None:
            if not request.startswith(beginning):
                return None
            left[0] -= 1
            return fault if left[0] == -1 else None

        self.schedule = schedule

    def answer(self, method: str, path: list[str], query: dict[str, list[str]], body: Any) -> Any:
        """Do what a request says, and return the answer."""
        match method, path:
            case "GET", ["config"]:
                assert query["warehouse"] == [WAREHOUSE]
                return {"defaults": {}, "overrides": {}}
            case "POST", ["namespaces"]:
                return self._create_namespace(tuple(body["namespace"]))
            case "GET" | "HEAD", ["namespaces", name]:
                return {"namespace": self._known(name), "properties": {}}
            case "POST", ["namespaces", name, "tables"]:
                return self._create_table((*self._known(name), body["name"]), body)
            case "GET", ["namespaces", name, "tables", table]:
                return _loaded(self.kept.load_table((*_parts(name), table)))
            case "POST", ["namespaces", name, "tables", table]:
                return self.commit((*_parts(name), table), body)
            case "DELETE", ["namespaces", name, "tables", table]:
                self.kept.drop_table((*_parts(name), table))
                return None
        raise AssertionError(f"{method} {'/'.join(path)}")

    def commit(self, identifier: tuple[str, ...], body: Any) -> Any:
        """Commit to a table, and return its metadata."""
        request = CommitTableRequest.model_validate({"identifier": {"namespace": ["x"], "name": "x"}, **body})
        table: Any = types.SimpleNamespace(name=lambda: identifier)
        return _of_model(self.kept.commit_table(table, request.requirements, request.updates))

    def _create_namespace(self, name: tuple[str, ...]) -> Any:
        if name[:-1] and name[:-1] not in self.namespaces:
            raise NoSuchNamespaceError(f"namespace {name[:-1]} does not exist")
        if name in self.namespaces:
            raise TableAlreadyExistsError(f"namespace {name} already exists")
        self.namespaces.add(name)
        self.kept.create_namespace_if_not_exists(name)
        return {"namespace": name, "properties": {}}

    def _known(self, name: str) -> tuple[str, ...]:
        if _parts(name) not in self.namespaces:
            raise NoSuchNamespaceError(f"namespace {_parts(name)} does not exist")
        return _parts(name)

    def _create_table(self, identifier: tuple[str, ...], body: Any) -> Any:
        from pyiceberg.catalog.rest import CreateTableRequest

        if self.kept.table_exists(identifier):
            raise TableAlreadyExistsError(f"table {identifier} already exists")
        request = CreateTableRequest.model_validate({"location": None, **body})
        create = self.kept._create_staged_table if request.stage_create else self.kept.create_table
        *namespace, name = identifier
        given = (request.location, request.partition_spec, request.write_order, request.properties)
        return _loaded(create((".".join(namespace), name), request.table_schema, *given))


def _parts(name: str) -> tuple[str, ...]:
    return tuple(urllib.parse.unquote(name).split("\x1f"))


def _of_model(model: Any) -> Any:
    return json.loads(model.model_dump_json(by_alias=True, exclude_none=True))


def _loaded(table: Any) -> Any:
    return {"metadata-location": table.metadata_location, "metadata": _of_model(table.metadata), "config": {}}


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[RestCatalog]:
    """Serve a catalog whose tables lie below a folder."""
    kept = load_catalog(type="sql", uri=f"sqlite:///{folder}/rest.db", warehouse=f"file://{folder}/warehouse")
    lock, released = threading.Lock(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            steps = path.strip("/").split("/")[1:]
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else {}
            method, parameters = self.command, urllib.parse.parse_qs(query)
            request = f"{method} {urllib.parse.unquote('/'.join(steps)).replace(chr(0x1F), '.')}"
            catalog.requests.append(request)
            fault = catalog.schedule(request)

            def call() -> tuple[int, Any]:
                return _done(lambda: catalog.answer(method, steps, parameters, body))

            with lock:
                late, catalog.late = catalog.late, []
                if fault is Fault.OVERTAKEN:
                    catalog.late.append(call)
                    status, answer = _problem(409, "CommitFailedException", "another request is at work")
                elif fault in (Fault.BUSY, Fault.THROTTLED, Fault.FORBIDDEN):
                    status, answer = _problem(_STATUS[fault], fault.name, "try again later")
                else:
                    status, answer = call()
                if fault is Fault.TWICE:
                    status, answer = call()
                for each in late:
                    each()
            if fault is Fault.FAILED_AFTERWARDS:
                status, answer = _problem(503, "Busy", "try again later")
            if fault is Fault.SLOW:
                released.wait(10)
            if fault in (Fault.LOST, Fault.SLOW):
                self.close_connection = True
                return
            self._send(status, answer)

        do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815

        def _send(self, status: int, answer: Any) -> None:
            data = b"" if answer is None or self.command == "HEAD" else json.dumps(answer).encode()
            self.send_response(204 if status == 200 and not data else status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    catalog = RestCatalog(f"http://127.0.0.1:{server.server_port}", folder, kept)
    thread.start()
    try:
        yield catalog
    finally:
        released.set()
        server.shutdown()
        thread.join()
        server.server_close()
        kept.close()


def _done(call: Callable[[], Any]) -> tuple[int, Any]:
    try:
        return 200, call()
    except tuple(_OF_ERRORS) as error:
        status = next(status for kind, status in _OF_ERRORS.items() if isinstance(error, kind))
        return _problem(status, type(error).__name__, str(error))
    except Exception as error:  # noqa: BLE001  # of this double itself: tests show it
        return _problem(500, type(error).__name__, str(error))


def _problem(status: int, kind: str, text: str) -> tuple[int, Any]:
    return status, {"error": {"message": text, "type": kind, "code": status}}
