"""An application that writes a Delta table, an Iceberg table and files on S3, and the judge of what stands there.

The judge reads the tables with `deltalake` and `pyiceberg`, and asks the server itself: the proxy is a part of this process, and
these packages keep Python from running during some of their requests.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.chaos import oracle
from tests.chaos.cases import OUTPUT, Application, Sink
from tests.chaos.kills import PATIENCE, ROOT
from tests.chaos.objects import RemoteSeries
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request

ROWS = 24
"""The rows of a file: of two blocks, which make a window."""


def tables(bucket: Bucket, folder: Path, files: int = 12, mode: str = "append", *, delivered: int = 0) -> Application:
    """Return the application, and put its input into the bucket, but for files that were delivered before."""
    size = 0
    for number in range(files):
        ids = range(number * ROWS, (number + 1) * ROWS)
        data = "id,text\n" + "".join(f"{each},{'x' * (1 + each % 7)}\n" for each in ids)
        if number >= delivered:
            bucket.put(f"in/{number:02d}.csv", data.encode())
        size = max(size, len(data))
    expected = Counter(range(files * ROWS))
    catalog = f"sqlite:///{folder}/{OUTPUT}.db"
    names = {"input": bucket.url("in"), "output": bucket.url(OUTPUT), "tables": bucket.url(f"{OUTPUT}-tables")}
    settings = {**names, "catalog": catalog, "mode": mode, "block_size": str(size // 2 + 1)}

    def wrong(output: Path, is_last: bool) -> Iterator[str]:
        judge = Judge(bucket, output.name, catalog.replace(OUTPUT, output.name))
        return judge.wrong_at_the_end(expected, mode) if is_last else judge.wrong_meanwhile(expected)

    sinks = (Sink(ids_of_lines, expected),)
    return Application("tabled", folder, settings, sinks, files, Path(__file__).parent / "tabled", wrong=wrong)


class TablesSeries(RemoteSeries):
    """Kills of launches whose windows take more requests: sinks of tables look, stage, move, commit, note and sweep."""

    lags = (0, 0, 4)  # launches that are killed early write little: an old listing would stay so for as long as the lock waits
    requests_of_a_start = 120
    requests_of_a_window = 120


def ids_of_lines(output: Path) -> Counter[int]:
    """Return the ids in the visible files."""
    paths = (output / name for name in oracle.visible(output))
    return Counter(json.loads(line)["id"] for path in paths for line in path.read_text().splitlines())


def lines_of(files: int) -> Counter[bytes]:
    """Return the lines that the application writes beside the tables."""
    rows = ({"id": each, "text": "x" * (1 + each % 7)} for each in range(files * ROWS))
    return Counter(json.dumps(row, separators=(",", ":")).encode() for row in rows)


Windows = dict[int, Counter[int]]
"""The ids that each window has brought to a table."""


@attrs.frozen
class Judge:
    """Reads the tables of one series of launches."""

    bucket: Bucket
    output: str
    catalog: str

    @property
    def endpoint(self) -> str:
        """The endpoint of the server itself."""
        return f"http://{self.bucket.proxy.server}"

    @property
    def folder(self) -> str:
        """The prefix of the keys of all tables."""
        return f"{self.output}-tables"

    def delta(self) -> Any:
        """Open the Delta table; None if there is none."""
        import deltalake
        from deltalake.exceptions import TableNotFoundError

        options = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true"}
        url = self.bucket.url(f"{self.folder}/delta")
        with contextlib.suppress(TableNotFoundError):
            return deltalake.DeltaTable(url, storage_options=options)
        return None

    def iceberg(self) -> Any:
        """Open the Iceberg table; None if there is none."""
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if not Path(self.catalog.removeprefix("sqlite:///")).exists():
            return None
        properties = {"s3.endpoint": self.endpoint, "s3.region": "us-east-1"}
        catalog = SqlCatalog("default", uri=self.catalog, warehouse=self.bucket.url(f"{self.folder}/iceberg"), **properties)
        try:
            with contextlib.suppress(NoSuchTableError, NoSuchNamespaceError):
                return catalog.load_table("shop.rows")
            return None
        finally:
            catalog.engine.dispose()

    def windows_of_delta(self) -> Windows:
        """Return the ids by windows. Raises AssertionError where a window is there twice."""
        windows: Windows = {}
        table: Any = self.delta()
        if table is None:
            return windows
        before: Counter[int] = Counter()
        for commit in sorted(table.history(), key=lambda commit: commit["version"]):
            table.load_as_version(commit["version"])
            before = _add(windows, commit.get("dagflow.window"), _ids(table.to_pyarrow_table()), before)
        return windows

    def windows_of_iceberg(self) -> Windows:
        """Do the same for the Iceberg table."""
        windows: Windows = {}
        table: Any = self.iceberg()
        if table is None:
            return windows
        before: Counter[int] = Counter()
        for snapshot in table.snapshots():
            rows = _ids(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())
            before = _add(windows, snapshot.summary.additional_properties.get("dagflow.window"), rows, before)
        return windows

    def wrong_meanwhile(self, expected: Counter[int]) -> Iterator[str]:
        """Yield the promises that are broken after any launch: tables have whole windows, and no row twice."""
        for name, table in (("delta", self.delta()), ("iceberg", self.iceberg())):
            if table is None:
                continue
            if foreign := _ids(table.to_pyarrow_table() if name == "delta" else table.scan().to_arrow()) - expected:
                yield f"{name} has too many: {oracle.difference(foreign, Counter())}"

    def wrong_at_the_end(self, expected: Counter[int], mode: str = "append") -> Iterator[str]:
        """Yield the promises that are broken after the last launch."""
        found = {"delta": self.windows_of_delta(), "iceberg": self.windows_of_iceberg()}
        for name, windows in found.items():
            if (ids := sum(windows.values(), Counter())) != expected:
                yield f"{name}: {oracle.difference(ids, expected)}"
        if found["delta"] != found["iceberg"]:
            yield f"the tables have other windows: {found}"
        keys = self.bucket.keys(f"{self.folder}/")
        if staged := [key for key in keys if "/staged/" in key]:
            yield f"left over: {staged}"
        if (uploads := self.bucket.uploads().decode()).count(f"{self.folder}/") and "/staged/" in uploads:
            yield f"uploads of staged files are left unfinished: {uploads}"
        delta, iceberg = self.delta(), self.iceberg()
        if (
            delta is not None and iceberg is not None and mode == "append"
        ):  # the packages write the files of an upsert: those of commits that came too late stay
            named = {uri.partition(f"{self.bucket.name}/")[2] for uri in delta.file_uris()}
            files = iceberg.inspect.files().column("file_path").to_pylist()
            named |= {path.partition(f"{self.bucket.name}/")[2] for path in files}
            data = {key for key in keys if key.endswith(".parquet") and "/_delta_log/" not in key and "/staged/" not in key}
            if data != named:
                yield f"no table names {sorted(data - named)}; tables name {sorted(named - data)}, which are not there"


def _ids(rows: Any) -> Counter[int]:
    return Counter(rows.column("id").to_pylist())


def _add(windows: Windows, window: Any, rows: Counter[int], before: Counter[int]) -> Counter[int]:
    """Note the rows that a commit has added, and return all rows after it."""
    if window is None:
        assert rows == before, "a commit that names no window has changed rows"
        return rows
    if int(window) in windows:  # an upsert may make two snapshots
        assert not windows[int(window)] & (rows - before), f"window {window} is there twice"
    assert not before - rows, f"window {window} has removed rows"
    windows[int(window)] = windows.get(int(window), Counter()) + (rows - before)
    return rows


@attrs.define
class Storms:
    """A schedule of faults: of the requests to the tables themselves, some in a row fail, from the first staged rows on.

    More fail than the clients of the stores try by themselves, so that storms end in errors for the sinks.

    Attributes:
        every: the requests from the beginning of a storm to that of the next one.
        length: of a storm, in requests.
        faults: one for each storm; then the weather is fine, so that the launch gets through.
        struck: how many requests each fault has met.
    """

    every: int
    length: int
    faults: tuple[Fault, ...]
    struck: Counter[Fault] = attrs.field(factory=Counter)
    _seen: int = -1
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def __call__(self, request: Request) -> Fault | None:
        """Return the fault of a request."""
        with self._lock:
            if self._seen < 0 and "/staged/" in request.key:
                self._seen = 0
            folder = request.key or request.query.get("prefix", "")
            if self._seen < 0 or "-tables/" not in folder or "/_dagflow" in folder:
                return None
            storm, place = divmod(self._seen, self.every)
            self._seen += 1
            if place >= self.length or storm >= len(self.faults):
                return None
            fault = self.faults[storm]
            self.struck[fault] += 1
            return fault


@attrs.define
class Pause:
    """A schedule without faults. It stops a launch at a request, and holds that request up until the launch continues.

    So the server gets the request of a launch that was overtaken only after all that the other launch has done.

    Attributes:
        is_due: tells the request.
        stopped: is set once the launch is stopped.
    """

    is_due: Callable[[Request], bool]
    pid: int = 0
    stopped: threading.Event = attrs.field(factory=threading.Event)
    _continued: threading.Event = attrs.field(factory=threading.Event)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def __call__(self, request: Request) -> None:
        """Stop the launch if the request is due."""
        with self._lock:
            if not self.pid or self.stopped.is_set() or not self.is_due(request):
                return
            os.kill(self.pid, signal.SIGSTOP)
            self.stopped.set()
        self._continued.wait()

    def over(self) -> None:
        """Let the launch and its request continue."""
        self._continued.set()
        os.kill(self.pid, signal.SIGCONT)


ELSEWHERE = """
import runpy, socket
socket.gethostname = lambda: "another-host"
runpy.run_module("dagflow", run_name="__main__")
"""


def overtaken(application: Application, pause: Pause, output: str) -> tuple[int, str]:
    """Launch, stop the launch, let another one take over on another host once the lease has ended, and continue the first.

    Return the exit status of the first, and what it says. Raises AssertionError if it is not stopped, or the other one fails.
    """
    command = _command(application, output, "--lock-lease", "1s", "--retry-delay", "0.1")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as first:
        pause.pid = first.pid
        try:
            while not pause.stopped.wait(0.05):
                assert first.poll() is None, f"the launch was not stopped: {first.communicate()[1]}"
            other = ["-c", ELSEWHERE, *command[3:]]
            deadline = time.monotonic() + PATIENCE
            while (ran := _ran([command[0], *other])).returncode:  # until the lease has ended
                assert time.monotonic() < deadline, f"no other launch takes over: {ran.stderr}"
                time.sleep(0.5)
            pause.over()
            said = first.communicate()[1]
            return first.returncode, said
        finally:
            first.kill()


def launched(application: Application, output: str, *options: str) -> tuple[int, str]:
    """Launch the application in a process of its own. Return its exit status, and what it says on standard error."""
    command = _command(application, output, *options)
    ran = _ran(command)
    return ran.returncode, ran.stderr


def _ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _command(application: Application, output: str, *options: str) -> list[str]:
    settings = [part for name, value in application.settings_for(output).items() for part in ("-D", f"{name}={value}")]
    how = ["--progress", "none", "--runner", "local", "--slots", "1"]
    return [sys.executable, "-m", "dagflow", "launch", str(application.path), *how, *options, *settings]
