"""Launches on an object store that are killed at random moments: input, run folder, ledger and output are objects.

Moments are drawn over the requests that the proxy has seen of a launch. The oracle of files looks at a copy of the bucket, which
is made past the proxy and without dagflow.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dagflow.ledger import Ledger
from tests.chaos import oracle
from tests.chaos.cases import OUTPUT, Application, Place, local
from tests.chaos.kills import Figures, Launch, Series
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request

_FAULTS = (Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.SLOW)


class RemoteLaunch(Launch):
    """A launch whose requests stand for its events: in object stores, it writes none."""

    bucket: Bucket
    first: int

    def events(self) -> list[dict[str, Any]]:
        """The last request of this launch while it has the lock; that it has ended once it has released the lock."""
        requests = self._requests()
        locks = [number for number, request in enumerate(requests) if request.kind == "create" and "/_lock/" in request.key]
        if len(locks) > 1:
            return [{"event": "run_ended"}]
        has_lock = bool(locks) and locks[0] < len(requests) - 1
        return [{"event": f"{requests[-1].kind} {requests[-1].key}"}] if has_lock else []

    def reaches(self, events: int, part: float) -> bool:
        """Waits for so many more requests, and then for a part of the time of one. Whether it still runs."""
        target = len(self._requests()) + events
        while self.runs():
            if len(self._requests()) >= target:
                time.sleep(part * 0.01)
                return self.runs()
            self._in_time()
            time.sleep(0.001)
        return False

    def _requests(self) -> list[Request]:
        return self.bucket.proxy.requests[self.first :]

    def _events(self) -> list[Path]:
        return []


class RemoteSeries(Series):
    """Kills on one output in a bucket. In some series, requests also fail, and listings are some writes old."""

    lags: tuple[int, ...] = (0, 0, 4, 20)
    requests_of_a_start = 80
    requests_of_a_window = 15

    def __init__(
        self, bucket: Bucket, application: Application, place: Place, rng: random.Random, number: int, figures: Figures
    ) -> None:
        super().__init__(application, place, rng, number, figures)
        self._bucket = bucket
        self._copy = application.folder / "copies" / self.output.name
        share = rng.choice((0.0, 0.02))
        lag = rng.choice(self.lags)
        self.story.append(f"share of requests that fail: {share}; listings are {lag} writes old")
        bucket.proxy.lag = partial(_lag, lag) if lag else None
        faults = random.Random(rng.random())
        bucket.proxy.schedule = lambda request: faults.choice(_FAULTS) if faults.random() < share else None

    def _new_launch(self, command: list[str], errors: Path, number: int) -> Launch:
        launch = RemoteLaunch(command, self._application.folder, [], errors, number)
        launch.bucket, launch.first = self._bucket, len(self._bucket.proxy.requests)
        return launch

    def _moment(self, launch: Launch, left: int) -> bool:
        rng = self._rng
        if not launch.victims and rng.random() < 0.15:
            return launch.lasts(rng.uniform(0, self._place.seconds))
        of_windows = self.requests_of_a_window * self._application.windows / left
        start = 0 if launch.victims else self.requests_of_a_start
        return launch.reaches(int(rng.uniform(0, start + of_windows)), rng.random())

    def _urls(self) -> list[str]:
        return [self._bucket.url("/".join(filter(None, (self.output.name, sink.folder)))) for sink in self._application.sinks]

    def _heads(self) -> list[Any]:
        return [Ledger.open(url).head() for url in self._urls()]

    def _wrong_meanwhile(self) -> Iterator[str]:
        for folder in self._copies():
            if (folder / "_dagflow" / "ledger").exists():
                yield from (f"{folder.name}: {problem}" for problem in Ledger.open(str(folder)).verify().problems)
        yield from self._application.wrong(self.output, False)

    def _check(self) -> None:
        self._bucket.proxy.schedule, self._bucket.proxy.lag = lambda request: None, None
        heads = self._heads()
        if self._ended(self._begin(local())) != 0:
            self._fail("the launch after the last one has failed")
        if self._heads() != heads:
            self._fail(f"one more launch has written entries after {heads}")
        for folder, sink in zip(self._copies(), self._application.sinks, strict=True):
            if wrong := list(oracle.wrong(folder, sink.content, sink.expected, sink.rows_of)):
                self._fail(f"in {folder.name}:", *wrong)
        if f"{self.output.name}/".encode() in self._bucket.uploads():
            self._fail("uploads are left unfinished")
        if wrong := list(self._application.wrong(self.output, True)):
            self._fail(*wrong)
        self._figures.outputs += 1

    def _copies(self) -> list[Path]:
        """Copy all that is in the output, and return the folders of its datasets."""
        shutil.rmtree(self._copy, ignore_errors=True)
        prefix = f"{self.output.name}/"
        for key in self._bucket.keys(prefix):
            path = self._copy / key.removeprefix(prefix)
            if (data := self._bucket.content(key)) is not None:  # else it is gone by now
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self._copy.mkdir(parents=True, exist_ok=True)
        return [self._copy / sink.folder for sink in self._application.sinks]


def _lag(writes: int, request: Request) -> int:
    """Listings of our own folders are old, but not those of the trial of the store: nothing is written while it waits."""
    prefix = request.query.get("prefix", "")
    return writes if "/_dagflow/" in prefix and "/probe/" not in prefix else 0


def in_bucket(application: Application, bucket: Bucket) -> Application:
    """Put the input of an application into a bucket, and its outputs."""
    for path in sorted((application.folder / "in").iterdir()):
        bucket.put(f"in/{path.name}", path.read_bytes())
    settings = {key: value.replace(OUTPUT, bucket.url(OUTPUT)) for key, value in application.settings.items()}
    return attrs.evolve(application, settings={**settings, "input": bucket.url("in")})
